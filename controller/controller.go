// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller is the loop: hints become keys, one reconcile at a time per
// key looks at the world, asks plan what to do, writes it down, does it, and
// looks again. Hints carry no meaning; losing all of them costs time, never
// correctness. It never acts before the record that says so is on disk, and
// never on an observation older than its own last act.
package controller

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/metrics"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/screen"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// Options is everything that a Controller works with.
type Options struct {
	Log   logr.Logger
	Clock clock.WithTicker
	// NewID gives a fresh UUID.
	NewID func() string
	// Version of the binary, for status.
	Version string

	// Initial settings; see Reload.
	Initial Settings
	// StateDir, RuntimeDir and Socket (of tmux) are absolute.
	StateDir, RuntimeDir, Socket string
	// CompareBoot compares the stored boot id with the system's: a word for the
	// log, and the current one.
	CompareBoot func(stored string) (change, current string)

	// Shell is the shell that reaches the launchers of shell modes Interactive and
	// Login.
	Shell string
	// Base is the environment of shellMode None, as NAME=value.
	Base []string

	Tmux      Tmux
	Processes Processes
	Clients   Clients
	// Prober asks clients; nil when nobody does.
	Prober   Prober
	Reports  Reports
	Hooks    Hooks
	Receipts Receipts
	Deaths   Deaths
	// Scopes looks at the control groups of clients; nil where there are none.
	Scopes Scopes
	// Limits looks at what a start on the tmux server may use up; nil when that is
	// not known.
	Limits func(server observe.Process) observe.Limits
	// ClaimInstance makes sure that no other daemon acts for the instance. Its error
	// ends this one.
	ClaimInstance func(instance string) error
	// SharedUnit names the unit of systemd that both this daemon and the tmux server are in, so
	// that they end together; empty when each ends by itself. nil: that is not known.
	SharedUnit func(server observe.Process) string
	// TmuxConfiguration names the configuration that the tmux server is to have; nil, or an
	// empty name, leaves a server of ours with the one that it has.
	TmuxConfiguration func() string
	// ShowWaitingAfter is how long a change of who waits for a person is gathered before the
	// status line of the tmux server is told; 0: it is told nothing.
	ShowWaitingAfter time.Duration
	// PrepareRuntime makes the runtime directory and what must be in it.
	PrepareRuntime func() error
	// NewActuator makes the actuator once the instance is known.
	NewActuator func(instance string) actuate.Actuator
	Workspaces  Workspaces
	Store       Records
	// TurnStore keeps the turns.
	TurnStore Turns
	Recorder  *status.Recorder
	// Notifier tells people what waits for them; nil: nobody is told.
	Notifier Notifier
	// Metrics are what is counted; nil: they are made.
	Metrics *metrics.Metrics
}

// workers is the number of keys that are reconciled at the same time. They wait
// for tmux and for the disk, not for a processor.
const workers = 8

// serverKey is the key of the tmux server. It cannot be a session's name.
const serverKey = "server/"

