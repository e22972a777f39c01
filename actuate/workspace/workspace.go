// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package workspace looks at and makes the directories in which clients run. It
// creates a directory only when the session asks for that, and never removes,
// empties or changes one that is there.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// State is the judgement of a directory.
type State int

// The judgements of a directory.
const (
	// Unknown: it could not be looked at.
	Unknown State = iota
	// Ready: it is a directory that can be entered.
	Ready
	// Missing: there is nothing with this path.
	Missing
	// NotDirectory: the path, or a part of it, is something else.
	NotDirectory
	// Inaccessible: it exists, as far as can be seen, but must not be entered.
	Inaccessible
)

// String is the word shown to people.
func (s State) String() string {
	switch s {
	case Ready:
		return "Ready"
	case Missing:
		return "Missing"
	case NotDirectory:
		return "NotDirectory"
	case Inaccessible:
		return "Inaccessible"
	case Unknown:
		return "Unknown"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Reason is the reason of condition WorkspaceReady that says the same.
func (s State) Reason() string {
	switch s {
	case Ready:
		return spec.ReasonWorkspaceReady
	case Missing:
		return spec.ReasonWorkspaceMissing
	case NotDirectory:
		return spec.ReasonWorkspaceNotDirectory
	case Inaccessible:
		return spec.ReasonWorkspaceInaccessible
	case Unknown:
	}
	return spec.ReasonUnknown
}

// Finding is what was seen of a directory.
type Finding struct {
	// State of the directory.
	State State
	// Message for a person, with the next step; empty when it is Ready.
	Message string
}

// Judge reads the error of entering, reading or making dir; nil is Ready.
func Judge(dir string, err error) Finding {
	switch {
	case err == nil:
		return Finding{State: Ready}
	case errors.Is(err, fs.ErrNotExist):
		return Finding{Missing, fmt.Sprintf("The directory %s does not exist; create it, or set workspace.type: DirectoryOrCreate.", dir)}
	case errors.Is(err, syscall.ENOTDIR):
		return Finding{NotDirectory, fmt.Sprintf("%s is not a directory; move what is there, or set another workspace.directory.", dir)}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ELOOP),
		errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EROFS):
		return Finding{Inaccessible, fmt.Sprintf("The directory %s cannot be used (%s); change its permissions, or set another workspace.directory.", dir, cause(err))}
	}
	return Finding{Unknown, fmt.Sprintf("The directory %s could not be looked at (%s); it is tried again.", dir, cause(err))}
}

// cause is the system's own words without the call and the path.
func cause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// Inspector looks at directories. The zero value is ready; one Inspector serves
// many goroutines.
type Inspector struct {
	mu sync.Mutex
	// pending holds the looks that have not come back. A dead mount can keep one
	// for ever: it is then the only one for its directory.
	pending map[string]*inspection
}

// inspection is one look at a directory. given is true once somebody has waited
// for it in vain: nobody waits for it again.
type inspection struct {
	ended chan struct{}
	given bool
}

// Inspect says whether a client could run in dir, which it does not change. What
// it says was seen after it was called. It returns at the latest when ctx ends,
// then with Unknown, and at once while an earlier look has not come back that
// was waited for in vain.
func (i *Inspector) Inspect(ctx context.Context, dir string) Finding {
	for {
		result, other := i.look(dir)
		if other != nil && other.given {
			return silent(dir)
		}
		var ended chan struct{}
		if other != nil {
			ended = other.ended
		}
		select {
		case finding := <-result:
			return finding
		case <-ended:
		case <-ctx.Done():
			i.giveUp(dir)
			return silent(dir)
		}
	}
}

func silent(dir string) Finding {
	return Finding{Unknown, fmt.Sprintf("The directory %s did not answer in time; it is tried again.", dir)}
}

// giveUp marks the look that is under way as one that may never come back.
func (i *Inspector) giveUp(dir string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if p, found := i.pending[dir]; found {
		i.pending[dir] = &inspection{ended: p.ended, given: true}
	}
}

// look starts looking at dir and returns where the finding will come; while
// another look is under way it returns that one.
func (i *Inspector) look(dir string) (result chan Finding, other *inspection) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if other, found := i.pending[dir]; found {
		return nil, other
	}
	if i.pending == nil {
		i.pending = map[string]*inspection{}
	}
	result, ended := make(chan Finding, 1), make(chan struct{})
	i.pending[dir] = &inspection{ended: ended}
	go func() {
		finding := Judge(dir, enterable(dir))
		i.mu.Lock()
		delete(i.pending, dir)
		i.mu.Unlock()
		close(ended)
		result <- finding
	}()
	return result, nil
}

func enterable(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return syscall.ENOTDIR
	}
	return unix.Access(dir, unix.X_OK)
}

// Ensure makes dir, with its parents and mode 0755, when it is missing and t is
// DirectoryOrCreate. Its error is an *Error.
func Ensure(dir string, t spec.WorkspaceType) error {
	err := enterable(dir)
	if errors.Is(err, fs.ErrNotExist) && t == spec.WorkspaceDirectoryOrCreate {
		err = os.MkdirAll(dir, 0o755)
	}
	return NewError(Judge(dir, err))
}

// Error is the finding of a directory in which no client can run.
type Error struct{ Finding }

// Error is the finding's sentence.
func (e *Error) Error() string { return e.Message }

// NewError is nil for a directory that is Ready.
func NewError(f Finding) error {
	if f.State == Ready {
		return nil
	}
	return &Error{f}
}
