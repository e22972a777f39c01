// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// top is a session's row: millicores, and the pids of its processes.
func (w *World) top(name string) (cpu int, pids map[int]string) {
	w.Helper()
	var list struct {
		Items []struct {
			Metadata  struct{ Name string }
			Usage     struct{ CPU string }
			Processes []struct {
				PID     int
				Command string
			}
		}
	}
	require.NoError(w, json.Unmarshal([]byte(w.does("top", "--interval", "300ms", "-o", "json")), &list))
	pids = map[int]string{}
	for _, m := range list.Items {
		if m.Metadata.Name != name {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSuffix(m.Usage.CPU, "m"))
		require.NoError(w, err)
		cpu = n
		for _, p := range m.Processes {
			pids[p.PID] = p.Command
		}
	}
	return cpu, pids
}

func TestTopCountsWhatHasLeftTheClientToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("quiet", "child plain child group child session")
	// A daemon that the client has started, its parent gone, and one that is busy.
	w.write("busy.yaml", document("busy", `[sh, -c, "(setsid sleep 1000001 &) ; while :; do :; done"]`, w.home+"/work"))
	w.declare("rests", "stay", "provisioningPolicy: OnDemand")
	w.start()
	quiet, busy := w.runs("quiet"), w.runs("busy")
	w.waitFor("top shows all processes of both", func() bool {
		_, q := w.top("quiet")
		_, b := w.top("busy")
		return len(q) == 4 && q[pid(quiet)] != "" && len(b) == 2 && b[pid(busy)] == "sh"
	})
	w.waitFor("the busy one uses a processor, and the quiet one none", func() bool {
		cpu, _ := w.top("busy")
		idle, _ := w.top("quiet")
		return cpu > 100 && idle < 50
	})
	text := w.does("top", "--sort-by", "cpu", "--interval", "300ms")
	assert.Regexp(t, `(?s)^NAME +CPU\(cores\) +MEMORY\(bytes\) +PROCESSES\nbusy +\d+m +\d+Mi +2\nquiet +\d+m +\d+Mi +4\n\(daemon\) +\d+m +[1-9]\d*Mi +\d+\n\(tmux server\) +\d+m +\d+Mi +1\nTOTAL +\d+m +\d+Mi +\d+\n$`, text)

	screen := w.open("top", "-w", "--interval", "200ms")
	screen.shows("TOTAL")
	w.stop()
	screen.shows("The daemon does not answer any more; waiting for it.")
	w.start()
	screen.shows("The daemon answers again.")
	assert.Equal(t, 0, screen.ends())
}
