// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

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

	"github.com/muxlet/muxlet/spec"
)

// writerDir makes the test binary a writer of turns below this directory.
const writerDir = "MUXLET_TEST_TURN_WRITER"

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

// promptOf is a prompt whose size and content tell whose it is.
func promptOf(number int64) string {
	return strings.Repeat(strconv.FormatInt(number, 10), int(number%997)*7+1)
}

// write makes one turn after the other, lets each be handed over and end, forgets the
// old ones, and says so on out after each step, and before one that removes.
func write(dir string, out io.Writer) error {
	s := NewStore(dir, time.Now, func() Limits { return Limits{} })
	if err := s.Prepare(); err != nil {
		return err
	}
	if problems, err := s.Load(); err != nil || len(problems) > 0 {
		return fmt.Errorf("%w: %v", err, problems)
	}
	next := int64(1)
	if all := s.All(); len(all) > 0 {
		next = all[len(all)-1].Number + 1
	}
	for ; ; next++ {
		if err := step(s, next, func(what string, n int64) { _, _ = fmt.Fprintln(out, what, n) }); err != nil {
			return err
		}
	}
}

func step(s *Store, next int64, say func(string, int64)) error {
	t, _, err := s.Create(shop(promptOf(next)))
	if err != nil {
		return err
	}
	say("made", t.Number)
	if t, err = s.Update(t.Begin(time.Now(), spec.SubmitPaste, 1, "a", "")); err != nil {
		return err
	}
	say("saved", t.Number)
	if t, err = s.Update(t.Deliver(time.Now(), "").Complete(time.Now())); err != nil {
		return err
	}
	say("saved", t.Number)
	for _, old := range s.All() {
		if old.Number > next-5 {
			break
		}
		say("forgetting", old.Number)
		if old.Phase != Over {
			if _, err := s.Update(old.Cancel(time.Now())); err != nil {
				return err
			}
		}
		if err := s.Forget(old.Name); err != nil {
			return err
		}
		say("forgotten", old.Number)
	}
	return nil
}

// told is what a writer has told of one turn: how often it was saved, and whether it
// goes or has gone.
type told struct {
	saves       int64
	going, gone bool
}

// M1: kill -9 at random instants of a thousand writes and more leaves each turn as it
// was or as it was to be, with its prompt, and loses none that was made.
func TestAKilledWriterLeavesEachTurnOldOrNew(t *testing.T) {
	dir := t.TempDir()
	turns, writes, kills := map[int64]told{}, 0, 0
	for deadline := time.Now().Add(time.Minute); (writes < 1000 || kills < 40) && time.Now().Before(deadline); kills++ {
		writes += killWriter(t, dir, 1+rand.IntN(50), turns)
		s := NewStore(dir, time.Now, func() Limits { return Limits{} })
		require.NoError(t, s.Prepare())
		problems, err := s.Load()
		require.NoError(t, err)
		require.Empty(t, problems)
		requireTold(t, s, turns)
		requireNoRubbish(t, s)
	}
	require.Greater(t, kills, 10, "the disk is too slow for this test to prove anything")
	t.Logf("%d writes, %d kills", writes, kills)
}

// requireTold compares what is on disk with what was told, to which it adds the turn
// that was made without a word.
func requireTold(t *testing.T, s *Store, turns map[int64]told) {
	t.Helper()
	highest := int64(0)
	for n := range turns {
		highest = max(highest, n)
	}
	for _, got := range s.All() {
		was, known := turns[got.Number]
		if !known {
			require.Equal(t, highest+1, got.Number, "no number is left out or given again")
			turns[got.Number] = told{saves: 1}
			was.saves = 1
		}
		require.False(t, was.gone, got.Name)
		if !was.going {
			require.Contains(t, []int64{was.saves, was.saves + 1}, got.Revision, got.Name)
			require.Equal(t, map[int64]Phase{1: Pending, 2: Delivering, 3: Over}[got.Revision], got.Phase)
		}
		prompt, err := s.Prompt(got.Name)
		require.NoError(t, err)
		require.Equal(t, promptOf(got.Number), prompt)
	}
	for n, was := range turns {
		got, ok := s.Turn(fmt.Sprint("shop-", n))
		require.True(t, ok || was.going || was.gone, "turn %d is lost", n)
		turns[n] = told{saves: got.Revision, gone: !ok}
	}
}

// requireNoRubbish fails for a file that belongs to no turn.
func requireNoRubbish(t *testing.T, s *Store) {
	t.Helper()
	entries, err := os.ReadDir(s.dir(uid))
	require.NoError(t, err)
	for _, e := range entries {
		number, end, ok := numberOf(e.Name())
		require.True(t, ok, e.Name())
		if end == suffix || end == promptSuffix {
			_, kept := s.Turn(fmt.Sprint("shop-", number))
			require.True(t, kept, e.Name())
		}
	}
}

// killWriter lets a writer take some steps, kills it a moment later, and adds what it
// has told.
func killWriter(t *testing.T, dir string, steps int, turns map[int64]told) (n int) {
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
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n++
		var what string
		var number int64
		_, err := fmt.Sscan(lines.Text(), &what, &number)
		require.NoError(t, err)
		was := turns[number]
		switch what {
		case "made":
			require.Zero(t, was, "turn %d was made twice", number)
			was.saves = 1
		case "saved":
			was.saves++
		case "forgetting":
			was.going = true
		case "forgotten":
			was.gone = true
		}
		turns[number] = was
		if n == steps {
			time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, kill)
		}
	}
	require.EqualError(t, cmd.Wait(), "signal: killed")
	return n
}
