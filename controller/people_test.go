// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// room is the pane of a session, and what a person needs to know of it.
type room struct {
	*envtest.Env
	name, pane string
	client     envtest.Entry
}

func roomOf(e *envtest.Env, name string) room {
	e.Helper()
	return room{Env: e, name: name, pane: e.Panes(name)[0].PaneID, client: e.Client(name)}
}

// splits opens a pane of the person's beside ours and returns its id.
func (r room) splits(args ...string) string {
	r.Helper()
	return r.Tmux(append(slices.Concat([]string{"split-window", "-d", "-P", "-F", "#{pane_id}", "-t", r.pane}, args), "--", "sleep", "1000")...)
}

// visits makes a tmux session of the person's, and returns its name and its pane.
func (r room) visits() (session, pane string) {
	r.Helper()
	session = "my-" + r.name
	return session, r.Tmux("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", session, "--", "sleep", "1000")
}

// window is what tmux shows of the window that holds our pane: its id, its panes,
// whether it is zoomed, and its layout.
func (r room) window() string {
	r.Helper()
	return r.Tmux("display-message", "-p", "-t", r.pane, "#{window_id} #{window_name} #{window_layout} #{window_zoomed_flag}")
}

// holders are the ids of the tmux sessions that show our pane.
func (r room) holders() []string {
	r.Helper()
	return strings.Fields(r.Tmux("list-panes", "-a", "-f", "#{==:#{pane_id},"+r.pane+"}", "-F", "#{session_id}"))
}

// habits are what people do to the panes, windows and sessions around a client.
var habits = map[string]func(r room){
	"split": func(r room) {
		r.splits("-h")
		r.splits("-v", "-b")
		r.splits("-f")
	},
	"join-ours": func(r room) {
		_, theirs := r.visits()
		r.Tmux("join-pane", "-h", "-s", r.pane, "-t", theirs)
	},
	"join-theirs": func(r room) {
		_, theirs := r.visits()
		r.Tmux("join-pane", "-s", theirs, "-t", r.pane)
	},
	"break": func(r room) {
		r.splits("-h")
		r.Tmux("break-pane", "-d", "-s", r.pane)
	},
	"swap": func(r room) {
		_, theirs := r.visits()
		r.Tmux("swap-pane", "-s", r.pane, "-t", theirs)
	},
	"rename": func(r room) {
		r.Tmux("rename-window", "-t", r.pane, "x #{pid} $(date) é")
		r.Tmux("select-pane", "-t", r.pane, "-T", "my\ttitle")
		r.Tmux("rename-session", "-t", "="+r.name+":", "mine: #S.two")
	},
	"link": func(r room) {
		session, _ := r.visits()
		r.Tmux("link-window", "-s", r.pane, "-t", "="+session+":")
	},
	"group": func(r room) {
		r.Tmux("new-session", "-d", "-s", "my-"+r.name, "-t", "="+r.name)
		r.Tmux("new-window", "-d", "-t", "=my-"+r.name+":", "--", "sleep", "1000")
	},
	"group-alone": func(r room) {
		r.Tmux("new-session", "-d", "-s", "my-"+r.name, "-t", "="+r.name)
		r.Tmux("kill-session", "-t", "="+r.name)
	},
	"move": func(r room) {
		session, _ := r.visits()
		r.Tmux("move-window", "-s", r.pane, "-t", "="+session+":")
	},
	"zoom-ours": func(r room) {
		r.splits("-h")
		r.Tmux("resize-pane", "-Z", "-t", r.pane)
	},
	"zoom-theirs": func(r room) { r.Tmux("resize-pane", "-Z", "-t", r.splits("-h")) },
	"together": func(r room) {
		r.splits("-h")
		r.Tmux("set-option", "-w", "-t", r.pane, "synchronize-panes", "on")
	},
	"copy-mode":  func(r room) { r.Tmux("copy-mode", "-t", r.pane) },
	"clock-mode": func(r room) { r.Tmux("clock-mode", "-t", r.pane) },
	"choose-tree": func(r room) {
		r.splits()
		r.Tmux("choose-tree", "-t", r.pane)
	},
	"pipe": func(r room) { r.Tmux("pipe-pane", "-t", r.pane, "cat >/dev/null") },
	"layout": func(r room) {
		r.splits("-h")
		r.splits("-h")
		r.Tmux("select-layout", "-t", r.pane, "tiled")
		r.Tmux("rotate-window", "-t", r.pane)
		r.Tmux("select-pane", "-d", "-t", r.pane)
	},
	"mark": func(r room) {
		r.Tmux("select-pane", "-m", "-t", r.pane)
		r.Tmux("set-option", "-p", "-t", r.pane, "@mine", "a\tb~")
		r.Tmux("set-option", "-g", observe.OptionUID, "x")
	},
}

