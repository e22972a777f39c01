// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec/durable"
)

// staged is a complete state beside dir.
func staged(t *testing.T, dir string) string {
	t.Helper()
	staging, err := Stage(dir)
	require.NoError(t, err)
	put(t, staging, "instance", "new")
	put(t, staging, "records/n.json", "new")
	return staging
}

func TestAStateTakesTheEmptyPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "local", "state")
	aside, err := Place(staged(t, dir), dir, kinds, noon)
	require.NoError(t, err)
	require.Empty(t, aside)
	require.Equal(t, map[string]string{"instance": "new", "records/n.json": "new"}, contentOf(t, dir))
	beside, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, beside, 1)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// What lives in the runtime directory, and the work in worktrees, is not put aside.
func TestAStateThatIsThereIsMovedAsideWithoutWhatIsNoState(t *testing.T) {
	dir, files := state(t)
	open, err := os.Stat(filepath.Join(dir, "run/muxlet.sock"))
	require.NoError(t, err)
	aside, err := Place(staged(t, dir), dir, kinds, noon)
	require.NoError(t, err)
	require.Equal(t, dir+".before-import-20260501T120000Z", aside)
	require.Equal(t, map[string]string{
		"instance": "new", "records/n.json": "new", "run/muxlet.sock": "not state", "worktrees/a/main.go": "not state", ".probe": "not state",
	}, contentOf(t, dir))
	now, err := os.Stat(filepath.Join(dir, "run/muxlet.sock"))
	require.NoError(t, err)
	require.True(t, os.SameFile(open, now), "who has it open has it still")
	require.NoError(t, os.Remove(filepath.Join(aside, "records", "link.json")))
	before := contentOf(t, aside)
	for name, text := range files {
		require.Equal(t, text, before[name], name)
	}
	second, err := Place(staged(t, dir), dir, kinds, noon)
	require.NoError(t, err)
	require.Equal(t, aside+"-1", second, "nothing that was put aside is written over")
}

// Where two directories cannot be exchanged in one step, the other way comes to the same.
func TestAStateThatIsThereIsMovedAsideInTwoSteps(t *testing.T) {
	top := t.TempDir()
	staging, dir, aside := filepath.Join(top, "staging"), filepath.Join(top, "dir"), filepath.Join(top, "aside")
	put(t, staging, "x", "new")
	put(t, dir, "x", "old")
	require.NoError(t, inSteps(staging, dir, aside))
	require.Equal(t, map[string]string{"aside/x": "old", "dir/x": "new"}, contentOf(t, top))
	require.Error(t, inSteps(filepath.Join(top, "missing"), dir, filepath.Join(top, "other")))
	require.Equal(t, map[string]string{"aside/x": "old", "dir/x": "new"}, contentOf(t, top), "after an error all is as it was")
}

func TestOnlyWhatIsStateCountsAsExisting(t *testing.T) {
	dir, _ := state(t)
	names, err := Existing(dir, kinds)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"instance", "records", "turns", "events", "backup"}, names)
	for _, name := range names {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "records"), 0o700))
	names, err = Existing(dir, kinds)
	require.NoError(t, err)
	require.Empty(t, names)
	names, err = Existing(filepath.Join(dir, "missing"), kinds)
	require.NoError(t, err)
	require.Empty(t, names)
}

// A directory that is complete may be the only copy of something: it is no leftover.
func TestWhatABrokenOffImportLeavesIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state[1]")
	left := staged(t, dir)
	complete := staged(t, dir)
	require.NoError(t, os.Remove(filepath.Join(complete, stagingMark)))
	require.NoError(t, os.Mkdir(dir+".import-of-mine", 0o700))
	require.Equal(t, []string{left}, Leftovers(dir))
}

// A directory that is complete is left to nobody who was told nothing of it.
func TestAStateThatCannotTakeThePlaceLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(dir, []byte("a file"), 0o600))
	complete := staged(t, dir)
	before, err := os.Lstat(complete)
	require.NoError(t, err)
	err = notPlaced(complete, dir, before, unix.EBUSY)
	require.ErrorIs(t, err, unix.EBUSY)
	require.ErrorContains(t, err, "what is mounted there cannot be moved")
	require.NoDirExists(t, complete)

	// Exchanged already, it is what was in the place: that stays.
	exchanged := staged(t, dir)
	was, err := os.Lstat(dir)
	require.NoError(t, err)
	err = notPlaced(exchanged, dir, was, unix.EIO)
	require.ErrorContains(t, err, "the state before is "+exchanged)
	require.DirExists(t, exchanged)
}

// Power may go right after the exchange: sockets and the work in worktrees are in the
// directory before, and the next who takes the state moves them over.
func TestAnImportThatWasBrokenOffAfterTheExchangeIsFinished(t *testing.T) {
	for name, renamed := range map[string]bool{"before the directory got its name": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			dir, _ := state(t)
			staging := staged(t, dir)
			require.NoError(t, os.Remove(filepath.Join(staging, stagingMark)))
			aside := dir + asideInfix + "x"
			require.NoError(t, durable.Write(filepath.Join(staging, placingMark), Version, placing{filepath.Base(staging), filepath.Base(aside)}))
			require.NoError(t, inSteps(staging, dir, aside))
			if !renamed {
				require.NoError(t, os.Rename(aside, staging))
			}
			// A daemon that starts makes its runtime directory.
			put(t, dir, "run/lock", "mine")

			require.NoError(t, Finish(dir, kinds))
			require.Equal(t, map[string]string{
				"instance": "new", "records/n.json": "new", "run/lock": "mine", "run/muxlet.sock": "not state",
				"worktrees/a/main.go": "not state", ".probe": "not state",
			}, contentOf(t, dir))
			require.NoDirExists(t, staging)
			require.DirExists(t, filepath.Join(aside, "records"))
			require.NoError(t, Finish(dir, kinds), "and once is enough")
		})
	}
}
