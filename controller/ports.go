// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Tmux asks the tmux server. *tmux.Conn of observe/tmux is one.
type Tmux interface {
	// List asks for all panes, in one bounded call.
	List(ctx context.Context, now func() time.Time) observe.Answer
	// ListOf asks for the panes of one session alone.
	ListOf(ctx context.Context, now func() time.Time, uid string) observe.Answer
	// Capture returns what a pane holds, with at most that many lines of its history.
	Capture(ctx context.Context, pane string, history int) (observe.Screen, error)
	// CaptureHand returns what a pane shows, with its cursor and its Strong lines.
	CaptureHand(ctx context.Context, pane string) (observe.Screen, error)
}

// Processes looks at the process table and at leases. It changes nothing.
type Processes interface {
	Identify(pid int) (observe.Process, observe.Liveness)
	State(p observe.Process) observe.Liveness
	MarkOf(pid int) (observe.MarkedProcess, error)
	Scan(instance string) ([]observe.MarkedProcess, error)
	Descendants(p observe.Process) ([]observe.Process, error)
	// Engine is the process that does a client's work, by the base name of its program;
	// zero when there is none. An error says that this is not known.
	Engine(client observe.Process, executable string) (observe.Process, error)
	FindServers(socket string) ([]observe.Process, error)
	Lease(uid string) observe.Lease
}

// Deaths gives a notice when a watched process ends. Losing one costs time only.
type Deaths interface {
	// Watch gives one notice with key when p ends, at once if it has ended.
	Watch(p observe.Process, key string) error
	// Forget stops watching p.
	Forget(p observe.Process)
	// State of a watched process; Unknown when only the process table can tell.
	State(p observe.Process) observe.Liveness
	// Exit is how p ended as far as the kernel tells; nil when it does not.
	Exit(p observe.Process) *observe.Exit
	Notices() <-chan observe.Notice
}

// Workspaces looks at and makes directories.
type Workspaces interface {
	// Expand resolves ~ and $VAR; its error is a sentence for a person.
	Expand(path string) (string, error)
	// Inspect says whether a client could run in dir: an empty reason, or one of
	// spec's with a sentence. It changes nothing.
	Inspect(ctx context.Context, dir string) (reason, message string)
	// Ensure makes dir where the type asks for that.
	Ensure(dir string, t spec.WorkspaceType) error
}

// Receipts reads what launchers leave. The error matches fs.ErrNotExist when it
// is proven that there is none.
type Receipts interface {
	Read(attempt string) (observe.Receipt, error)
	// Forget removes a receipt that was accounted for.
	Forget(attempt string)
	// Prune removes what was left before the given time by attempts that nobody
	// accounts for any more.
	Prune(before time.Time, accounted func(attempt string) bool) error
}

// Clients reads what clients leave in files of their own. It changes nothing. A call
// may take for ever when a file system does not answer.
type Clients interface {
	// Evidence says whether a conversation can be resumed.
	Evidence(ref observe.ConversationRef) observe.Evidence
	// Files is what the files of a running client tell of it.
	Files(ref observe.ConversationRef, client observe.Process) observe.Files
	// Answer is the last lines of what was answered last in a conversation since a time:
	// an fs.ErrNotExist when there is nothing, or its class does not give it.
	Answer(ref observe.ConversationRef, since time.Time, lines int) (string, error)
}

// Reports are what the hooks of clients tell.
type Reports interface {
	// Spooled are the reports that were left while nobody took them, in order. They
	// stay where they are.
	Spooled() ([]observe.Report, error)
	// Serve hands over each report that comes, several at the same time, and those that
	// are spooled, in order, until ctx ends. One that take returns an error for stays in
	// the spool and comes again.
	Serve(ctx context.Context, take func(context.Context, observe.Report) error) error
}

// Hooks wires the hooks of clients to us.
type Hooks interface {
	// Ensure sees to it that what the hooks of a class need is there, and gives the
	// variables that its commands may name.
	Ensure(class string, reports spec.ReportsType) (map[string]string, error)
	// Prune removes what was made before the given time for classes that are not in use.
	Prune(before time.Time, inUse func(class string) bool) error
}

// Records keeps the sessions' records. *record.Store is one, and says what each
// method promises. It is a port for what a store cannot be made to do from outside:
// to fail, or never to be reached, at one certain save.
type Records interface {
	Prepare() error
	Load() (record.Loaded, error)
	Save(r record.Record) error
	// Room says whether there is room for what a start writes.
	Room() error
	// Try returns once a few bytes are on disk, or cannot be.
	Try() error
	Restore(r record.Record) error
	Archive(r record.Record) error
	Archived(name string, notBefore time.Time) (r record.Record, ok bool)
	Removed(uid string) (r record.Record, ok bool)
	Unarchive(uid string) error
	Knows(uid string) bool
	Prune(before time.Time, size int64) error
}
