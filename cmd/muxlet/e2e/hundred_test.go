// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trace of a session: what an edit may change.
type trace struct {
	uid                     string
	pid                     int
	incarnation, generation int64
}

// all sessions that run and are ready.
func (w *World) all() map[string]trace {
	list, err := w.api.Sessions(w.Context(), "")
	if err != nil {
		return nil
	}
	runs := map[string]trace{}
	for i := range list.Items {
		if s := &list.Items[i]; isRunning(s) {
			runs[s.Name] = trace{string(s.UID), pid(s), s.Status.Client.Incarnation, s.Generation}
		}
	}
	return runs
}

// become waits until all sessions are as they should be, and returns them.
func (w *World) become(what string, as func(map[string]trace) bool) (now map[string]trace) {
	w.Helper()
	w.waitFor(what, func() bool {
		now = w.all()
		return now != nil && as(now)
	})
	return now
}

// What people of neighbouring tools ask for, with a hundred sessions.
func TestOfAHundredSessionsOnlyWhatWasEditedIsTouched(t *testing.T) {
	t.Parallel()
	const many = 100
	w := newWorld(t, settings{"starts": settings{"maxInFlight": 20}})
	name := func(i int) string { return fmt.Sprintf("s%02d", i) }
	text := func(i int, seconds string, lines ...string) string {
		return document(name(i), `[sleep, "`+seconds+`"]`, w.home+"/work", append(lines, "updateStrategy: {type: Recreate}")...)
	}
	for i := range many {
		w.write(name(i)+".yaml", text(i, "1000000"))
	}
	w.start()
	before := w.become("all run", func(now map[string]trace) bool { return len(now) == many })

	for i := range many {
		w.write(name(i)+".yaml", text(i, "1000000"))
		require.NoError(t, os.WriteFile(w.manifests+"/"+name(i)+".yaml", []byte(text(i, "1000000")), 0o644))
	}
	w.holds("applying twice changes nothing", 2*time.Second, func() bool { return maps.Equal(before, w.all()) })

	began := time.Now()
	w.write(name(7)+".yaml", text(7, "2000000"))
	w.write(name(many)+".yaml", text(many, "1000000"))
	requireRemoved(w, name(8)+".yaml")
	now := w.become("one is edited, one added, one removed", func(now map[string]trace) bool {
		_, removed := now[name(8)]
		return !removed && now[name(many)].pid != 0 && now[name(7)].incarnation == 2
	})
	t.Logf("One edit, one addition, one removal among %d took %s, of which the settle time is 500ms", many, time.Since(began).Round(time.Millisecond))
	assert.Less(t, time.Since(began), 10*time.Second)
	before[name(7)], before[name(many)] = now[name(7)], now[name(many)]
	delete(before, name(8))
	w.holds("three are touched", 2*time.Second, func() bool { return maps.Equal(before, w.all()) })

	for n := range before {
		path := n + ".yaml"
		w.write(path, strings.Replace(w.read(path), "spec:\n", "spec:\n  terminationGracePeriodSeconds: 3\n", 1))
		r := before[n]
		r.generation++
		before[n] = r
	}
	w.become("the policy of all is taken", func(now map[string]trace) bool { return maps.Equal(before, now) })
	w.holds("a policy restarts nothing", 2*time.Second, func() bool { return maps.Equal(before, w.all()) })

	w.write(name(20)+".yaml", strings.Replace(text(20, "3000000"), "workspace:", "workspce:", 1))
	w.write(name(21)+".yaml", "kind: [\n")
	w.write(name(22)+".yaml", text(22, "3000000"))
	now = w.become("the good one converges", func(now map[string]trace) bool { return now[name(22)].incarnation == 2 })
	before[name(22)] = now[name(22)]
	said := w.muxlet("get").errOut
	assert.Contains(t, said, "Problem: "+w.manifests+"/s20.yaml:9:3: spec.workspce: unknown field")
	assert.Contains(t, said, "Problem: "+w.manifests+"/s21.yaml:")
	assert.Equal(t, 2, strings.Count(said, "Problem:"))
	w.holds("the bad ones go on as they were", 2*time.Second, func() bool { return maps.Equal(before, w.all()) })
}
