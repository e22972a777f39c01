// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/notify"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// Notifier tells a person something. It returns when that is over, whatever came of it.
type Notifier interface {
	Notify(ctx context.Context, way actuate.NotificationWay, n actuate.Notification) actuate.NotificationOutcome
}

// Notifications are what a person is told, and how.
type Notifications struct {
	Way         actuate.NotificationWay
	On          []spec.NotificationEvent
	MinInterval time.Duration
}

const (
	// notifying is how many notifications are under way at the same time, at most.
	notifying = 4
	// farewell is how long those that are under way may go on when the daemon ends.
	farewell = 2 * time.Second
	// toldVersion is the version of the file that says what was told.
	toldVersion = 1
)

// notifier is what the controller remembers of notifications. What a person was told is
// on disk before anything is done: a daemon that is killed in between loses a
// notification rather than repeat it.
type notifier struct {
	mu   sync.Mutex
	book *notify.Book
	// saved is the revision of the book that is on disk.
	saved int
	// underWay counts those that are being told; failure is why the last one did not
	// reach anybody by a way.
	underWay int
	failure  string
	// changed gets a word when something may be due.
	changed chan struct{}
}

func newNotifier() *notifier {
	return &notifier{book: notify.NewBook(nil), changed: make(chan struct{}, 1)}
}

func (n *notifier) poke() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

func (c *Controller) toldPath() string { return filepath.Join(c.StateDir, "notified.json") }

// loadTold reads what a person was told before. Without it they may be told once more.
func (c *Controller) loadTold() {
	var marks []notify.Mark
	if err := durable.Read(c.toldPath(), toldVersion, &marks); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Error(err, "What was notified is not known any more")
		marks = nil
	}
	book := notify.NewBook(marks)
	c.mu.Lock()
	defer c.mu.Unlock()
	book.Keep(func(key string) bool { return strings.HasPrefix(key, namePrefix) || c.sessionOf(key) != nil })
	c.notifier.mu.Lock()
	defer c.notifier.mu.Unlock()
	c.notifier.book, c.notifier.saved = book, book.Revision()
}

// namePrefix begins the key of a session without a record, which has no uid yet.
const namePrefix = "name/"

// notificationKey is by what a session is known in the book. c.mu is held.
func notificationKey(s *session) string {
	if s.rec.UID == "" {
		return namePrefix + s.name
	}
	return s.rec.UID
}

// noteOccasions takes in what a person may be told of a session, after a pass by what
// was seen. c.mu is held.
func (c *Controller) noteOccasions(s *session, w wish, seen plan.Seen) {
	if c.Notifier == nil || s.published == nil {
		return
	}
	panes := make([]observe.Pane, 0, len(seen.Panes))
	for _, p := range seen.Panes {
		panes = append(panes, p.Pane)
	}
	subject := notify.Subject{
		UID: notificationKey(s), Name: s.name, Known: seen.Sight == plan.SightKnown && !w.early && c.wasLookedAt(s),
		Watched: watched(s, panes), Occasions: occasions(s.published, s.rec.Client != nil),
	}
	if s.rec.Client != nil {
		for i := range subject.Occasions {
			subject.Occasions[i].Attempt = s.rec.Client.Attempt
		}
	}
	c.notifier.mu.Lock()
	defer c.notifier.mu.Unlock()
	if s.rec.UID != "" {
		c.notifier.book.Forget(namePrefix + s.name)
	}
	if c.notifier.book.Observe(c.Clock.Now(), subject) {
		c.notifier.poke()
	}
}

// wasLookedAt says whether this daemon has seen what the client shows, if it shows
// anything. c.mu is held.
func (c *Controller) wasLookedAt(s *session) bool {
	if s.rec.Client == nil {
		return true
	}
	class := c.classInForce(s)
	return class == nil || !looksAt(class.Spec) || !s.present().sight.At.IsZero()
}

// watched says whether a person has the client's pane in front of them, or, without a
// client, any pane of the session.
func watched(s *session, panes []observe.Pane) bool {
	if s.rec.Client != nil {
		return inFront(panes, s.rec.Client.Pane)
	}
	return slices.ContainsFunc(panes, func(p observe.Pane) bool { return p.InFront > 0 })
}

