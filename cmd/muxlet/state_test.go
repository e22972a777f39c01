// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/controller/export"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/spec/durable"
)

// remembering has a state with one session, removed ones and a lock.
func remembering(t *testing.T) *cli {
	t.Helper()
	c := newCLI(t, nil)
	store := record.NewStore(c.state())
	require.NoError(t, store.Prepare())
	require.NoError(t, store.Save(record.Record{UID: "u1", Name: "shop", Incarnation: 3, CreatedAt: noon}))
	for _, uid := range []string{"u2", "u3"} {
		require.NoError(t, store.Archive(record.Record{UID: uid, Name: uid, CreatedAt: noon}))
	}
	require.NoError(t, os.WriteFile(filepath.Join(c.state(), "lock"), []byte("1\n"), 0o600))
	return c
}

func (c *cli) state() string { return filepath.Join(c.dir, "state") }

// beside are the names in the directory of the state directory.
func (c *cli) beside() (names []string) {
	c.t.Helper()
	entries, err := os.ReadDir(c.dir)
	require.NoError(c.t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (c *cli) record() (record.Record, error) { return record.NewStore(c.state()).Read("u1") }

func TestAStateIsExportedAndImported(t *testing.T) {
	c := remembering(t)
	file := filepath.Join(c.dir, "x.tar.gz")
	require.Equal(t, 0, c.run("state", "export", file), c.errOut)
	assert.Regexp(t, `^exported 1 session, 2 removed sessions \(3 files, \d+B\) to /tmp/test/x\.tar\.gz\n$`, c.out)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	require.NoError(t, os.RemoveAll(c.state()))

	require.Equal(t, 0, c.run("state", "import", file, "--dry-run"), c.errOut)
	assert.Contains(t, c.out, "would be imported (dry run): 1 session, 2 removed sessions")
	assert.Equal(t, []string{"x.tar.gz"}, c.beside(), "a dry run makes nothing")

	require.Equal(t, 0, c.run("state", "import", file), c.errOut)
	assert.Contains(t, c.out, "imported: 1 session, 2 removed sessions")
	assert.Contains(t, c.out, "by muxlet devel at 2026-")
	assert.Contains(t, c.errOut, "muxlet daemon")
	r, err := c.record()
	require.NoError(t, err)
	assert.EqualValues(t, 3, r.Incarnation)
	assert.Equal(t, []string{"state", "x.tar.gz"}, c.beside())
}

func TestAnExportGoesThroughAPipe(t *testing.T) {
	c := remembering(t)
	require.Equal(t, 0, c.run("state", "export", "-"), c.errOut)
	other := newCLI(t, nil)
	other.stdin = c.out
	require.Equal(t, 0, other.run("state", "import", "-"), other.errOut)
	_, err := other.record()
	require.NoError(t, err)
	c.prepare = func(g *globals) { g.screen = func() bool { return true } }
	assert.Equal(t, exitError, c.run("state", "export", "-"))
	assert.Contains(t, c.errOut, "nothing for a terminal")
	assert.Empty(t, c.out)
}

// Whatever is refused, the state that is there stays, and nothing is left beside it.
func TestAnImportIsRefusedAndTouchesNothing(t *testing.T) {
	c := remembering(t)
	file, newer := filepath.Join(c.dir, "x.tar.gz"), filepath.Join(c.dir, "newer.tar.gz")
	require.Equal(t, 0, c.run("state", "export", file))
	path := filepath.Join(c.state(), "records", "u1.json")
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, durable.Write(path, record.Version+1, map[string]string{"uid": "u1"}))
	require.Equal(t, 0, c.run("state", "export", newer), "an older muxlet can save what a newer one has left")
	require.NoError(t, os.WriteFile(path, old, 0o600))
	cut := filepath.Join(c.dir, "cut.tar.gz")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cut, data[:len(data)-20], 0o600))
	before := c.beside()
	for _, test := range []struct {
		args []string
		why  string
	}{
		{[]string{file}, "there is a state in /tmp/test/state already: --force moves it aside"},
		{[]string{file, "--dry-run"}, "there is a state"},
		{[]string{newer, "--force"}, "written by a newer version of muxlet: version 3, this one reads up to 2: import it with that muxlet"},
		{[]string{cut, "--force"}, "is refused, nothing was touched: it is no whole export"},
		{[]string{file, "--force", "--max-size", "100"}, "--max-size takes more"},
		{[]string{path, "--force"}, "no whole export"},
		{[]string{file + "x", "--force"}, "cannot be read"},
	} {
		assert.Equal(t, exitError, c.run(append([]string{"state", "import"}, test.args...)...), test.args)
		assert.Contains(t, c.errOut, test.why)
		assert.Equal(t, before, c.beside(), test.args)
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(old), string(now))
	}
	assert.Equal(t, exitUsage, c.run("state", "import", file, "--max-size", "much"))
	held, err := lock(filepath.Join(c.state(), "lock"), "x")
	require.NoError(t, err)
	for _, args := range [][]string{{file, "--force"}, {file, "--force", "--dry-run"}} {
		assert.Equal(t, exitError, c.run(append([]string{"state", "import"}, args...)...), args)
		assert.Regexp(t, `state directory /tmp/test/state is in use by a daemon \(pid \d+\): stop it first`, c.errOut)
	}
	require.NoError(t, held.Close())
	assert.Equal(t, before, c.beside())
}

