// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// belongings are everything that a daemon could leave behind, by kind.
func (w *World) belongings() map[string][]string {
	w.Helper()
	all := map[string][]string{"files": w.files()}
	for _, p := range w.processes() {
		if strings.HasPrefix(p.argv, "tmux -N ") {
			continue // a call that ends by itself
		}
		all["processes"] = append(all["processes"], p.argv)
	}
	server := w.server()
	all["descriptors of the tmux server"] = lasting(w, server.pid)
	for what, command := range map[string][]string{
		"hooks": {"show-hooks", "-g"}, "tmux clients": {"list-clients"}, "buffers": {"list-buffers"}, "tmux sessions": {"list-sessions", "-F", "#{session_id} #{session_name}"},
		"panes": {"list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"}, "server options": {"show-options", "-s"}, "global options": {"show-options", "-g"},
		"window options": {"show-options", "-gw"}, "environment": {"show-environment", "-g"}, "bindings": {"list-keys"},
	} {
		out, err := w.tmux(command...)
		require.NoError(w, err, "%s: %s", what, out)
		all[what] = slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "@muxlet-waiting-until ") // the time until which the others hold
		})
	}
	events, err := w.api.Events(w.Context(), "")
	require.NoError(w, err)
	for _, e := range events.Items {
		all["events"] = append(all["events"], e.Name+" "+e.Message)
	}
	for _, list := range all {
		slices.Sort(list)
	}
	return all
}

// lasting descriptors of a process are the fewest of many looks: those of a call
// that ends come and go, what is left behind stays.
func lasting(w *World, pid int) (fewest []string) {
	w.Helper()
	fewest = descriptors(w, pid)
	for range 20 {
		<-time.After(tick)
		if open := descriptors(w, pid); len(open) < len(fewest) {
			fewest = open
		}
	}
	return fewest
}

// descriptors that a process has open, by what they lead to.
func descriptors(w *World, pid int) (open []string) {
	w.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	require.NoError(w, err)
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // it was that of a call
		}
		// The numbers of sockets and pipes are others each time.
		kind, _, _ := strings.Cut(target, ":[")
		open = append(open, kind)
	}
	return open
}

// files of the state and the runtime directory.
func (w *World) files() (paths []string) {
	w.Helper()
	for _, root := range []string{w.state, w.runtime} {
		require.NoError(w, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			paths = append(paths, path)
			return err
		}))
	}
	return paths
}

// atRest are the belongings once two looks in a row are the same: calls of tmux
// and temporary files come and go.
func (w *World) atRest() (now map[string][]string) {
	w.Helper()
	w.waitFor("nothing comes and goes", func() bool {
		before := now
		now = w.belongings()
		return assert.ObjectsAreEqual(before, now) && !slices.ContainsFunc(now["files"], func(path string) bool {
			return strings.HasPrefix(filepath.Base(path), ".tmp-")
		})
	})
	return now
}

// K6, A8.
func TestFiftyRestartsOfTheDaemonLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(5, "child session")
	w.declare("suspended", "stay", "suspend: true")
	w.declare("terminated", "stay")
	w.runs("terminated")
	w.does("terminate", "terminated")
	w.declare("done", "exit 0", "restartPolicy: OnFailure")
	w.waitFor("it is done", func() bool { return w.status("done") == "Completed" })
	// The first restart makes what is made once.
	w.stop()
	w.ready()
	want := w.atRest()

	finish := w.sample()
	var slowest time.Duration
	for n := range 50 {
		if n%2 == 0 {
			w.kill()
		} else {
			w.stop()
		}
		began := time.Now()
		w.start()
		slowest = max(slowest, time.Since(began))
		w.waitFor("the daemon has looked at everything", func() bool { return w.api.Ready(t.Context()) == nil })
		for name, pid := range before {
			require.Equal(t, pid, w.runs(name).Status.Client.Pid, "restart %d", n)
		}
	}
	finish()
	t.Logf("The slowest daemon answered after %s", slowest)
	w.ready()
	now := w.atRest()
	for what := range want {
		assert.Equal(t, want[what], now[what], what)
	}
	w.untouched(before)
	for name, count := range map[string]int{"suspended": 0, "terminated": 1, "done": 1} {
		assert.Len(t, w.startsOf(name), count, name)
	}
}

// ready waits for a daemon that has looked at everything, and starts one if there
// is none.
func (w *World) ready() {
	w.Helper()
	select {
	case <-w.daemon.over:
		w.start()
	default:
	}
	w.waitFor("the daemon has looked at everything", func() bool { return w.api.Ready(w.Context()) == nil })
	for _, name := range []string{"suspended", "terminated", "done"} {
		w.waitFor("the daemon has looked at "+name, func() bool { return w.status(name) != "Unknown" && w.status(name) != "Starting" })
	}
}

// A8: the daemon goes in the middle of anything, and never comes alone.
func TestADaemonThatIsToldToStopInTheMiddleOfStartsLeavesThemToTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	for round := range 5 {
		for n := range 3 {
			w.write(fmt.Sprintf("s%d-%d.yaml", round, n), w.document(fmt.Sprintf("s%d-%d", round, n), "stay"))
		}
		w.waitFor("one of them is on its way", func() bool { return len(w.startsOf(fmt.Sprintf("s%d-0", round))) > 0 || round%2 == 0 })
		w.stop()
		w.start()
	}
	for round := range 5 {
		for n := range 3 {
			name := fmt.Sprintf("s%d-%d", round, n)
			w.runs(name)
			assert.Len(t, w.clients(name), 1)
			assert.Len(t, w.startsOf(name), 1, "started once, whoever saw it through")
		}
	}
}