// occasions are what holds of a session that a person may be told of.
func occasions(o *spec.Session, client bool) (found []notify.Occasion) {
	asks := meta.FindStatusCondition(o.Status.Conditions, spec.ConditionInputRequired)
	stalled := meta.FindStatusCondition(o.Status.Conditions, spec.ConditionStalled)
	a, attention := o.Status.Activity, spec.AsksForAttention(o)
	if attention && asks != nil && asks.Status == metav1.ConditionTrue {
		found = append(found, notify.Occasion{Event: spec.NotifyInputRequired, Reason: asks.Reason, Message: asks.Message, Since: spec.WaitingSince(o)})
	}
	refused := client && a != nil && a.Failure == spec.ReasonAuthenticationFailed
	switch {
	case refused:
		found = append(found, notify.Occasion{
			Event: spec.NotifyStalled, Reason: a.Failure, Message: "the client's credential was refused", Since: a.Since.Time,
		})
	case stalled != nil && stalled.Status == metav1.ConditionTrue && spec.WaitsForPerson(o):
		found = append(found, notify.Occasion{Event: spec.NotifyStalled, Reason: stalled.Reason, Message: stalled.Message, Since: stalled.LastTransitionTime.Time})
	}
	if attention && !refused && a != nil && a.State == spec.ActivityIdle && a.AsksSince != nil {
		found = append(found, endedWork(a))
	}
	return found
}

// endedWork is that a client has ended its work, well or not.
func endedWork(a *spec.ActivityStatus) notify.Occasion {
	reason := spec.ReasonCompleted
	if a.Failure != "" {
		reason = a.Failure
	}
	return notify.Occasion{Event: spec.NotifyTurnCompleted, Reason: reason, Since: a.AsksSince.Time}
}

// noteWatchers takes in who looks at the sessions of which something is to be told.
// c.mu is held.
func (c *Controller) noteWatchers(snap *snapshot) {
	if c.Notifier == nil {
		return
	}
	c.notifier.mu.Lock()
	defer c.notifier.mu.Unlock()
	news := false
	for _, key := range c.notifier.book.Open() {
		if strings.HasPrefix(key, namePrefix) {
			continue
		}
		if s := c.sessionOf(key); s != nil {
			news = c.notifier.book.Watch(c.Clock.Now(), key, watched(s, snap.panes[key])) || news
		}
	}
	if news {
		c.notifier.poke()
	}
}

// forgetNotified forgets a session that is gone. c.mu is held.
func (c *Controller) forgetNotified(s *session) {
	c.notifier.mu.Lock()
	defer c.notifier.mu.Unlock()
	c.notifier.book.Forget(s.rec.UID)
	c.notifier.book.Forget(namePrefix + s.name)
	c.notifier.poke()
}

