// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe/tmux"
)

// Patience is how long a test waits for what an idle machine does at once.
const Patience = 60 * time.Second

// poll is the time between two looks of a test.
const poll = 10 * time.Millisecond

// The intervals of an Env. They are short, so that a test need not wait, and
// long enough to be told from "at once".
const (
	Resync     = 500 * time.Millisecond
	Settle     = 200 * time.Millisecond
	backOff    = 10 * time.Millisecond
	backOffMax = 400 * time.Millisecond
)

// Config of an Env. The zero value is what most tests want.
type Config struct {
	// Shell reaches the launchers of shell modes Interactive and Login; /bin/sh
	// when it is empty.
	Shell string
	// MaxInFlight starts; 10 when it is 0.
	MaxInFlight int
	// Policy of waits; short ones when it is zero.
	Policy plan.Policy
	// TmuxTimeout bounds one call of tmux; 20 s when it is 0.
	TmuxTimeout time.Duration
	// Meddled puts a script of the test in front of tmux; see Meddle.
	Meddled bool
	// TurnLimits say which turns are kept; very many when they are zero.
	TurnLimits turn.Limits
	// Adjust changes the options of each controller at last.
	Adjust func(*controller.Options)
}

// Env is one world: directories, a private tmux server once the controller has
// started one, and a controller. What it is asked for fails its test rather than
// return an error.
type Env struct {
	testing.TB
	Config
	// Dir is below which everything lives. State, Runtime, Manifests and Home are
	// those of the controller, Work is where clients run.
	Dir, State, Runtime, Manifests, Home, Work string

	self    string
	log     *logBuffer
	conn    *tmux.Conn
	acts    acts
	saves   saves
	running *running
}

// Start makes a world and starts a controller in it. Both end with the test,
// which fails if a process is left then.
func Start(t testing.TB, config Config) *Env {
	t.Helper()
	e := Make(t, config)
	e.Boot()
	return e
}

// Make makes a world without a controller.
func Make(t testing.TB, config Config) *Env {
	t.Helper()
	dir, err := os.MkdirTemp("", "mx")
	if err != nil {
		t.Fatalf("make directory: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("find the test binary: %v", err)
	}
	e := &Env{
		TB: t, Config: config.withDefaults(), Dir: dir, self: self, log: &logBuffer{},
		State: filepath.Join(dir, "state"), Runtime: filepath.Join(dir, "run"),
		Manifests: filepath.Join(dir, "sessions"), Home: filepath.Join(dir, "home"), Work: filepath.Join(dir, "work"),
	}
	for _, d := range []string{e.State, e.Runtime, e.Manifests, e.Home, e.Work, filepath.Join(dir, "gates")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatalf("make directory: %v", err)
		}
	}
	t.Cleanup(e.close)
	e.conn = &tmux.Conn{Socket: e.Socket(), Env: e.base(), Timeout: e.TmuxTimeout, TicksOf: ticksOf}
	if e.Meddled {
		e.makeMeddler()
	}
	return e
}

func (c Config) withDefaults() Config {
	if c.Shell == "" {
		c.Shell = "/bin/sh"
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 10
	}
	if c.TmuxTimeout == 0 {
		c.TmuxTimeout = 20 * time.Second
	}
	if c.TurnLimits == (turn.Limits{}) {
		c.TurnLimits = turn.Limits{Turns: 10000, Age: time.Hour, Bytes: 1 << 30}
	}
	if c.Policy == (plan.Policy{}) {
		c.Policy = plan.Policy{BackOffInitial: backOff, BackOffMax: backOffMax, BackOffReset: 10 * time.Minute, UnknownGrace: Settle}
	}
	return c
}

// Socket is the path of the private tmux server's socket.
func (e *Env) Socket() string { return filepath.Join(e.Runtime, "tmux.sock") }

// base is the environment that tmux and clients without a shell get.
func (e *Env) base() []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + e.Home, "USER=tester", "LOGNAME=tester", "SHELL=/bin/sh", "LANG=C.UTF-8",
	}
}

// running is one controller and what belongs to it alone.
type running struct {
	*controller.Controller
	cancel context.CancelFunc
	// ended gets the error of Run.
	ended chan error
	// release lets go of what the controller held.
	release func() error
	// ledger has what it did to the world.
	ledger *ledger
}

// Boot starts a controller on the state that is there, as a new daemon does.
func (e *Env) Boot() {
	e.Helper()
	if e.running != nil {
		e.Fatal("a controller runs already")
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := newLedger()
	c, release, err := e.build(l)
	if err != nil {
		cancel()
		e.Fatalf("build controller: %v", err)
	}
	r := &running{Controller: c, cancel: cancel, ended: make(chan error, 1), release: release, ledger: l}
	go func() { r.ended <- c.Run(ctx) }()
	e.running = r
}

// Drop ends the controller. tmux and the clients go on, and nothing is cleaned
// up: whatever was in progress stays as it is.
func (e *Env) Drop() {
	e.Helper()
	r := e.running
	if r == nil {
		return
	}
	e.running = nil
	r.cancel()
	select {
	case err := <-r.ended:
		if err = errors.Join(err, r.release()); err != nil {
			e.Errorf("the controller ended with an error: %v", err)
		}
	case <-time.After(Patience):
		stacks := make([]byte, 1<<20)
		e.Errorf("the controller did not end:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// Restart is Drop and Boot.
func (e *Env) Restart() {
	e.Helper()
	e.Drop()
	e.Boot()
}

// Controller is the one that runs.
func (e *Env) Controller() *controller.Controller {
	e.Helper()
	if e.running == nil {
		e.Fatal("no controller runs")
	}
	return e.running.Controller
}

// Eventually waits until the condition holds; what says what is waited for.
func (e *Env) Eventually(what string, condition func() bool) {
	e.Helper()
	if !e.within(Patience, condition) {
		e.Fatalf("this did not happen within %s: %s\n%s", Patience, what, e.sessions())
	}
}

// Always looks for a while whether the condition holds each time.
func (e *Env) Always(d time.Duration, what string, condition func() bool) {
	e.Helper()
	if e.within(d, func() bool { return !condition() }) {
		e.Fatalf("this did not stay so: %s\n%s", what, e.sessions())
	}
}

func (e *Env) within(d time.Duration, condition func() bool) bool {
	ticks := time.NewTicker(poll)
	defer ticks.Stop()
	end := time.After(d)
	for {
		if condition() {
			return true
		}
		select {
		case <-ticks.C:
		case <-end:
			return condition()
		}
	}
}

// close ends everything.
func (e *Env) close() {
	e.Drop()
	left := e.killAll()
	if len(left) > 0 {
		e.Errorf("processes are left: %v", left)
	}
	if e.Failed() {
		e.Logf("log of the controller:\n%s", e.log)
		e.Logf("journal:\n%s", e.journalText())
	}
	if err := os.RemoveAll(e.Dir); err != nil {
		e.Errorf("remove directory: %v", err)
	}
}

func (e *Env) journalText() string {
	text := ""
	for _, entry := range e.Journal() {
		entry.Argv, entry.Env = nil, nil
		text += fmt.Sprintf("%s %s %s incarnation=%d attempt=%s stage=%s\n",
			entry.At.Format(time.StampMilli), entry.Session+" "+entry.Event, entry.Process, entry.Incarnation, entry.Attempt, entry.Stage)
	}
	return text
}
