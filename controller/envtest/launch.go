// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/launch"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe/client"
)

// Stage is a place in a launcher's way at which it can be held.
type Stage string

// The stages, in order.
const (
	// AtEntry: nothing was done yet.
	AtEntry Stage = "entry"
	// WithLease: it holds the lease and has not read what it is to run.
	WithLease Stage = "lease"
	// WithOrder: it has read what it is to run, and that it may.
	WithOrder Stage = "order"
	// WithReceipt: its receipt says that it executes the client next.
	WithReceipt Stage = "receipt"
)

// everyone is the name under which a gate holds the launchers of all sessions.
const everyone = "all"

func gatePath(dir string, stage Stage, session string) string {
	return filepath.Join(dir, "gates", string(stage)+"."+session)
}

// launchMain is the launcher as the product has it, with gates.
func launchMain(args []string) int {
	o := launch.Options{Environ: os.Environ(), Evidence: new(client.Eyes).Evidence, Now: time.Now}
	w := way{}
	flags := flag.NewFlagSet(roleLaunch, flag.ContinueOnError)
	flags.StringVar(&o.StateDir, "state", "", "")
	flags.StringVar(&o.RuntimeDir, "runtime", "", "")
	flags.StringVar(&o.UID, "uid", "", "")
	flags.StringVar(&o.Attempt, "attempt", "", "")
	flags.StringVar(&w.dir, "bench", "", "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	w.attempt, o.Reports = o.Attempt, reportsSocket(o.RuntimeDir)
	store := record.NewStore(o.StateDir)
	if r, err := store.Read(o.UID); err == nil {
		w.session = r.Name
	}
	if err := w.entry(eventLaunch, "").write(w.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	w.pass(AtEntry)
	o.ReadOrder, o.ControlGroup = w.readOrder(store), w.controlGroup
	o.Exec = w.exec()
	if err := launch.Run(o); err != nil {
		fmt.Fprintln(os.Stderr, "muxlet: "+err.Error())
	}
	return 1
}

// way is the way of one launcher past the gates.
type way struct{ dir, session, attempt string }

func (w way) entry(event string, stage Stage) Entry {
	return Entry{Event: event, Session: w.session, Attempt: w.attempt, Stage: stage}
}

// pass waits while a gate is closed. Each launcher waits at a FIFO of its own, so
// that the test can let one of them go on.
func (w way) pass(stage Stage) {
	for _, name := range []string{w.session, everyone} {
		gate := gatePath(w.dir, stage, name)
		if !closed(gate) {
			continue
		}
		own := gate + "." + w.attempt
		err := syscall.Mkfifo(own, 0o600)
		// Whoever opens the gate looks for FIFOs afterwards.
		if err == nil && closed(gate) {
			err = w.park(own, stage)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
}

func closed(gate string) bool {
	_, err := os.Stat(gate)
	return err == nil
}

func (w way) park(fifo string, stage Stage) error {
	if err := w.entry(eventParked, stage).write(w.dir); err != nil {
		return err
	}
	f, err := os.Open(fifo)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Read(make([]byte, 1)); err != nil {
		return err
	}
	return w.entry(eventPassed, stage).write(w.dir)
}

// readOrder is the product's, between two gates.
func (w way) readOrder(store *record.Store) func(string) (actuate.Order, actuate.Fence, error) {
	return func(uid string) (actuate.Order, actuate.Fence, error) {
		w.pass(WithLease)
		defer w.pass(WithOrder)
		r, err := store.Read(uid)
		switch {
		case err != nil:
			return actuate.Order{}, actuate.FenceUnknown, err
		case r.Attempt == nil || r.Attempt.ID != w.attempt || r.Attempt.Fence != record.FenceOpen:
			return actuate.Order{}, actuate.FenceClosed, nil
		}
		return r.Attempt.Order, actuate.FenceOpen, nil
	}
}

// controlGroup is where this process is in the control groups of a test, which are plain
// files: the last that names it.
func (w way) controlGroup() (string, error) {
	root := filepath.Join(w.dir, "cgroup")
	found, err := filepath.Glob(filepath.Join(root, "*", "*", "cgroup.procs"))
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if slices.Contains(strings.Fields(string(text)), strconv.Itoa(os.Getpid())) {
			return strings.TrimPrefix(filepath.Dir(path), root), nil
		}
	}
	return "", err
}

// exec is the launcher's own unless a gate is in its way.
func (w way) exec() func(string, []string, []string) error {
	if !closed(gatePath(w.dir, WithReceipt, w.session)) && !closed(gatePath(w.dir, WithReceipt, everyone)) {
		return nil
	}
	return func(path string, argv, env []string) error {
		w.pass(WithReceipt)
		return syscall.Exec(path, argv, env)
	}
}

// Gate holds launchers at a stage until it is opened.
type Gate struct {
	env     *Env
	stage   Stage
	session string
	path    string
	// let are the attempts whose launchers may pass.
	let map[string]bool
}

// Hold closes a gate: launchers of the session stop at the stage from now on;
// those of all sessions when it is empty.
func (e *Env) Hold(stage Stage, session string) *Gate {
	e.Helper()
	if session == "" {
		session = everyone
	}
	g := &Gate{env: e, stage: stage, session: session, path: gatePath(e.Dir, stage, session), let: map[string]bool{}}
	if err := os.WriteFile(g.path, nil, 0o600); err != nil {
		e.Fatalf("close gate: %v", err)
	}
	return g
}

// Parked are the launchers that wait at the gate now.
func (g *Gate) Parked() []Entry {
	g.env.Helper()
	passed := maps.Clone(g.let)
	var parked []Entry
	for _, entry := range g.env.Journal() {
		here := entry.Stage == g.stage && (g.session == everyone || g.session == entry.Session)
		switch {
		case here && entry.Event == eventPassed:
			passed[entry.Attempt] = true
		case here && entry.Event == eventParked && entry.Runs():
			parked = append(parked, entry)
		}
	}
	return slices.DeleteFunc(parked, func(entry Entry) bool { return passed[entry.Attempt] })
}

// WaitParked waits until a launcher waits at the gate, and returns it.
func (g *Gate) WaitParked() Entry {
	g.env.Helper()
	var parked []Entry
	g.env.Eventually("a launcher waits at the gate "+string(g.stage), func() bool {
		parked = g.Parked()
		return len(parked) > 0
	})
	return parked[0]
}

// Pass lets a launcher pass that waits.
func (g *Gate) Pass(parked Entry) {
	g.env.Helper()
	g.let[parked.Attempt] = true
	g.pass(g.path + "." + parked.Attempt)
}

func (g *Gate) pass(fifo string) {
	g.env.Helper()
	// Opened for both ways it waits for nobody; it stays open until somebody has
	// read from it.
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err == nil {
		g.env.Cleanup(func() { _ = f.Close() })
		_, err = f.Write([]byte{0})
	}
	if err != nil {
		g.env.Fatalf("open gate: %v", err)
	}
}

// Open lets everyone pass from now on.
func (g *Gate) Open() {
	g.env.Helper()
	if err := os.Remove(g.path); err != nil {
		g.env.Fatalf("open gate: %v", err)
	}
	waiting, err := filepath.Glob(g.path + ".*")
	if err != nil {
		g.env.Fatalf("open gate: %v", err)
	}
	for _, fifo := range waiting {
		g.pass(fifo)
	}
}