// notifyPeople tells people what is due until ctx ends. No worker waits for it.
func (c *Controller) notifyPeople(ctx context.Context) {
	var running sync.WaitGroup
	// What is under way when the daemon ends may go on for a moment.
	outlasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	for {
		again := c.notifyDue(ctx, outlasting, &running)
		var due <-chan time.Time
		if !again.IsZero() {
			due = c.Clock.After(max(again.Sub(c.Clock.Now()), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			c.sayFarewell(&running, end)
			return
		case <-c.notifier.changed:
		case <-due:
		}
	}
}

// sayFarewell waits for what is under way, and ends what takes too long.
func (c *Controller) sayFarewell(running *sync.WaitGroup, end context.CancelFunc) {
	over := make(chan struct{})
	go func() {
		running.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-c.Clock.After(farewell):
		end()
		<-over
	}
}

// notifyDue begins to tell what is due, and returns when to ask again; zero when only a
// change matters.
func (c *Controller) notifyDue(ctx, outlasting context.Context, running *sync.WaitGroup) (again time.Time) {
	settings, policy := c.settings().Notifications, c.notificationPolicy()
	n := c.notifier
	n.mu.Lock()
	next, room := n.book.Next(c.Clock.Now(), policy), notifying-n.underWay
	n.mu.Unlock()
	if settings.Way.None() || room <= 0 || next.IsZero() || next.After(c.Clock.Now()) {
		c.saveTold()
		if settings.Way.None() || room <= 0 {
			return time.Time{}
		}
		return next
	}
	// Who looks at it by now is not told.
	c.look(ctx, c.Clock.Now())
	if ctx.Err() != nil {
		return time.Time{}
	}
	n.mu.Lock()
	due, again := n.book.Due(c.Clock.Now(), policy, room)
	n.underWay += len(due)
	n.mu.Unlock()
	c.saveTold()
	for _, notice := range due {
		running.Go(func() { c.notifyOf(outlasting, settings.Way, notice) })
	}
	return again
}

func (c *Controller) notificationPolicy() notify.Policy {
	s := c.settings()
	return notify.Policy{On: s.Notifications.On, MinInterval: s.Notifications.MinInterval, FocusAfter: s.FocusAfter}
}

// saveTold writes down what was told, if that has changed. A person is told all the same
// when it cannot be written: a daemon that is started again may tell them once more then.
func (c *Controller) saveTold() {
	n := c.notifier
	n.mu.Lock()
	revision, marks := n.book.Revision(), n.book.Marks()
	changed := revision != n.saved
	n.saved = revision
	n.mu.Unlock()
	if !changed {
		return
	}
	// A file of a newer version stays as it is: of that load has told.
	err := c.keep().Write(c.toldPath(), toldVersion, marks)
	if err != nil && !errors.Is(err, durable.ErrNewer) {
		c.Log.Error(err, "What was notified was not written down")
	}
}

// notifyOf tells of one notice.
func (c *Controller) notifyOf(ctx context.Context, way actuate.NotificationWay, notice notify.Notice) {
	n, uid := c.notificationOf(notice)
	out := c.Notifier.Notify(ctx, way, n)
	err := failureOf(way, out)
	if err == nil {
		c.Log.Info("Notified", "event", n.Event, "session", n.Sessions[0], "sessions", len(n.Sessions), "reason", n.Reason, "took", out.Took.Round(time.Millisecond), "terminals", out.Terminals)
	}
	c.notifier.mu.Lock()
	c.notifier.underWay--
	c.notifier.failure = ""
	if err != nil {
		c.notifier.failure = err.Error()
		if out.Terminals == 0 {
			c.notifier.book.Failed(notice)
		}
	}
	c.notifier.mu.Unlock()
	if err != nil {
		name, of := n.Sessions[0], "it"
		if len(n.Sessions) > 1 {
			// It is nobody's own.
			name, uid, of = "", "", fmt.Sprintf("%d sessions", len(n.Sessions))
		}
		c.tell(name, uid, plan.Event{Type: plan.Warning, Reason: spec.ReasonNotificationFailed, Message: fmt.Sprintf("Nobody was notified of %s (%s): %s", of, n.Event, err)})
	}
	c.notifier.poke()
}

// failureOf is why not everybody was told; nil when they were.
func failureOf(way actuate.NotificationWay, out actuate.NotificationOutcome) error {
	if len(way.Command) > 0 && out.CommandErr != nil {
		return out.CommandErr
	}
	return out.TerminalErr
}

// notificationOf is a notice with what is known of its first session.
func (c *Controller) notificationOf(notice notify.Notice) (n actuate.Notification, uid string) {
	first := notice.About[0]
	n = actuate.Notification{Event: notice.Event, Reason: first.Reason, Message: first.Message, Since: first.Since}
	for _, about := range notice.About {
		n.Sessions = append(n.Sessions, about.Name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[first.Name]
	if s == nil {
		return n, ""
	}
	n.Directory, n.Labels = s.status.Workspace.Path, s.rec.Labels
	if notice.Event == spec.NotifyTurnCompleted {
		n.Turn = c.book.endedSince(s.rec.UID, first.Since.Add(-turnEnds))
	}
	return n, s.rec.UID
}

// turnEnds is how long before its client is seen to be idle a turn may have ended.
const turnEnds = 10 * time.Second

// failing is one line when nobody could be notified the last time, for the daemon's
// status; empty otherwise.
func (n *notifier) failing() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failure == "" {
		return ""
	}
	return fmt.Sprintf("nobody was notified the last time: %s: try it with `muxlet config test-notification`", n.failure)
}

// settingsChanged asks what is due by other settings, of which no failure is known.
func (n *notifier) settingsChanged() {
	n.mu.Lock()
	n.failure = ""
	n.mu.Unlock()
	n.poke()
}

// TestNotification tells a person something by the ways of the settings, as a try. The
// error says that there are none.
func (c *Controller) TestNotification(ctx context.Context, event spec.NotificationEvent) (actuate.NotificationOutcome, error) {
	way := c.settings().Notifications.Way
	if way.None() || c.Notifier == nil {
		return actuate.NotificationOutcome{}, errNoWay
	}
	out := c.Notifier.Notify(ctx, way, actuate.Notification{
		Event: event, Sessions: []string{"example"}, Reason: "Test", Message: "this is a test", Since: c.now(), Directory: c.StateDir, Test: true,
	})
	c.notifier.mu.Lock()
	defer c.notifier.mu.Unlock()
	c.notifier.failure = ""
	if err := failureOf(way, out); err != nil {
		c.notifier.failure = err.Error()
	}
	return out, nil
}

var errNoWay = server.NewError(server.ReasonInvalid, "", "nobody is notified: set notifications.command or notifications.terminal in the settings, and try again")
