// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// person is told what waits for them, and notes it.
type person struct {
	mu   sync.Mutex
	told []actuate.Notification
	// fails is why nobody is told; held, when set, holds up each notification until it is
	// closed.
	fails error
	held  chan struct{}
	// now and most count those that are under way.
	now, most int
	// settings are those of the last controller.
	settings controller.Settings
}

// Notify is Notifier's.
func (p *person) Notify(ctx context.Context, _ actuate.NotificationWay, n actuate.Notification) actuate.NotificationOutcome {
	p.mu.Lock()
	p.told = append(p.told, n)
	p.now++
	p.most = max(p.most, p.now)
	fails, held := p.fails, p.held
	p.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	p.now--
	p.mu.Unlock()
	return actuate.NotificationOutcome{CommandErr: fails}
}

func (p *person) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = err
}

// heard is what they were told, as "event session[,session]".
func (p *person) heard() (words []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.told {
		words = append(words, string(n.Event)+" "+strings.Join(n.Sessions, ","))
	}
	return words
}

func (p *person) count() int { return len(p.heard()) }

func (p *person) last() actuate.Notification {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told[len(p.told)-1]
}

const minInterval = 200 * time.Millisecond

// config has a controller that notifies the person.
func (p *person) config() envtest.Config {
	return envtest.Config{Adjust: func(o *controller.Options) {
		o.Notifier = p
		o.Initial.Notifications = controller.Notifications{
			Way: actuate.NotificationWay{Command: []string{"tell"}}, On: spec.NotificationEvents, MinInterval: minInterval,
		}
		p.settings = o.Initial
	}}
}

// strange is a session of class claude that asks whether its directory is to be trusted.
func (a *agents) strange(name string) *spec.Session {
	a.Helper()
	s := a.claude(name)
	s.Labels = map[string]string{"repo": name}
	s.Spec.Workspace.Directory = filepath.Join(a.Dir, "strange-"+name)
	require.NoError(a, os.MkdirAll(s.Spec.Workspace.Directory, 0o700))
	return s
}

func (a *agents) trusts(name string) {
	a.Helper()
	a.Tmux("send-keys", "-t", a.pane(name), "Down")
	a.Tmux("send-keys", "-t", a.pane(name), "Enter")
}

// K6: nobody is told again because the daemon was restarted.
func TestAPersonIsNotifiedOnceOfAQuestionAndOnceOfEndedWork(t *testing.T) {
	t.Parallel()
	p := &person{}
	a := startAgents(t, p.config())
	s := a.strange("shop")
	a.Apply(s)
	asks := envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonTrustRequired)
	asked := a.WaitFor("shop", asks)
	a.Eventually("the person is told", func() bool { return p.count() == 1 })
	n := p.last()
	assert.Equal(t, []string{"InputRequired shop"}, p.heard())
	assert.Equal(t, spec.ReasonTrustRequired, n.Reason)
	assert.Equal(t, "the client asks whether the directory is to be trusted", n.Message)
	assert.Equal(t, s.Spec.Workspace.Directory, n.Directory)
	assert.Equal(t, map[string]string{"repo": "shop"}, n.Labels)
	assert.True(t, n.Since.Equal(asked.Status.Activity.AsksSince.Time), "%s, asks since %s", n.Since, asked.Status.Activity.AsksSince)
	assert.Empty(t, n.Turn)

	a.Always(4*envtest.Resync, "they are told once", func() bool { return p.count() == 1 })
	for range 2 {
		a.Restart()
		a.WaitFor("shop", asks, asksForAttention)
		a.Always(4*envtest.Resync, "they are not told again after a restart", func() bool { return p.count() == 1 })
	}
	a.trusts("shop")
	a.WaitFor("shop", idle, asksNobody)
	a.turn("shop", "one")
	a.Eventually("the person is told of the end", func() bool { return p.count() == 2 })
	assert.Equal(t, "TurnCompleted shop", p.heard()[1])
	assert.Equal(t, spec.ReasonCompleted, p.last().Reason)
	// Its screen shows the work for a moment longer than its report.
	a.Always(4*envtest.Resync, "they are told of the end once", func() bool { return p.count() == 2 })
	a.Restart()
	a.WaitFor("shop", idle)
	a.Always(4*envtest.Resync, "ended work is not told again after a restart", func() bool { return p.count() == 2 })

	sent := spec.Turn{Spec: spec.TurnSpec{SessionName: "shop", Prompt: "two"}}
	_, _, err := a.Controller().CreateTurn(t.Context(), sent)
	require.NoError(t, err)
	a.Eventually("the person is told of the turn", func() bool { return p.count() == 3 })
	assert.Equal(t, "TurnCompleted shop", p.heard()[2])
	assert.Equal(t, "shop-1", p.last().Turn)
	for _, n := range p.told {
		assert.NotContains(t, fmt.Sprint(n), "two", "nothing of a prompt is told")
	}
}