// Controller keeps the declared sessions alive.
type Controller struct {
	Options
	metering metering
	// reloaded are the settings in force, once they are others than those of Options;
	// reread asks for a look at everything under them.
	reloaded atomic.Pointer[Settings]
	reread   chan struct{}
	// waitingDue asks for a look at who waits for a person.
	waitingDue chan struct{}
	// attentionDue asks for a look at what is to be written down of who asks for attention.
	attentionDue chan struct{}
	queue        workqueue.TypedDelayingInterface[string]
	health       health
	// screensDue has the sessions whose screens are to be looked at.
	screensDue workqueue.TypedDelayingInterface[string]
	// probes has those whose clients are to be asked whether they are alive.
	probes *probeQueue

	startedAt time.Time
	// loaded is closed once the records are there. Requests wait for it: before, to
	// know no session proves nothing about it.
	loaded chan struct{}
	// ending is done when the workers end. What a request has asked tmux ends with it.
	ending  <-chan struct{}
	eyes    *eyes
	screens *screen.Store
	// looks are those of who follows a pane.
	looks *pace
	// journals have what is served. Sessions are put there under mu.
	journals *server.Journals
	book     *turnBook
	notifier *notifier
	// endedTurns are those since the last tidying.
	endedTurns atomic.Int64
	budget     *budget
	limits     limits
	reader     manifest.Reader
	watcher    *manifest.Watcher

	// desiredMu serialises readings of the manifests; the fields below it are
	// written under both locks.
	desiredMu     sync.Mutex
	manifestState manifest.State

	mu       sync.Mutex
	sessions map[string]*session
	// byUID finds some of them; claims are the conversations that a pass is about to
	// take up, and for which session.
	byUID  map[string]*session
	claims map[string]string
	holds  holds
	bad    map[string]record.Bad
	// nameless are the uids of damaged records that did not tell their session.
	nameless map[string]bool
	// damaged are the sessions whose records were.
	damaged map[string]bool
	desired manifest.DesiredSet
	// classes are the client classes as they are served, by name.
	classes  map[string]*spec.ClientClass
	roots    []server.ManifestRoot
	read     bool
	instance string
	actuator actuate.Actuator
	attempts map[string]string // attempt → name
	server   serverState
	first    firstLooks
	// census has the number of sessions that are served under each word of STATUS; readAt is
	// when the manifests were last read, readyAt when all that is known was observed.
	census          map[spec.Status]int
	readAt, readyAt time.Time
	// resyncDue is true when the next look at the server is to be passed on to all.
	resyncDue bool
	// freshDue is true when that look itself will not do.
	freshDue bool
	// sweepDue is when scopes are next looked for whose session is gone, sweeping those in
	// which something was signalled, and since when; only the worker of the server's key
	// looks at them.
	sweepDue time.Time
	sweeping map[string]time.Time
	// tidied is when the directories were last tidied; only the goroutine that reads
	// the manifests looks at it.
	tidied time.Time
}

// New makes a Controller. Run starts it.
func New(o Options) *Controller {
	started := o.Clock.Now()
	if o.Metrics == nil {
		o.Metrics = metrics.New(o.Version, started)
	}
	c := &Controller{
		Options:  o,
		budget:   newBudget(o.Initial.MaxInFlight),
		sessions: map[string]*session{},
		byUID:    map[string]*session{},
		claims:   map[string]string{},
		holds:    holds{map[credential]*hold{}, map[credential]time.Time{}},
		bad:      map[string]record.Bad{},
		nameless: map[string]bool{},
		damaged:  map[string]bool{},
		attempts: map[string]string{},
		classes:  map[string]*spec.ClientClass{},
		census:   map[spec.Status]int{},
		loaded:   make(chan struct{}),
		reread:   make(chan struct{}, 1),

		waitingDue: make(chan struct{}, 1), attentionDue: make(chan struct{}, 1),
	}
	c.eyes, c.startedAt = newEyes(o), started
	c.metering.meters = c.newMeters()
	c.queue = newKeyQueue(o.Clock, c.metering.meters[queueKeys])
	c.health.last.Store(&pulse{at: c.startedAt})
	c.journals = server.NewJournals(c.startedAt, rand.Uint32())
	c.book, c.notifier = newTurnBook(c.journals.Turns), newNotifier()
	c.publishEvents()
	c.publishClasses()
	c.screens, c.looks = screen.NewStore(o.StateDir), newPace(o.Clock)
	c.book.ended = c.Metrics.TurnEnded
	c.Metrics.Look(c.measure)
	return c
}

// now is the time without its monotonic part, as it is written to disk. What is
// only compared within this process keeps that part (Clock.Now): a clock that
// jumps must not make an old observation look fresh.
func (c *Controller) now() time.Time { return c.Clock.Now().UTC().Round(0) }

