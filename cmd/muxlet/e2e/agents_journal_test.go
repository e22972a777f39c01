// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// agentStart is a line of the fakes' journal: a start, a prompt, an answer, keys typed
// into a dialog, or an end. See hack/fakeagent.
type agentStart struct {
	Agent, Event, Session, Mark, Directory, Size, Conversation, Text string
	Pid                                                              int
	Argv                                                             []string
	Environment                                                      map[string]string
}

// journal of all fakes, in order.
func (w *World) journal() []agentStart {
	data, err := os.ReadFile(filepath.Join(w.dir, "agents/journal.jsonl"))
	if err != nil {
		return nil
	}
	var out []agentStart
	for line := range strings.Lines(string(data)) {
		var e agentStart
		if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &e) == nil {
			out = append(out, e)
		}
	}
	return out
}

// entries of one kind of a session.
func (w *World) entries(session, event string) []agentStart {
	var out []agentStart
	for _, e := range w.journal() {
		if e.Session == session && e.Event == event {
			out = append(out, e)
		}
	}
	return out
}

// started waits until a session's agent was started n times, and never more, and
// returns the last start.
func (w *World) started(session string, n int) agentStart {
	w.Helper()
	var all []agentStart
	w.waitFor(fmt.Sprintf("start %d of %s", n, session), func() bool {
		all = w.entries(session, "start")
		return len(all) >= n
	})
	require.Len(w, all, n, "starts of %s", session)
	return all[n-1]
}
