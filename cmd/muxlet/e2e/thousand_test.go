// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const thousand = 1000

// sleeper is the document of a session that costs next to nothing.
func sleeper(name, seconds string) string {
	return fmt.Sprintf(`apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata: {name: %s}
spec:
  client: {command: [sleep, "%s"], shellMode: None}
  workspace: {directory: /}
  updateStrategy: {type: Recreate}
  terminal: {columns: 80, rows: 24, historyLimit: 100}
`, name, seconds)
}

// pids of the clients that run, by session.
func (w *World) pids() map[string]int {
	w.Helper()
	list, err := w.api.Sessions(w.Context(), "")
	require.NoError(w, err)
	pids := map[string]int{}
	for _, s := range list.Items {
		if s.Status.Client.Ready {
			pids[s.Name] = s.Status.Client.Pid
		}
	}
	return pids
}

// A thousand sessions converge and stay. One that changes, one that is added and
// one that is deleted touch exactly three; a rewrite that says the same touches
// none.
func TestAThousandSessionsConvergeAndStay(t *testing.T) {
	w := newWorld(t, settings{"logging": settings{"verbosity": 0}, "tmux": settings{"timeout": "10s"}})
	name := func(i int) string { return fmt.Sprintf("s%04d", i) }
	for i := range thousand {
		w.write(name(i)+".yaml", sleeper(name(i), "100000"))
	}
	w.start()
	all := func(n int) {
		w.Helper()
		require.Eventually(w, func() bool { return len(w.pids()) == n }, 10*patience, 20*tick)
	}
	all(thousand)
	before := w.pids()

	changed, deleted, added := name(123), name(456), "added"
	w.write(changed+".yaml", sleeper(changed, "100001"))
	w.write(added+".yaml", sleeper(added, "100000"))
	require.NoError(t, os.Remove(filepath.Join(w.manifests, deleted+".yaml")))
	var after map[string]int
	w.waitFor("one is replaced, one is there, one is gone", func() bool {
		after = w.pids()
		return after[changed] != 0 && after[changed] != before[changed] && after[added] != 0 && after[deleted] == 0
	})
	untouched := maps.Clone(before)
	for _, n := range []string{changed, deleted} {
		delete(untouched, n)
	}
	same := maps.Clone(after)
	for _, n := range []string{changed, added} {
		delete(same, n)
	}
	assert.Equal(t, untouched, same, "998 of 1,000 are untouched")
	w.waitFor("the removed session is no more", func() bool {
		_, err := w.api.Session(w.Context(), deleted)
		return err != nil
	})

	for i := range thousand {
		if n := name(i); n != deleted {
			w.write(n+".yaml", w.read(n+".yaml"))
		}
	}
	w.holds("nothing is restarted by a rewrite that says the same", 3*time.Second, func() bool { return maps.Equal(after, w.pids()) })

	w.kill()
	w.start()
	all(thousand)
	assert.Equal(t, after, w.pids(), "the same clients after a kill -9 of the daemon")
}
