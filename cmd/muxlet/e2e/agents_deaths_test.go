// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// agentDeath is a way to lose a client.
type agentDeath struct {
	name string
	kill func(w *agentWorld, s *spec.Session)
	// survived is true when the client lives on.
	survived bool
}

func bySignal(sig unix.Signal) agentDeath {
	return agentDeath{name: unix.SignalName(sig), kill: func(w *agentWorld, s *spec.Session) { signal(w, pid(s), sig) }}
}

var agentDeaths = []agentDeath{
	bySignal(unix.SIGTERM), bySignal(unix.SIGKILL), bySignal(unix.SIGHUP),
	{name: "exit typed", kill: func(w *agentWorld, s *spec.Session) { w.types(s.Name, "/exit") }},
	{name: "kill-pane", kill: func(w *agentWorld, s *spec.Session) {
		out, err := w.tmux("kill-pane", "-t", s.Status.Tmux.Pane)
		require.NoError(w, err, out)
	}},
	{name: "tmux server", kill: func(w *agentWorld, _ *spec.Session) { signal(w, w.server().pid, unix.SIGKILL) }},
	{name: "daemon", survived: true, kill: func(w *agentWorld, _ *spec.Session) {
		w.kill()
		w.start()
	}},
	{name: "all together", kill: func(w *agentWorld, s *spec.Session) {
		w.kill()
		signal(w, w.server().pid, unix.SIGKILL)
		for _, p := range w.family(s.Name) {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		w.waitFor("everything is gone", func() bool { return len(w.processes()) == w.standing() })
		w.start()
	}},
}

// standing are the processes of the world that no death of the list ends: the model.
func (w *agentWorld) standing() int {
	var n int
	for _, p := range w.processes() {
		if strings.Contains(p.argv, "mockmodel") {
			n++
		}
	}
	return n
}

// A1, A10, B11.
func TestAnAgentComesBackWithItsConversation(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		for _, death := range agentDeaths {
			t.Run(death.name, func(t *testing.T) {
				t.Parallel()
				w := newAgentWorld(t, a)
				w.start()
				w.employ("s")
				w.ready("s")
				w.turn("s", "alpha", 1, "alpha")
				w.turn("s", "beta", 2, "alpha")
				before := w.kept("s", 2)
				death.kill(w, before)
				var after *spec.Session
				if death.survived {
					after = w.ready("s")
					assert.Equal(t, pid(before), pid(after))
				} else {
					after = w.back(before)
					w.resumed(after, conversation(before))
				}
				assert.Equal(t, conversation(before), conversation(after))
				w.turn("s", "gamma", 3, "alpha")
				last := w.kept("s", 3)
				assert.Equal(t, conversation(before), conversation(last))
				assert.Equal(t, after.Status.Client.Incarnation, last.Status.Client.Incarnation, "it was brought back once")
				assert.Empty(t, last.Status.Conversation.History)
			})
		}
	})
}

// B4: no conversation lands in the wrong session.
func TestAgentsInOneDirectoryKeepTheirOwnConversations(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		const n = 5
		var before []*spec.Session
		for i := range n {
			w.employ(fmt.Sprintf("s%d", i))
		}
		ids := map[string]string{}
		for i := range n {
			name := fmt.Sprintf("s%d", i)
			w.ready(name)
			w.turn(name, "first of "+name, 1, "first of "+name)
			before = append(before, w.kept(name, 1))
			ids[conversation(before[i])] = name
		}
		require.Len(t, ids, n)
		for _, s := range before {
			signal(t, pid(s), unix.SIGKILL)
		}
		for _, s := range before {
			after := w.back(s)
			w.resumed(after, conversation(s))
			assert.Equal(t, conversation(s), conversation(after))
		}
		for _, s := range before {
			w.turn(s.Name, "second of "+s.Name, 2, "first of "+s.Name)
		}
	})
}

// B7: an id whose conversation never had a turn is not resumed, and not used again.
func TestAnAgentThatIsKilledBeforeItsFirstTurnBeginsAnew(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		w.employ("s")
		before := w.ready("s")
		id := w.bound("s")
		signal(t, pid(before), unix.SIGKILL)
		after := w.back(before)
		assert.NotEqual(t, id, w.bound("s", id))
		assert.Contains(t, w.events("s"), spec.ReasonFreshStart)
		w.stays(after, 2*time.Second)
		w.turn("s", "alpha", 1, "alpha")
	})
}
