// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package launch runs inside the pane and becomes the client. In this order it
// takes the session's lease, reads what it is to run, enters the workspace,
// makes the environment, verifies that there is the conversation which is to be
// resumed, enters the client's scope, leaves a receipt, and executes the client in its
// own process. It
// executes nothing unless its own attempt is proven to be pending, and nothing
// twice; it leaves no process of muxlet behind, and no value of a variable and
// nothing of a conversation in any message or file.
package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/workspace"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// Options of one launch.
type Options struct {
	// StateDir and RuntimeDir are absolute.
	StateDir, RuntimeDir string
	// UID of the session and Attempt as tmux was told them.
	UID, Attempt string
	// ReadOrder reads the session's record: the pending attempt's order, and
	// whether that attempt may still go on. It is called once, after the lease
	// was taken.
	ReadOrder func(uid string) (actuate.Order, actuate.Fence, error)
	// Environ is the environment as the pane, or the shell's profile, made it:
	// NAME=value.
	Environ []string
	// Reports is the socket to which the hooks of a client report.
	Reports string
	// Evidence looks for a conversation that is to be resumed; nil looks for none.
	Evidence func(observe.ConversationRef) observe.Evidence
	// ControlGroup reads the control group of this process.
	ControlGroup func() (string, error)
	// Now is the time of the receipt.
	Now func() time.Time
	// Exec replaces the process by the program at path and returns only when
	// that failed; nil is the system's own, which also clears signals and
	// descriptors.
	Exec func(path string, argv, env []string) error
}

// idPattern matches UIDs and attempts. They are parts of file names.
var idPattern = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// Run becomes the client; it returns only when it could not. The error is one
// sentence that the caller prints, for the person in front of the pane, before
// it exits with status 1. What the daemon must know is in the receipt by then,
// unless the attempt was not this launcher's to run: then there is none.
func Run(o Options) error {
	if !idPattern.MatchString(o.UID) || !idPattern.MatchString(o.Attempt) {
		return fmt.Errorf("muxlet launch is run by muxlet alone: %q and %q are not a session and an attempt", o.UID, o.Attempt)
	}
	self, err := identify()
	if err != nil {
		return fmt.Errorf("the client was not started: %w", err)
	}
	l := &launcher{Options: o, self: self}
	defer l.dropLease()
	fault := l.launch()
	return errors.Join(errors.New(fault.message), l.record(fault))
}

// launcher is one launch under way.
type launcher struct {
	Options
	self observe.Process
	// dirs are those of a client whose class has any.
	dirs directories
	// lease is the descriptor of the locked lease; 0 while there is none.
	lease int
	// scope that was entered; zero for none. scopeProblem is why one was not.
	scope        observe.Scope
	scopeProblem string
	// executing is true from the moment at which the Exec receipt is written.
	executing bool
}

// fault is why a client was not executed.
type fault struct {
	reason, message string
	lookedFor       string
	lookedIn        []string
	file            string
}

// Error is the sentence for a person.
func (f *fault) Error() string { return f.message }

func identify() (observe.Process, error) {
	pid := os.Getpid()
	ticks, err := process.Ticks(pid)
	if err != nil {
		return observe.Process{}, fmt.Errorf("read the launcher's own start time: %w", err)
	}
	return observe.Process{PID: pid, Ticks: ticks}, nil
}

// launch goes through the steps and returns why the last one failed.
func (l *launcher) launch() *fault {
	if fault := l.takeLease(); fault != nil {
		return fault
	}
	order, fault := l.order()
	if fault != nil {
		return fault
	}
	if fault := enter(order.Directory); fault != nil {
		return fault
	}
	env, dirs, fault := environment(order, l.Environ)
	if fault != nil {
		return fault
	}
	l.dirs = dirs
	words, fault := argv(order, dirs, env)
	if fault != nil {
		return fault
	}
	program, fault := find(order.Directory, words[0], env)
	if fault != nil {
		return fault
	}
	if fault := l.verify(order); fault != nil {
		return fault
	}
	l.setIdentity(order, env)
	variables := env.list()
	if fault := checkSize(program, words, variables); fault != nil {
		return fault
	}
	if err := l.unspent(); err != nil {
		return fenced(l.Attempt, err.Error())
	}
	if fault := l.enterScope(order.Scope); fault != nil {
		return fault
	}
	return l.execute(program, words, variables)
}

