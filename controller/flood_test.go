// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/envtest"
)

// residentOf is the resident memory of a process in bytes.
func residentOf(e *envtest.Env, pid int) int {
	e.Helper()
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	require.NoError(e, err)
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	require.NoError(e, err)
	return pages * os.Getpagesize()
}

// T1: a million lines cost what historyLimit allows, about 1 kB a line, and not
// what was written; while they come the server answers.
func TestAFloodOfOutputKeepsTheTmuxServersMemoryBounded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is read from /proc")
	}
	t.Parallel()
	const lines = 2000
	e := envtest.Start(t, envtest.Config{})
	e.Run("other")
	server := e.Server()
	before := residentOf(e, server.PID)
	s := e.Fake("a", envtest.Script{})
	s.Spec.Client.Command = []string{"sh", "-c", "seq 1000000 2000000; exec sleep 1000"}
	s.Spec.Terminal.HistoryLimit = ptr.To[int32](lines)
	e.Apply(s)
	most := 0
	e.Eventually("all lines were written", func() bool {
		most = max(most, residentOf(e, server.PID))
		screen, err := e.Controller().Screen(t.Context(), "a", 1)
		return err == nil && screen == "2000000"
	})
	e.WaitFor("a", envtest.Incarnation(1))
	// The lines themselves are 8 MB; generous for what the pane's output buffers hold.
	assert.Less(t, most-before, lines<<10+6<<20)
	pane := e.Panes("a")[0].PaneID
	assert.Equal(t, strconv.Itoa(lines), e.Tmux("display-message", "-p", "-t", pane, "#{history_limit}"))

	screen, err := e.Controller().Screen(t.Context(), "a", 20000)
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(screen, "\n"), lines+50)
	// It is the same for the incarnations that follow in the pane.
	require.NoError(t, e.Controller().Restart(t.Context(), "a"))
	e.WaitFor("a", envtest.Incarnation(2))
	e.Eventually("all lines were written again", func() bool {
		most = max(most, residentOf(e, server.PID))
		screen, err := e.Controller().Screen(t.Context(), "a", 1)
		return err == nil && screen == "2000000"
	})
	assert.Less(t, most-before, lines<<10+6<<20)
}
