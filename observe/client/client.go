// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package client looks at what coding agents leave outside of their panes: the
// transcripts of their conversations, the registry of Claude Code, the locks and
// rollouts of Codex. What it could not read is Unknown, never absent. It changes
// nothing: it takes no lock, writes no file and runs no program; and it keeps no
// text of a conversation, of which Answer alone returns any.
package client

import (
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

const (
	// defaultPatience is how long a look may take.
	defaultPatience = 2 * time.Second
	// maxStuck is how many looks at one config directory may be overdue before others
	// are not begun: each of them holds a thread while a mount does not answer.
	maxStuck = 4
)

// Eyes looks at the files of the clients of this system. The zero value is ready
// for use, and safe for concurrent use. It remembers which files have proven what,
// so that a large transcript is read once.
type Eyes struct {
	// Patience is how long a caller waits for one look; 2 s when it is 0. What takes
	// longer is Unknown.
	Patience time.Duration

	mu     sync.Mutex
	looks  map[string]*look
	stuck  map[string]int
	memory memory
	// disk is the file system; nil for that of the system.
	disk disk
}

// look is one that has been begun and has not come back.
type look struct {
	done    chan struct{}
	overdue bool
}

// Evidence says whether the conversation can be resumed, and who has it open. It
// returns within Patience.
func (e *Eyes) Evidence(ref observe.ConversationRef) observe.Evidence {
	switch {
	case ref.Class == nil:
		return observe.Evidence{Message: "its client class is not known"}
	case ref.ID == "":
		return observe.Evidence{Message: "its id is not known"}
	}
	unseen := observe.Evidence{Message: "its files could not be read in time"}
	return await(e, ref, "evidence", unseen, func() observe.Evidence {
		found := e.transcript(ref)
		found.Holder = e.holder(ref)
		return found
	})
}

// Files says what the client's own files tell of it. It returns within Patience.
func (e *Eyes) Files(ref observe.ConversationRef, client observe.Process) observe.Files {
	unseen := observe.Files{Activity: spec.ActivityUnknown}
	if ref.Class == nil || client.IsZero() {
		return unseen
	}
	if ref.ConfigDirectory == "" {
		ref.ConfigDirectory = configDirectoryOf(ref.Class, client)
	}
	if ref.ConfigDirectory == "" {
		return unseen
	}
	return await(e, ref, client.String(), unseen, func() observe.Files {
		if process.State(client) != observe.Running {
			return unseen
		}
		switch ref.Class.Reports {
		case spec.ReportsClaude:
			return e.claudeFiles(ref, client)
		case spec.ReportsCodex:
			return e.codexFiles(ref, client)
		case spec.ReportsNone:
		}
		return unseen
	})
}

// configDirectoryOf is the config directory of a client whose start nobody remembers, by
// its own environment; empty when that does not tell.
func configDirectoryOf(class *spec.ClientClassSpec, client observe.Process) string {
	lookup := func(name string) (string, bool) { return process.Variable(client, name) }
	if name := class.ConfigDirectory.Env; name != "" {
		if dir, set := lookup(name); set && dir != "" {
			return dir
		}
	}
	dir := spec.Expand(class.ConfigDirectory.Default, lookup)
	if !path.IsAbs(dir) {
		return ""
	}
	return dir
}

// holder is the pid of a live process that has the conversation open.
func (e *Eyes) holder(ref observe.ConversationRef) int {
	if ref.ConfigDirectory == "" {
		return 0
	}
	switch ref.Class.Reports {
	case spec.ReportsClaude:
		return e.claudeHolder(ref)
	case spec.ReportsCodex:
		return e.codexHolder(ref)
	case spec.ReportsNone:
	}
	return 0
}

// await returns what see finds, or unseen when that takes too long. A file on a
// dead mount never answers, and a thread that waits for it cannot be called back:
// the look goes on in a goroutine of its own, and until it has come back no other
// is begun for the same question, nor, beyond a few, for the same config
// directory. Its late finding is dropped, since it may be as old as the outage;
// what it has learned about large files stays.
func await[T any](e *Eyes, ref observe.ConversationRef, purpose string, unseen T, see func() T) T {
	patience := e.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	place, question := ref.ConfigDirectory, questionOf(ref, purpose)
	for {
		mine, earlier := e.begin(place, question)
		switch {
		case mine == nil && earlier == nil:
			return unseen
		case mine == nil:
			// It was begun before this one was asked: its finding may be too old.
			select {
			case <-earlier.done:
				continue
			case <-timeout.C:
				return unseen
			}
		}
		found := make(chan T, 1)
		go func() {
			defer e.end(place, question, mine)
			found <- see()
		}()
		select {
		case f := <-found:
			return f
		case <-timeout.C:
			e.giveUp(place, mine)
			return unseen
		}
	}
}

func questionOf(ref observe.ConversationRef, purpose string) string {
	words := []string{
		purpose, ref.ID, ref.Session, ref.Directory, ref.Home, ref.ConfigDirectory,
		ref.Class.Conversation.Transcript, ref.Class.Conversation.TranscriptPattern, string(ref.Class.Reports),
	}
	var question []byte
	for _, w := range words {
		question = strconv.AppendQuote(question, w)
	}
	return string(question)
}

// begin returns the caller's own look or the earlier one that is to be waited for;
// neither when waiting is of no use.
func (e *Eyes) begin(place, question string) (mine, earlier *look) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if earlier = e.looks[question]; earlier != nil {
		if earlier.overdue {
			return nil, nil
		}
		return nil, earlier
	}
	if e.stuck[place] >= maxStuck {
		return nil, nil
	}
	if e.looks == nil {
		e.looks, e.stuck = map[string]*look{}, map[string]int{}
	}
	mine = &look{done: make(chan struct{})}
	e.looks[question] = mine
	return mine, nil
}

func (e *Eyes) giveUp(place string, l *look) {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-l.done:
	default:
		l.overdue = true
		e.stuck[place]++
	}
}

func (e *Eyes) end(place, question string, l *look) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.looks, question)
	if l.overdue {
		if e.stuck[place]--; e.stuck[place] == 0 {
			delete(e.stuck, place)
		}
	}
	close(l.done)
}