// Run loads the records and reconciles until ctx ends. It returns when every
// worker has ended. Sessions go on without it.
func (c *Controller) Run(ctx context.Context) error {
	// Made first: once the records are there, the API can ask for a reading, and a
	// report for a look.
	c.watcher, c.ending = manifest.NewWatcher(c.Log), ctx.Done()
	c.screensDue, c.probes = newQueue(c.Clock, c.metering.meters[queueScreens]), newProbeQueue(c.Clock, c.metering.meters[queueProbes])
	err := c.load()
	close(c.loaded)
	if err != nil {
		c.screensDue.ShutDown()
		c.probes.ShutDown()
		return errors.Join(err, c.watcher.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() { c.work(ctx, worker) })
	}
	for range lookers {
		wg.Go(func() { c.lookAtScreens(ctx) })
	}
	for range probers {
		wg.Go(func() { c.askClients(ctx) })
	}
	if c.Reports != nil {
		wg.Go(func() { c.serveReports(ctx) })
	}
	wg.Go(func() { c.watchDeaths(ctx) })
	wg.Go(func() { c.watchScopes(ctx) })
	wg.Go(func() { c.watchFiles(ctx) })
	wg.Go(func() { c.sweepTurns(ctx) })
	if c.Notifier != nil {
		wg.Go(func() { c.notifyPeople(ctx) })
	}
	wg.Go(func() { c.watchWaiting(ctx) })
	wg.Go(func() { c.keepAttention(ctx) })
	// It is not waited for: the file system that it asks may never answer.
	go c.watchState(ctx.Done())
	c.queue.Add(pulseKey)
	c.enqueue(serverKey, c.Clock.Now())
	c.watchManifests(ctx)
	c.queue.ShutDown()
	c.screensDue.ShutDown()
	c.probes.ShutDown()
	wg.Wait()
	c.probes.runs.Wait()
	return c.watcher.Close()
}

// work reconciles keys, one at a time, until the queue is shut down.
func (c *Controller) work(ctx context.Context, worker int) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			end := c.begin(worker, key)
			c.reconcile(ctx, key)
			end()
		}
		c.queue.Done(key)
	}
}

func (c *Controller) reconcile(ctx context.Context, key string) {
	began, kind := c.Clock.Now(), metrics.KeySession
	switch key {
	case pulseKey:
		c.beat()
		return
	case serverKey:
		kind = metrics.KeyServer
		c.reconcileServer(ctx)
	default:
		c.reconcileSession(ctx, key)
	}
	c.Metrics.Reconciled(kind, c.Clock.Since(began))
}

// enqueue asks for a look at a key. What it rests on must have been observed at
// notBefore or later.
func (c *Controller) enqueue(key string, notBefore time.Time) {
	c.mu.Lock()
	if s := c.sessions[key]; s != nil && notBefore.After(s.notBefore) {
		s.notBefore = notBefore
	}
	c.mu.Unlock()
	c.queue.Add(key)
}

// enqueueAfter asks for a look at a key in a while.
func (c *Controller) enqueueAfter(key string, after time.Duration) {
	c.mu.Lock()
	if s := c.sessions[key]; s != nil {
		s.dueAt = c.Clock.Now().Add(after)
	}
	c.mu.Unlock()
	c.queue.AddAfter(key, after)
}

// enqueueAll asks for a look at every session.
func (c *Controller) enqueueAll(notBefore time.Time) {
	for _, name := range c.names() {
		c.enqueue(name, notBefore)
	}
}

func (c *Controller) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]string, 0, len(c.sessions))
	for name := range c.sessions {
		names = append(names, name)
	}
	return names
}

// newsOf is the oldest observation that will do after a death notice. That of a
// client needs none at first: its pass asks tmux for the end of the process
// before it asks for a listing. That of its engine ends nothing yet.
func (c *Controller) newsOf(n observe.Notice, now time.Time) time.Time {
	snap, _, _ := c.eyes.latest()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[n.Key]
	if s == nil || s.rec.Client == nil || s.rec.Stop != nil || s.rec.Client.Process != n.Process && s.rec.Client.Engine != n.Process || snap == nil || snap.view.State != observe.ServerRunning {
		return now
	}
	return time.Time{}
}

// watchDeaths turns death notices into hints.
func (c *Controller) watchDeaths(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n, open := <-c.Deaths.Notices():
			if !open {
				return
			}
			now := c.Clock.Now()
			c.eyes.markGone(n.Process, now)
			c.enqueue(n.Key, c.newsOf(n, now))
		}
	}
}