// setIdentity tells the client, and everybody who looks at it, who it is.
func (l *launcher) setIdentity(order actuate.Order, e *env) {
	mark := observe.Mark{
		Instance: order.Instance, UID: order.UID, Attempt: order.Attempt,
		Incarnation: order.Incarnation, Process: l.self,
	}
	e.set("PWD", order.Directory)
	e.set(observe.EnvSession, order.Session)
	e.set(observe.EnvClient, mark.String())
	if order.Class != nil && l.Reports != "" {
		e.set(observe.EnvReports, l.Reports)
	}
}

// order reads what to run. Anything but the proof that this very attempt is
// pending is a refusal, ignorance included: another attempt may have been
// started in the meantime.
func (l *launcher) order() (actuate.Order, *fault) {
	order, fence, err := l.ReadOrder(l.UID)
	why := ""
	switch {
	case err != nil:
		why = fmt.Sprintf("its record could not be read (%v)", err)
	case fence == actuate.FenceUnknown:
		why = "its record could not be read"
	case order.UID != l.UID || order.Attempt != l.Attempt:
		why = "another attempt has taken its place"
	case fence != actuate.FenceOpen:
		why = "it was given up"
	case len(order.Command)+len(order.Args) == 0:
		why = "it names no program"
	default:
		return order, nil
	}
	return actuate.Order{}, fenced(l.Attempt, why)
}

func fenced(attempt, why string) *fault {
	return &fault{reason: spec.ReasonFenced, message: fmt.Sprintf(
		"Attempt %s was not executed: %s; nothing needs to be done here.", attempt, why)}
}

// enter makes the workspace the working directory.
func enter(dir string) *fault {
	finding := workspace.Judge(dir, os.Chdir(dir))
	switch finding.State {
	case workspace.Ready:
		return nil
	case workspace.Unknown:
		finding.State = workspace.Inaccessible
	case workspace.Missing, workspace.NotDirectory, workspace.Inaccessible:
	}
	return &fault{reason: finding.State.Reason(), message: finding.Message}
}

// execute leaves the receipt and becomes the client.
func (l *launcher) execute(program string, argv, env []string) *fault {
	if err := l.write(observe.Receipt{Stage: observe.StageExec}); err != nil {
		return &fault{reason: spec.ReasonStateUnwritable, message: fmt.Sprintf(
			"The client was not executed: its receipt could not be written (%v); make room or give access to %s.", err, l.StateDir)}
	}
	l.executing = true
	if l.Exec != nil {
		return execFault(program, l.Exec(program, argv, env))
	}
	return execFault(program, become(program, argv, env, l.lease))
}

// unspent is an error unless it is proven that this attempt has no receipt. A
// person can run a dead pane's command again by hand: an attempt executes its
// client once, and its first receipt stands.
func (l *launcher) unspent() error {
	switch _, err := ReadReceipt(l.StateDir, l.Attempt); {
	case err == nil:
		return errors.New("it was executed before")
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("whether it was executed before could not be read (%w)", err)
	}
	return nil
}

// record leaves the receipt of a failure. A refusal leaves none: the attempt may
// be another launcher's.
func (l *launcher) record(f *fault) error {
	if f.reason == spec.ReasonFenced || (!l.executing && l.unspent() != nil) {
		return nil
	}
	return l.write(observe.Receipt{
		Stage: observe.StageFailed, Reason: f.reason, Message: f.message,
		LookedFor: f.lookedFor, LookedIn: f.lookedIn, File: f.file,
	})
}
