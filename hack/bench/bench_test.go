// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The smallest run of everything makes every row, and leaves nothing behind.
func TestAQuickRunMeasuresEverything(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "muxlet")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, "../../cmd/muxlet")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	b := &bench{quick: true}
	require.NoError(t, b.prepare(binary))
	require.NoError(t, b.measure(t.Context(), ""))
	entries, err := os.ReadDir(b.dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the clients' program and an empty directory")
	require.NoError(t, os.RemoveAll(b.dir))

	text := b.table.markdown(b.machine(t.Context()))
	require.Len(t, b.table.rows, 9)
	require.Contains(t, text, "| kill -9 of one of 4 clients")
	require.Contains(t, text, "| 4 of 4 clients are the same |")
	require.Contains(t, text, "tmux 3")
}

func TestTheTableReplacesTheOneBetweenTheMarkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(path, []byte("above\n"+begin+"\nold\n"+end+"\nbelow\n"), 0o600))
	for range 2 {
		require.NoError(t, rewrite(path, "| new |\n"))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "above\n"+begin+"\n| new |\n"+end+"\nbelow\n", string(data))
	}
	require.NoError(t, os.WriteFile(path, []byte("no markers"), 0o600))
	require.ErrorContains(t, rewrite(path, ""), "does not have the markers")
}

func TestAMissedGoalIsToldWithItsFactor(t *testing.T) {
	met := table{rows: []row{{what: "met", goal: "1", miss: over(1, 1)}, {what: "none"}}}
	require.Empty(t, met.missed())
	missed := table{rows: []row{{what: "start", value: "3 s", goal: "2 s", miss: over(3, 2)}}}
	require.Equal(t, "missed: start: 3 s, goal 2 s (×1.50)\n", missed.missed())
	require.Positive(t, over(1, 0))
}

func TestQuantilesAreOfWhatWasMeasured(t *testing.T) {
	require.Zero(t, quantile(nil, 0.5))
	took := []time.Duration{5, 1, 4, 2, 3}
	require.Equal(t, time.Duration(3), quantile(took, 0.5))
	require.Equal(t, time.Duration(5), quantile(took, 0.99))
	require.Equal(t, time.Duration(5), took[0], "the order is kept")
}
