// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// wrapped is a session of Codex with one turn, and the process below its wrapper.
func wrapped(t *testing.T, a agent) (*agentWorld, *spec.Session, process) {
	t.Helper()
	w := newAgentWorld(t, a)
	w.start()
	w.employ("s")
	w.ready("s")
	w.turn("s", "alpha", 1, "alpha")
	w.kept("s", 1)
	s := w.ready("s")
	var engines []process
	for _, p := range w.family("s") {
		if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.pid)); err == nil && filepath.Base(program) == "codex" {
			engines = append(engines, p)
		}
	}
	require.Len(t, engines, 1)
	require.NotEqual(t, pid(s), engines[0].pid, "the client is a wrapper")
	return w, s, engines[0]
}

func codexOnly(t *testing.T, test func(*testing.T, agent)) {
	t.Helper()
	eachAgent(t, func(t *testing.T, a agent) {
		if a.class != spec.ClassCodex {
			t.Skip("only Codex has a wrapper")
		}
		test(t, a)
	})
}

// C6: a wrapper ends as the client does that it has started: that is one death.
func TestAWrapperThatEndsWithItsClientIsOneDeath(t *testing.T) {
	t.Parallel()
	codexOnly(t, func(t *testing.T, a agent) {
		w, before, engine := wrapped(t, a)
		signal(t, engine.pid, unix.SIGKILL)
		after := w.back(before)
		w.resumed(after, conversation(before))
		w.turn("s", "beta", 2, "alpha")
		last := w.kept("s", 2)
		assert.Equal(t, before.Status.Client.Incarnation+1, last.Status.Client.Incarnation)
		assert.EqualValues(t, 1, last.Status.ConsecutiveDeaths)
		assert.Equal(t, spec.ReasonKilled, last.Status.Client.LastTermination.Reason)
		events := w.events("s")
		assert.Equal(t, 1, strings.Count(events, spec.ReasonDied), events)
		assert.NotContains(t, events, spec.ReasonEngineGone)
	})
}
