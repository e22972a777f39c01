// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// seat is a person in front of a terminal, which is a pane of a tmux of their own: what they
// see is what capture-pane has.
type seat struct {
	w      *World
	socket string
}

// sit opens a terminal in which a command runs. It is no tmux to the command unless nested.
func (w *World) sit(nested bool, argv ...string) *seat {
	w.Helper()
	s := &seat{w: w, socket: w.dir + "/tmux/seat"}
	line := []string{"-f", "/dev/null", "new-session", "-d", "-s", "seat", "-x", "110", "-y", "30", "--", "env"}
	if !nested {
		line = append(line, "-u", "TMUX", "-u", "TMUX_PANE")
	}
	s.tmux(append(line, argv...)...)
	s.tmux("set-option", "-g", "remain-on-exit", "on")
	s.tmux("set-option", "-g", "status", "off")
	w.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() })
	return s
}

func (s *seat) tmux(args ...string) string {
	s.w.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", s.socket}, args...)...)
	cmd.Env = s.w.env
	out, err := cmd.CombinedOutput()
	require.NoError(s.w, err, "tmux %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func (s *seat) screen() string {
	s.w.Helper()
	return s.tmux("capture-pane", "-p", "-t", "seat:")
}

// statusLine is the last line of the screen.
func (s *seat) statusLine() string {
	lines := strings.Split(strings.TrimRight(s.screen(), "\n"), "\n")
	return lines[len(lines)-1]
}

// presses keys, in tmux's names.
func (s *seat) presses(keys ...string) {
	s.w.Helper()
	s.tmux(append([]string{"send-keys", "-t", "seat:"}, keys...)...)
}

// sees waits until the screen shows all texts.
func (s *seat) sees(texts ...string) {
	s.w.Helper()
	s.seesThat(strings.Join(texts, " and "), func(screen string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(screen, text) })
	})
}

func (s *seat) seesThat(what string, holds func(screen string) bool) {
	s.w.Helper()
	defer func() {
		if s.w.Failed() {
			s.w.Logf("The screen:\n%s", s.screen())
		}
	}()
	s.w.waitFor("the screen shows "+what, func() bool { return holds(s.screen()) })
}

// isAt waits until the status line names the session.
func (s *seat) isAt(session string) {
	s.w.Helper()
	s.seesThat(session+" in front", func(string) bool { return strings.HasPrefix(s.statusLine(), " "+session+" ") })
}

// listIsGone waits until the list takes no key any more: that is a frame on the screen.
func (s *seat) listIsGone() {
	s.w.Helper()
	s.seesThat("no list any more", func(screen string) bool { return !strings.Contains(screen, "┌──") })
}

// isTold waits until the status line has the text.
func (s *seat) isTold(text string) {
	s.w.Helper()
	s.seesThat("the status line with "+text, func(string) bool { return strings.Contains(s.statusLine(), text) })
}

// answered waits until a session has ended its work and that was seen.
func (w *World) answered(name string) {
	w.Helper()
	w.becomes(name, "answered", func(s *spec.Session) bool {
		return activity(s).State == spec.ActivityIdle && !spec.WaitsForPerson(s)
	})
}

