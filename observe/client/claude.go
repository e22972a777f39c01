// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

const (
	// maxRegistration bounds a file of Claude's registry, in bytes.
	maxRegistration = 64 << 10
	// maxWaiting bounds what a client says that it waits for, in characters.
	maxWaiting = 80
)

// registration is what Claude Code tells of one of its processes, in
// sessions/<pid>.json of its config directory. It is written once the first dialogs
// are answered, follows /clear, is removed at an orderly exit and left behind by
// SIGKILL (measured on 2.1.197 and 2.1.332; not documented by its makers).
type registration struct {
	PID       int    `json:"pid"`
	SessionID string `json:"sessionId"`
	// ProcStart is field 22 of /proc/PID/stat, as a string.
	ProcStart string `json:"procStart"`
	// Kind is interactive for one that a person talks to.
	Kind string `json:"kind"`
	// Status is idle, busy or waiting; WaitingFor only comes with waiting.
	Status     string `json:"status"`
	WaitingFor string `json:"waitingFor"`
	// StatusUpdatedAt is when the status changed, in milliseconds since 1970.
	StatusUpdatedAt int64 `json:"statusUpdatedAt"`
}

// of says whether it is that process's own: its pid alone is used again.
func (r registration) of(p observe.Process) bool {
	return r.PID == p.PID && r.ProcStart == strconv.FormatUint(p.Ticks, 10)
}

// current says whether the process that wrote it still runs.
func (r registration) current() bool {
	p, live := process.Identify(r.PID)
	return live == observe.Running && r.of(p)
}

func registryOf(ref observe.ConversationRef) string {
	return path.Join(ref.ConfigDirectory, "sessions")
}

func (e *Eyes) readRegistration(name string) (registration, bool) {
	data, err := e.readSmall(name, maxRegistration)
	if err != nil {
		return registration{}, false
	}
	var r registration
	// A file that is just being written does not parse.
	return r, json.Unmarshal(data, &r) == nil
}

func (e *Eyes) readSmall(name string, limit int64) ([]byte, error) {
	info, err := e.files().Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("reading %s: %w", name, errNotAFile)
	}
	f, err := e.files().Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// claudeHolder is the process that has the conversation. Claude Code itself has no
// lock: two of them write one transcript, and turns are lost.
func (e *Eyes) claudeHolder(ref observe.ConversationRef) int {
	names, err := e.files().Names(registryOf(ref))
	if err != nil {
		return 0
	}
	for _, n := range names {
		// Beside them lie <pid>.<64 digits>.key files.
		stem, ok := strings.CutSuffix(n, ".json")
		if pid, err := strconv.Atoi(stem); !ok || err != nil || pid <= 0 {
			continue
		}
		r, ok := e.readRegistration(path.Join(registryOf(ref), n))
		if ok && r.SessionID == ref.ID && r.current() {
			return r.PID
		}
	}
	return 0
}

// claudeFiles takes the registration of the client itself or, when the client is a
// wrapper, that of its only child that has one. An agent that the client's own tools
// have started lies deeper, runs for no person, or is the same program as the client.
func (e *Eyes) claudeFiles(ref observe.ConversationRef, client observe.Process) observe.Files {
	if own, ok := e.registrationOf(ref, client); ok {
		return own.files()
	}
	children, err := process.Children(client)
	if err != nil {
		return observe.Files{Activity: spec.ActivityUnknown}
	}
	var wrapped []registration
	for _, child := range children {
		r, ok := e.registrationOf(ref, child)
		if ok && (r.Kind == "" || r.Kind == "interactive") && !sameProgram(client, child) {
			wrapped = append(wrapped, r)
		}
	}
	if len(wrapped) != 1 {
		return observe.Files{Activity: spec.ActivityUnknown}
	}
	return wrapped[0].files()
}

func (e *Eyes) registrationOf(ref observe.ConversationRef, p observe.Process) (registration, bool) {
	r, ok := e.readRegistration(path.Join(registryOf(ref), strconv.Itoa(p.PID)+".json"))
	return r, ok && r.of(p)
}

func (r registration) files() observe.Files {
	f := observe.Files{Conversation: r.SessionID, Activity: spec.ActivityUnknown}
	switch r.Status {
	case "idle":
		f.Activity = spec.ActivityIdle
	case "busy":
		f.Activity = spec.ActivityWorking
	case "waiting":
		f.Activity, f.Waiting = spec.ActivityAwaitingInput, plainWords(r.WaitingFor)
	}
	if r.StatusUpdatedAt > 0 {
		f.ActivityAt = time.UnixMilli(r.StatusUpdatedAt)
	}
	return f
}

// plainWords bounds what another program has written.
func plainWords(text string) string {
	words := []rune(strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, text))
	return string(words[:min(len(words), maxWaiting)])
}
