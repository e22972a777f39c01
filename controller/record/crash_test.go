// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// writerDir makes the test binary a writer of records below this directory.
const writerDir = "MUXLET_TEST_RECORD_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		if err := write(dir, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// generation is a record whose size and content tell which one it is.
func generation(n int64) Record {
	r := small(n)
	r.Labels = map[string]string{"filler": strings.Repeat(strconv.FormatInt(n, 10), int(n%997)+1)}
	return r
}

// write saves one generation after the other, from where it finds the record, and
// says so on out after each.
func write(dir string, out io.Writer) error {
	s := NewStore(dir)
	if err := s.Prepare(); err != nil {
		return err
	}
	loaded, err := s.Load()
	if err != nil {
		return err
	}
	next := int64(1)
	if len(loaded.Records) > 0 {
		next = loaded.Records[0].Generation + 1
	}
	for ; ; next++ {
		if err := s.Save(generation(next)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, next); err != nil {
			return err
		}
	}
}

// M1: kill -9 at random instants of a thousand writes and more leaves the old or
// the new record, and in the second file a generation before it.
func TestAKilledWriterLeavesTheOldRecordOrTheNewOne(t *testing.T) {
	dir := t.TempDir()
	acknowledged, kills := int64(0), 0
	for deadline := time.Now().Add(time.Minute); (acknowledged < 1000 || kills < 40) && time.Now().Before(deadline); kills++ {
		acknowledged = max(acknowledged, killWriter(t, dir, 1+rand.IntN(50)))
		s := NewStore(dir)
		loaded, err := s.Load()
		require.NoError(t, err)
		require.Empty(t, loaded.Bad)
		require.Empty(t, loaded.Recovered)
		require.Len(t, loaded.Records, 1)
		got := loaded.Records[0]
		require.Contains(t, []int64{acknowledged, acknowledged + 1}, got.Generation, "after the last write that was acknowledged")
		require.Equal(t, generation(got.Generation), got)
		if previous, err := readRecord(s.previous(uid), uid); err == nil {
			require.Contains(t, []int64{got.Generation - 1, got.Generation}, previous.Generation)
			require.Equal(t, generation(previous.Generation), previous)
		} else {
			require.ErrorIs(t, err, os.ErrNotExist)
		}
	}
	require.Greater(t, kills, 10, "the disk is too slow for this test to prove anything")
	t.Logf("%d writes, %d kills", acknowledged, kills)
}

// killWriter lets a writer finish some writes, kills it a moment later, and
// returns the last generation that it acknowledged.
func killWriter(t *testing.T, dir string, writes int) (last int64) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), writerDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill := func() { _ = cmd.Process.Kill() } // it may have ended by itself, which Wait tells
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		last, err = strconv.ParseInt(lines.Text(), 10, 64)
		require.NoError(t, err)
		if n == writes {
			time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, kill)
		}
	}
	require.EqualError(t, cmd.Wait(), "signal: killed")
	return last
}
