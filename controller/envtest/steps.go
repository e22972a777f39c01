// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
)

// errCrashed is what a controller gets that is to have crashed by then.
var errCrashed = errors.New("this controller has crashed")

// ledger counts what one controller does to the world: its writes and its calls of
// tmux that change something. To look changes nothing, so that between two steps it
// does not matter when a daemon crashes.
type ledger struct {
	mu    sync.Mutex
	steps []string
	// limit is the number of steps after which the controller has crashed; -1 for none.
	limit int
	// crashed is closed when it wants to take another one.
	crashed chan struct{}
	dead    bool
}

func newLedger() *ledger { return &ledger{limit: -1, crashed: make(chan struct{})} }

// take performs a step, unless the controller has crashed.
func (l *ledger) take(what string, do func() error) error {
	l.mu.Lock()
	if l.limit >= 0 && len(l.steps) >= l.limit {
		if !l.dead {
			l.dead = true
			close(l.crashed)
		}
		l.mu.Unlock()
		return errCrashed
	}
	l.steps = append(l.steps, what)
	l.mu.Unlock()
	return do()
}

// Steps are what the controller that runs has done to the world, in order.
func (e *Env) Steps() []string {
	e.Helper()
	e.Controller()
	l := e.running.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.steps)
}

// CrashAfter lets the controller that runs take so many steps more. From then on it
// does nothing to the world, whatever it decides; crashed is closed when it first
// wants to. Drop it then.
func (e *Env) CrashAfter(steps int) (crashed <-chan struct{}) {
	e.Helper()
	e.Controller()
	l := e.running.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = len(l.steps) + steps
	return l.crashed
}

// countedActuator takes each action as a step.
type countedActuator struct {
	actuate.Actuator
	*ledger
}

// Do is Actuator's.
func (a countedActuator) Do(ctx context.Context, action actuate.Action) (out actuate.Outcome) {
	err := a.take(string(action.Kind), func() error {
		out = a.Actuator.Do(ctx, action)
		return nil
	})
	if err != nil {
		out = actuate.Outcome{Result: actuate.ResultUnclear, Reason: spec.ReasonUnknown, Message: err.Error()}
	}
	return out
}

// countedReceipts takes it as a step that a receipt is forgotten.
type countedReceipts struct {
	controller.Receipts
	*ledger
}

// Forget is Receipts'.
func (r countedReceipts) Forget(attempt string) {
	_ = r.take("Forget receipt", func() error { r.Receipts.Forget(attempt); return nil })
}

// countedWorkspaces takes it as a step that a directory is made.
type countedWorkspaces struct {
	controller.Workspaces
	*ledger
}

// Ensure is Workspaces'.
func (w countedWorkspaces) Ensure(dir string, t spec.WorkspaceType) error {
	return w.take("Ensure workspace", func() error { return w.Workspaces.Ensure(dir, t) })
}

// Save stands in the way of the saving of a record: it is called instead of it, and
// do performs it.
type Save func(r record.Record, do func() error) error

// saves are who stands in the way of saves in a world.
type saves struct {
	mu   sync.Mutex
	save Save
}

// OnSave puts save in the way of every saving of a record from now on; nil ends that.
func (e *Env) OnSave(save Save) {
	e.saves.mu.Lock()
	defer e.saves.mu.Unlock()
	e.saves.save = save
}

// countedRecords takes each write as a step.
type countedRecords struct {
	*record.Store
	*ledger
	saves *saves
}

// Save is Records'.
func (r countedRecords) Save(rec record.Record) error {
	r.saves.mu.Lock()
	save := r.saves.save
	r.saves.mu.Unlock()
	do := func() error { return r.Store.Save(rec) }
	return r.take("Save "+rec.Name, func() error {
		if save != nil {
			return save(rec, do)
		}
		return do()
	})
}

// Restore is Records'.
func (r countedRecords) Restore(rec record.Record) error {
	return r.take("Restore "+rec.Name, func() error { return r.Store.Restore(rec) })
}

// Archive is Records'.
func (r countedRecords) Archive(rec record.Record) error {
	return r.take("Archive "+rec.Name, func() error { return r.Store.Archive(rec) })
}

// Unarchive is Records'.
func (r countedRecords) Unarchive(uid string) error {
	return r.take("Unarchive", func() error { return r.Store.Unarchive(uid) })
}

// countedTurns takes each write as a step.
type countedTurns struct {
	*turn.Store
	*ledger
}

// Create is Turns'.
func (c countedTurns) Create(r turn.Request) (t turn.Turn, existed bool, err error) {
	err = c.take("Create turn", func() (err error) { t, existed, err = c.Store.Create(r); return err })
	return t, existed, err
}

// Update is Turns'.
func (c countedTurns) Update(next turn.Turn) (t turn.Turn, err error) {
	err = c.take("Update turn "+string(next.Phase), func() (err error) { t, err = c.Store.Update(next); return err })
	return t, err
}

// Forget is Turns'.
func (c countedTurns) Forget(name string) error {
	return c.take("Forget turn", func() error { return c.Store.Forget(name) })
}

// ForgetSession is Turns'.
func (c countedTurns) ForgetSession(uid string) error {
	return c.take("Forget turns", func() error { return c.Store.ForgetSession(uid) })
}
