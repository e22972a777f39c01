// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
)

// A respawn that fails for want of a descriptor, a process or a terminal leaves a
// pane that crashes tmux 3.3a when it is respawned or reset once more.
func TestAPaneInWhichTmuxCouldStartNothingIsRemovedAndNeverRespawned(t *testing.T) {
	h := newServer(t)
	other := h.create("other")
	dead := h.die(h.create("shop"))
	h.husk(dead.PaneID)
	husk := h.pane(dead.Labels.Attempt)
	require.Equal(t, observe.Dead, husk.State)
	require.True(t, husk.Husk(), husk.PID)

	server := h.listing().Server
	for _, kind := range []actuate.Kind{actuate.ActionRespawn, actuate.ActionRespawnKill, actuate.ActionRelease} {
		h.unchanged(actuate.Action{Kind: kind, Server: server, Pane: husk, Launch: h.launch("shop")})
	}
	outcome := h.Do(t.Context(), actuate.Action{Kind: actuate.ActionKillPane, Server: server, Pane: husk})
	require.Equal(t, actuate.Outcome{Result: actuate.ResultDone}, outcome, "what it shows is nobody's screen")
	left := h.listing()
	require.Len(t, left.Panes, 1)
	assert.Equal(t, other.PaneID, left.Panes[0].PaneID)
	h.create("shop")
}

// husk makes a respawn of the pane fail: a client that is connected already asks
// for it while the server may not open another file.
func (h *host) husk(pane string) {
	h.Helper()
	server := h.listing().Server.Process.PID
	client := exec.CommandContext(h.Context(), "tmux", "-S", h.tmux("display-message", "-p", "#{socket_path}"), "-C", "attach", "-t", "=other:")
	commands, err := client.StdinPipe()
	require.NoError(h, err)
	answers, err := client.StdoutPipe()
	require.NoError(h, err)
	require.NoError(h, client.Start())
	lines := bufio.NewScanner(answers)
	answered := func() {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "%end") || strings.HasPrefix(lines.Text(), "%error") {
				return
			}
		}
		require.NoError(h, lines.Err())
	}
	answered()
	var files []os.DirEntry
	same := 0
	require.Eventually(h, func() bool {
		now, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", server))
		if err != nil || len(now) != len(files) {
			files, same = now, 0
			return false
		}
		same++
		return same == 20 // the calls that came before are gone
	}, 20*time.Second, 5*time.Millisecond)
	var before unix.Rlimit
	require.NoError(h, unix.Prlimit(server, unix.RLIMIT_NOFILE, nil, &before))
	require.NoError(h, unix.Prlimit(server, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(files)), Max: before.Max}, nil))
	_, err = fmt.Fprintf(commands, "respawn-pane -t %s -- sleep 1000\n", pane)
	require.NoError(h, err)
	answered()
	require.NoError(h, unix.Prlimit(server, unix.RLIMIT_NOFILE, &before, nil))
	require.NoError(h, commands.Close())
	_ = client.Wait()
}