func TestAnImportByForceMovesTheStateAside(t *testing.T) {
	c := remembering(t)
	file := filepath.Join(c.dir, "x.tar.gz")
	store := record.NewStore(c.state())
	require.NoError(t, durable.Write(filepath.Join(c.state(), "instance"), 1, "mine"))
	require.Equal(t, 0, c.run("state", "export", file))
	require.NoError(t, store.Save(record.Record{UID: "u1", Name: "shop", Incarnation: 9, CreatedAt: noon}))
	left, err := export.Stage(c.state())
	require.NoError(t, err)
	require.Equal(t, 0, c.run("state", "import", file, "--force"), c.errOut)
	assert.Regexp(t, `What was there before is in /tmp/test/state\.before-import-\d+T\d+Z\.`, c.out)
	r, err := c.record()
	require.NoError(t, err)
	assert.EqualValues(t, 3, r.Incarnation)
	aside, err := filepath.Glob(c.state() + ".before-import-*")
	require.NoError(t, err)
	require.Len(t, aside, 1)
	r, err = record.NewStore(aside[0]).Read("u1")
	require.NoError(t, err)
	assert.EqualValues(t, 9, r.Incarnation)
	assert.NoDirExists(t, left, "what a broken-off import left is cleared away")
	assert.NotContains(t, c.errOut, "another instance")
	require.NoError(t, durable.Write(filepath.Join(c.state(), "instance"), 1, "other"))
	require.Equal(t, 0, c.run("state", "import", file, "--force"), c.errOut, "and again")
	assert.Contains(t, c.errOut, "Warning: the state before was another instance's.")
}

// Someone who has started a daemon before has directories, but nothing to lose.
func TestAnImportTakesThePlaceOfADirectoryWithoutState(t *testing.T) {
	c := remembering(t)
	file := filepath.Join(c.dir, "x.tar.gz")
	require.Equal(t, 0, c.run("state", "export", file))
	require.NoError(t, os.RemoveAll(c.state()))
	require.NoError(t, record.NewStore(c.state()).Prepare())
	require.NoError(t, os.Mkdir(filepath.Join(c.state(), "run"), 0o700))
	target := filepath.Join(c.dir, "real")
	require.NoError(t, os.Rename(c.state(), target))
	require.NoError(t, os.Symlink(target, c.state()))
	require.Equal(t, 0, c.run("state", "import", file), c.errOut)
	_, err := c.record()
	require.NoError(t, err)
	assert.DirExists(t, filepath.Join(c.state(), "run"))
	info, err := os.Lstat(c.state())
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink, "a link stays a link")
}

// What is no file must not become one.
func TestAnExportReplacesFilesAlone(t *testing.T) {
	c := remembering(t)
	pipe := filepath.Join(c.dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, c.state()} {
		assert.Equal(t, exitError, c.run("state", "export", path))
		assert.Contains(t, c.errOut, "it is no regular file")
	}
	info, err := os.Lstat(pipe)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeNamedPipe)
}

func TestAnExportWithoutAStateSaysSo(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, exitError, c.run("state", "export", filepath.Join(c.dir, "x")))
	assert.Equal(t, "Error: there is no state in /tmp/test/state: name the directory with --state-dir\n", c.errOut)
	assert.Empty(t, c.beside())
	assert.Equal(t, exitUsage, c.run("state", "expor"))
	assert.Equal(t, exitUsage, c.run("state", "import"))
}

// A daemon that somebody starts while an import is under way, where there was nothing to
// lock before, keeps what it has made.
func TestAnImportIsRefusedWhenADaemonHasComeMeanwhile(t *testing.T) {
	c := remembering(t)
	file := filepath.Join(c.dir, "x.tar.gz")
	require.Equal(t, 0, c.run("state", "export", file))
	before := c.beside()
	for _, runs := range []bool{true, false} {
		require.NoError(t, os.RemoveAll(c.state()))
		data, err := os.Open(file)
		require.NoError(t, err)
		var held *os.File
		c.prepare = func(g *globals) {
			g.in = io.MultiReader(&onFirstRead{func() {
				store := record.NewStore(c.state())
				require.NoError(t, store.Prepare())
				require.NoError(t, store.Save(record.Record{UID: "u1", Name: "shop", Incarnation: 9, CreatedAt: noon}))
				if runs {
					held, err = lock(filepath.Join(c.state(), "lock"), "x")
					require.NoError(t, err)
				}
			}}, data)
		}
		assert.Equal(t, exitError, c.run("state", "import", "-"))
		if runs {
			assert.Regexp(t, `in use by a daemon \(pid \d+\): stop it first`, c.errOut)
			require.NoError(t, held.Close())
		} else {
			assert.Contains(t, c.errOut, "there is a state in /tmp/test/state already")
		}
		require.NoError(t, data.Close())
		r, err := c.record()
		require.NoError(t, err)
		assert.EqualValues(t, 9, r.Incarnation)
		assert.Equal(t, before, c.beside())
	}
}

// onFirstRead does something when it is read, and has nothing.
type onFirstRead struct{ do func() }

func (o *onFirstRead) Read([]byte) (int, error) {
	o.do()
	return 0, io.EOF
}
