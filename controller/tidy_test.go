// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// files below the state and the runtime directory, by their directories. Sockets
// are none.
func files(e *envtest.Env) map[string]int {
	e.Helper()
	count := map[string]int{}
	for _, root := range []string{e.State, e.Runtime} {
		require.NoError(e, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				rel, _ := filepath.Rel(e.Dir, filepath.Dir(path))
				count[rel]++
			}
			return nil
		}))
	}
	return count
}

// age makes every file that much older.
func age(e *envtest.Env, by time.Duration) {
	e.Helper()
	for _, root := range []string{e.State, e.Runtime} {
		require.NoError(e, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			at := info.ModTime().Add(-by)
			return os.Chtimes(path, at, at)
		}))
	}
}

// Sessions come and go every day: nothing is left of them after the time for
// which they are remembered, and what runs keeps what it needs.
func TestWhatComesAndGoesLeavesNothingForEver(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("stays")
	before := files(e)
	for n := range 3 {
		names := []string{"a", "b", "c"}
		for i := range names {
			names[i] += strings.Repeat("x", n)
		}
		e.Run(names...)
		for _, name := range names {
			require.NoError(t, e.Controller().Delete(t.Context(), name))
			e.WaitNoSession(name)
		}
	}
	for _, left := range []string{
		"state/receipts/4a0ff0b0-0000-4000-8000-000000000000.json", "state/receipts/.tmp-x.json-1", "state/.tmp-instance-1",
		"state/records/.tmp-x.json-1", "state/archive/.tmp-x.json-1", "state/events/.tmp-events.jsonl-1",
		"state/quarantine/4a0ff0b0-0000-4000-8000-000000000000.json", "state/backup/1/records/x.json", "state/backup/1/.tmp-x-1",
		"state/hooks/gone-settings.json", "state/hooks/.tmp-gone-settings.json-1", "run/.tmp-tmux.conf-1",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(e.Dir, left)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(e.Dir, left), []byte("{"), 0o600))
	}
	require.Equal(t, 9, files(e)["state/archive"]-1)
	require.Equal(t, 10, files(e)["run/lease"])
	e.Restart()
	e.WaitFor("stays", envtest.Running)
	e.Always(stays, "what is young is kept", func() bool { return files(e)["state/archive"] == 9 })

	e.Drop()
	age(e, 2*time.Hour)
	e.Boot()
	e.WaitFor("stays", envtest.Running)
	e.Eventually("all that is left is what was there before", func() bool {
		now := files(e)
		for dir, n := range now {
			if n > before[dir] {
				return false
			}
		}
		return true
	})
	assert.Equal(t, before["run/lease"], files(e)["run/lease"])
	client := e.Client("stays")
	e.Restart()
	e.WaitFor("stays", envtest.Running)
	assert.Equal(t, client.Process, e.Client("stays").Process)
	e.Kill(client.Process)
	e.WaitFor("stays", envtest.Incarnation(2))
}

// A client that was left running holds its lease: another file in its place would
// let a second one run.
func TestTheLeaseOfAClientThatWasLeftRunningIsKept(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	s := e.Fake("a", envtest.Script{})
	s.Spec.DeletionPolicy = spec.DeletionOrphan
	e.Apply(s)
	e.WaitFor("a", envtest.Running)
	client, uid := e.Client("a"), e.Record("a").UID
	require.NoError(t, e.Controller().Delete(t.Context(), "a"))
	e.WaitNoSession("a")
	e.Drop()
	age(e, 2*time.Hour)
	e.Boot()
	e.Run("b")
	assert.FileExists(t, filepath.Join(e.Runtime, "lease", uid))
	e.Apply(s)
	e.WaitFor("a", envtest.Incarnation(1))
	assert.Equal(t, client.Process, e.Client("a").Process, "a client that runs is taken back whatever its age")
	assert.Equal(t, uid, e.Record("a").UID)
}

// DESIGN 8: a name added again within the time gets its uid back, after it a new
// one.
func TestANameThatIsAddedAgainTooLateIsAnotherSession(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) { o.Initial.ArchiveFor = 720 * time.Hour }})
	again := func(by time.Duration) (uid string, incarnation int64) {
		require.NoError(t, e.Controller().Delete(t.Context(), "a"))
		e.WaitNoSession("a")
		age(e, by)
		e.Apply(e.Fake("a", envtest.Script{}))
		s := e.WaitFor("a", envtest.Running)
		return string(s.UID), s.Status.Client.Incarnation
	}
	e.Run("a")
	first := e.Record("a").UID
	uid, incarnation := again(719 * time.Hour)
	assert.Equal(t, first, uid)
	assert.EqualValues(t, 2, incarnation)
	uid, incarnation = again(721 * time.Hour)
	assert.NotEqual(t, first, uid)
	assert.EqualValues(t, 1, incarnation)
}