// theirs are the panes that are not ours, with their processes and the windows and
// sessions that hold them.
func theirs(e *envtest.Env) []string {
	e.Helper()
	return strings.Split(e.Tmux("list-panes", "-a", "-f", "#{==:#{"+observe.OptionRole+"},}",
		"-F", "#{session_id} #{window_id} #{pane_id} #{pane_pid} #{pane_dead}"), "\n")
}

// lookedAt is a session that was looked at after an instant.
func lookedAt(since time.Time) envtest.Check {
	return envtest.Check{Words: "was looked at again", Holds: func(s spec.Session) bool {
		return s.Status.Evidence != nil && s.Status.Evidence.ObservedAt.After(since)
	}}
}

// D8: whatever a person does around a client, nothing is restarted; the client
// comes back in its pane while everything else is as they left it; and the removal
// of the session takes its pane and nothing of theirs.
func TestWhatPeopleDoAroundAClientIsTheirs(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	names := inhabit(e)
	rooms := make([]room, len(names))
	for i, name := range names {
		rooms[i] = roomOf(e, name)
		habits[name](rooms[i])
	}
	before, windows := theirs(e), map[string]string{}
	for _, r := range rooms {
		windows[r.name] = r.window()
	}

	since := time.Now()
	for _, r := range rooms {
		s := e.WaitFor(r.name, envtest.Incarnation(1), lookedAt(since))
		assert.Equal(t, r.client.Process.PID, s.Status.Client.Pid, r.name)
		assert.Equal(t, r.pane, s.Status.Tmux.Pane, r.name)
		e.Eventually("its pane is where its status says: "+r.name, func() bool { return slices.Contains(r.holders(), s.Status.Tmux.Session) })
	}
	assert.Len(t, e.Launches(""), len(names), "nothing is started")
	e.Restart()
	for _, r := range rooms {
		e.WaitFor(r.name, envtest.Incarnation(1))
	}

	for _, r := range rooms {
		e.Kill(r.client.Process)
	}
	for _, r := range rooms {
		e.WaitFor(r.name, envtest.Incarnation(2))
		after := e.Panes(r.name)
		require.Len(t, after, 1, r.name)
		assert.Equal(t, r.pane, after[0].PaneID, r.name)
		assert.Equal(t, windows[r.name], r.window(), r.name)
		e.Eventually("the new client of "+r.name+" speaks, and the words of the old one stay", func() bool {
			return strings.Count(e.Tmux("capture-pane", "-p", "-S", "-", "-t", r.pane), "I am "+r.name[:3]) == 2
		})
	}
	assert.Equal(t, before, theirs(e))
	removeRooms(e, rooms, before)
}

// inhabit runs a session for each habit; its client has said who it is.
func inhabit(e *envtest.Env) (names []string) {
	e.Helper()
	for name := range habits {
		names = append(names, name)
		e.Apply(e.Fake(name, envtest.Script{Prints: "I am " + name[:3]}))
	}
	slices.Sort(names)
	for _, name := range names {
		e.WaitFor(name, envtest.Running)
		e.Eventually("the client of "+name+" speaks", func() bool {
			return strings.Contains(e.Tmux("capture-pane", "-p", "-t", e.Panes(name)[0].PaneID), "I am")
		})
	}
	return names
}

// removeRooms deletes the sessions of rooms, which have panes of people beside
// them.
func removeRooms(e *envtest.Env, rooms []room, before []string) {
	e.Helper()
	for _, r := range rooms {
		require.NoError(e, e.Controller().Delete(e.Context(), r.name))
	}
	for _, r := range rooms {
		e.WaitNoSession(r.name)
	}
	assert.Equal(e, before, theirs(e), "their panes are as they were")
	l, ok := e.Listing()
	require.True(e, ok)
	for _, p := range l.Panes {
		assert.Empty(e, p.Labels.Role, "pane %s", p.PaneID)
	}
	for name, id := range l.Sessions {
		assert.True(e, slices.ContainsFunc(before, func(line string) bool { return strings.HasPrefix(line, id+" ") }), "tmux session %s has nothing of theirs", name)
	}
}