// Fifteen sessions, three of which wait: two keys lead to the one that waits longest; it is
// answered; two keys lead to the next one. The list leads anywhere, also to a session that
// has no client yet.
func TestTwoKeysLeadToTheSessionThatWaitsLongest(t *testing.T) {
	t.Parallel()
	all := agents(t)
	i := slices.IndexFunc(all, func(a agent) bool { return a.class == spec.ClassClaude })
	if i < 0 {
		t.Skip("there is no agent to test with")
	}
	w := newAgentWorld(t, all[i], settings{"activity": settings{"focusAfter": "500ms"}, "starts": settings{"maxInFlight": 8}})
	w.start()
	name := func(n int) string { return fmt.Sprintf("s%02d", n) }
	for n := 1; n <= 14; n++ {
		w.write(name(n)+".yaml", w.agentDocument(name(n), w.work, w.agent.asks))
	}
	w.write("s15.yaml", w.agentDocument("s15", w.work, w.agent.asks, "provisioningPolicy: OnDemand"))
	for n := 1; n <= 14; n++ {
		w.ready(name(n))
	}
	s := w.sit(false, binary, "attach", "s01")
	s.isAt("s01")
	assert.NotContains(t, s.statusLine(), "waiting")
	s.presses("C-b", "N")
	s.isTold("No session waits for you.")

	for i, n := range []int{5, 11, 2} {
		w.does("send", name(n), "!ask echo done-"+name(n), "--wait", "none")
		began := w.asked(name(n), spec.ReasonPermissionRequired).Status.Activity.AsksSince.Time
		s.isTold(fmt.Sprintf(" %d waiting: s05 ", i+1))
		w.waitFor("another second", func() bool { return time.Since(began) > 1100*time.Millisecond })
	}
	for _, c := range []struct{ at, left string }{{"s05", " 2 waiting: s11 "}, {"s11", " 1 waiting: s02 "}} {
		s.presses("C-b", "N")
		s.isAt(c.at)
		s.sees("echo done-"+c.at, "Yes")
		s.presses("Enter")
		s.isTold(c.left)
		w.answered(c.at)
	}

	s.presses("C-b", "g")
	s.sees("15 sessions, 1 waits for you", "● s02", "asks: PermissionRequired", "Dormant", "Enter go there")
	t.Logf("The list:\n%s", s.screen())
	s.presses("s", "1", "5")
	s.sees("1 of 15 sessions")
	s.presses("Enter")
	s.isAt("s15")
	s.listIsGone()
	w.ready("s15")
	s.presses("C-b", "g")
	s.sees("15 sessions, 1 waits for you")
	s.presses("Escape")
	s.listIsGone()
	s.isAt("s15")

	s.presses("C-b", "g")
	s.sees("● s02")
	s.presses("Enter")
	s.isAt("s02")
	s.listIsGone()
	s.sees("echo done-s02", "Yes")
	s.presses("Enter")
	w.answered("s02")
	s.seesThat("nobody waits", func(string) bool { return !strings.Contains(s.statusLine(), "waiting") })
	s.presses("C-b", "N")
	s.isTold("No session waits for you.")
	for n := 1; n <= 15; n++ {
		require.Equal(t, int64(1), w.ready(name(n)).Status.Client.Incarnation)
	}
}

// In a terminal of one's own, inside another tmux and inside muxlet's: each is attached as
// that asks for, and what goes wrong is told where it can be seen.
func TestAPersonComesToASessionFromAnywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"tmux": settings{"timeout": "1s", "prefix": "C-a"}})
	w.start()
	for _, name := range []string{"a", "b"} {
		w.declare(name, "say i-am-"+name)
		w.runs(name)
	}
	s := w.sit(true, binary, "pick")
	s.sees("2 sessions, none waits for you", " ›")
	s.presses("i", "x")
	s.sees("0 of 2 sessions")
	s.presses("BSpace", "BSpace", "b", "Enter")
	s.isTold("Attaching inside another tmux: its prefix is C-b, the inner one's is C-a.")
	s.isAt("b")
	s.sees("i-am-b")

	// A pane of the person's own in it: the client is switched, nothing is nested.
	s.presses("C-a", "c")
	w.waitFor("a window of theirs", func() bool { return strings.Contains(w.person("list-windows", "-t", "=b:"), "\n") })
	s.presses(binary+" attach a", "Enter")
	s.isAt("a")
	s.sees("i-am-a")
	assert.Equal(t, "1", w.person("list-clients", "-F", "1"), "one client of tmux, not one in another")

	w.kill()
	s.presses("C-a", "N")
	s.isTold("No muxlet daemon answers")
	assert.Equal(t, "0", w.person("display-message", "-p", "-t", "=a:", "#{pane_in_mode}"))
	w.start()
	w.runs("a")
	s.presses("C-a", "N")
	s.isTold("No session waits for you.")
	s.presses("C-a", "d")
	w.waitFor("nobody is attached", func() bool { return w.person("list-clients") == "" })
}