func TestWhoLooksAtASessionIsNotNotifiedOfIt(t *testing.T) {
	t.Parallel()
	p := &person{}
	config := p.config()
	adjust := config.Adjust
	config.Adjust = func(o *controller.Options) {
		adjust(o)
		// For so long the report of an end is believed against the screen, which a busy
		// machine lets say for a moment that the client works.
		o.Initial.FocusAfter = 4 * envtest.Resync
	}
	a := startAgents(t, config)
	a.ready(a.claude("shop"))
	a.WaitFor("shop", idle)
	someone := a.Attach("shop")
	a.WaitFor("shop", envtest.Check{Words: "has a person attached", Holds: func(s spec.Session) bool { return s.Status.Tmux.Attached == 1 }})
	a.turn("shop", "one")
	a.WaitFor("shop", idle, envtest.Check{Words: "was seen to have ended its work", Holds: func(s spec.Session) bool {
		seen := s.Status.Activity
		return seen != nil && seen.AsksSince != nil && seen.SeenAt != nil && !seen.SeenAt.Before(seen.AsksSince)
	}})
	someone.Leave()
	a.Always(8*envtest.Resync, "they have seen it", func() bool { return p.count() == 0 })
	a.turn("shop", "two")
	a.Eventually("they have left, and are told", func() bool { return slices.Equal(p.heard(), []string{"TurnCompleted shop"}) })
}

func TestAPersonIsNotifiedOfWhatIsStuck(t *testing.T) {
	t.Parallel()
	p := &person{}
	e := envtest.Start(t, p.config())
	s := e.Fake("a", envtest.Script{})
	s.Spec.Workspace.Directory = filepath.Join(e.Dir, "absent")
	e.Apply(s)
	e.Eventually("the person is told", func() bool { return slices.Equal(p.heard(), []string{"Stalled a"}) })
	assert.Equal(t, spec.ReasonWorkspaceMissing, p.last().Reason)
	e.Restart()
	e.WaitFor("a", envtest.Condition(spec.ConditionStalled, metav1.ConditionTrue, spec.ReasonWorkspaceMissing))
	e.Always(4*envtest.Resync, "not again", func() bool { return p.count() == 1 })
	require.NoError(t, os.Mkdir(s.Spec.Workspace.Directory, 0o700))
	e.WaitFor("a", envtest.Running)
	assert.Equal(t, 1, p.count(), "that it goes on is not told")
}

// A disk that is full, or a mount that is gone, makes many sessions stuck at once.
func TestOfManySessionsAPersonIsNotifiedTogether(t *testing.T) {
	t.Parallel()
	p := &person{}
	e := envtest.Make(t, p.config())
	const many = 12
	for i := range many {
		s := e.Fake(fmt.Sprintf("s%02d", i), envtest.Script{})
		s.Spec.Workspace.Directory = filepath.Join(e.Dir, "absent")
		e.Apply(s)
	}
	e.Boot()
	told := func() map[string]bool {
		all := map[string]bool{}
		for _, line := range p.heard() {
			_, names, _ := strings.Cut(line, " ")
			for _, name := range strings.Split(names, ",") {
				assert.False(t, all[name], "%s is told twice", name)
				all[name] = true
			}
		}
		return all
	}
	e.Eventually("each session is told of", func() bool { return len(told()) == many })
	assert.Less(t, p.count(), many, "not one by one: %v", p.heard())
}

// A command that hangs holds up neither the others nor the loop, and a few run at once
// at most.
func TestSlowNotificationsHoldUpNothingAndDoNotPileUp(t *testing.T) {
	t.Parallel()
	p := &person{held: make(chan struct{})}
	e := envtest.Start(t, p.config())
	for i := range 8 {
		s := e.Fake(fmt.Sprintf("s%d", i), envtest.Script{})
		s.Spec.Workspace.Directory = filepath.Join(e.Dir, "absent")
		e.Apply(s)
		told := min(i+1, 4)
		e.Eventually("the next is told while the others hang", func() bool { return p.count() == told })
	}
	e.Run("works")
	e.Always(3*envtest.Resync, "no more are told", func() bool { return p.count() == 4 })
	close(p.held)
	e.Eventually("the others are told", func() bool { return strings.Contains(strings.Join(p.heard(), " "), "s7") })
	assert.Equal(t, 4, p.most)
}

// A command that hangs does not keep the daemon from ending, nor is it told again.
func TestADaemonEndsWhileANotificationHangs(t *testing.T) {
	t.Parallel()
	p := &person{held: make(chan struct{})}
	e := envtest.Start(t, p.config())
	s := e.Fake("a", envtest.Script{})
	s.Spec.Workspace.Directory = filepath.Join(e.Dir, "absent")
	e.Apply(s)
	e.Eventually("the person is told", func() bool { return p.count() == 1 })
	e.Restart()
	e.WaitFor("a", envtest.Condition(spec.ConditionStalled, metav1.ConditionTrue, spec.ReasonWorkspaceMissing))
	e.Always(3*envtest.Resync, "once", func() bool { return p.count() == 1 })
}

func TestANotificationThatFailsIsAnEventAndAProblem(t *testing.T) {
	t.Parallel()
	p := &person{fails: errors.New("the command tell ended with exit status 3: no bus")}
	e := envtest.Start(t, p.config())
	s := e.Fake("a", envtest.Script{})
	s.Spec.Workspace.Directory = filepath.Join(e.Dir, "absent")
	e.Apply(s)
	e.Eventually("it is tried three times", func() bool { return p.count() == 3 })
	e.Always(3*minInterval+envtest.Resync, "and no more", func() bool { return p.count() == 3 })
	events := e.Events("a", spec.ReasonNotificationFailed)
	require.Len(t, events, 1)
	assert.Equal(t, "Nobody was notified of it (Stalled): the command tell ended with exit status 3: no bus", events[0].Message)
	assert.EqualValues(t, 3, events[0].Count)
	problem := "nobody was notified the last time: the command tell ended with exit status 3: no bus: try it with `muxlet config test-notification`"
	assert.Contains(t, e.Controller().Status().Problems, problem)

	p.fail(nil)
	_, err := e.Controller().TestNotification(t.Context(), spec.NotifyStalled)
	require.NoError(t, err)
	assert.True(t, p.last().Test)
	assert.NotContains(t, e.Controller().Status().Problems, problem)
}

func TestNotificationsFollowTheSettings(t *testing.T) {
	t.Parallel()
	p := &person{}
	config := p.config()
	adjust := config.Adjust
	config.Adjust = func(o *controller.Options) {
		adjust(o)
		o.Initial.Notifications.Way = actuate.NotificationWay{}
	}
	e := envtest.Start(t, config)
	_, err := e.Controller().TestNotification(t.Context(), spec.NotifyStalled)
	require.ErrorContains(t, err, "set notifications.command or notifications.terminal in the settings")
	s := e.Fake("a", envtest.Script{})
	s.Spec.Workspace.Directory = filepath.Join(e.Dir, "absent")
	e.Apply(s)
	e.WaitFor("a", envtest.Condition(spec.ConditionStalled, metav1.ConditionTrue, spec.ReasonWorkspaceMissing))
	settings := p.settings
	settings.Notifications.On = []spec.NotificationEvent{spec.NotifyInputRequired}
	e.Controller().Reload(settings)
	e.Always(3*envtest.Resync, "that is not wanted", func() bool { return p.count() == 0 })
	settings.Notifications.On = spec.NotificationEvents
	e.Controller().Reload(settings)
	e.Eventually("what waits is told once it is wanted", func() bool { return slices.Equal(p.heard(), []string{"Stalled a"}) })
}
