// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOfEachSessionTheLatestTurnsThatAreOverAreKept(t *testing.T) {
	w := newWorld(t, Limits{Turns: 2, Age: time.Hour})
	for range 5 {
		w.create(shop("x"))
	}
	w.create(Request{Session: "api", SessionUID: "u2", Prompt: "x"})
	all := w.All()
	w.finish(all[0])
	for _, n := range []int{5, 2, 1} {
		w.finish(all[n])
	}
	require.Len(t, w.All(), 6, "nothing goes by itself")
	require.NoError(t, w.Tidy())
	for range 2 {
		require.Equal(t, []string{"api-1", "shop-1", "shop-2", "shop-3", "shop-4"}, names(w.All()), "the one that was over first has gone")
		require.Equal(t, []string{"1.json", "1.prompt", "2.json", "2.prompt", "3.json", "3.prompt", "4.json", "4.prompt", "5.spent"}, w.files(uid))
		w.reopen()
	}
	w.limits.Turns = 1
	require.NoError(t, w.Tidy())
	require.Equal(t, []string{"api-1", "shop-1", "shop-3", "shop-4"}, names(w.All()))
}

func TestTurnsThatWereOverForLongGo(t *testing.T) {
	w := newWorld(t, Limits{Age: time.Hour})
	w.finish(w.create(shop("a")))
	w.create(shop("b"))
	w.now = w.now.Add(time.Hour)
	w.finish(w.create(shop("c")))
	require.NoError(t, w.Tidy())
	require.Equal(t, []string{"shop-2", "shop-3"}, names(w.All()), "what waits is not over")
	w.now = w.now.Add(-24 * time.Hour)
	require.NoError(t, w.Tidy())
	require.Equal(t, []string{"shop-2", "shop-3"}, names(w.All()), "a clock that jumps back removes nothing")
	w.limits.Age, w.now = 0, w.now.Add(24*time.Hour)
	require.NoError(t, w.Tidy())
	require.Equal(t, []string{"shop-2"}, names(w.All()))
}

func (w *world) hasPrompt(name string) bool {
	w.Helper()
	_, err := w.Prompt(name)
	if err != nil {
		require.ErrorIs(w, err, fs.ErrNotExist)
	}
	return err == nil
}

func (w *world) withPrompt() (out []string) {
	w.Helper()
	for _, t := range w.All() {
		if w.hasPrompt(t.Name) {
			out = append(out, t.Name)
		}
	}
	return out
}

func TestPromptsOfTurnsThatAreOverMakeRoomTheOldestFirst(t *testing.T) {
	w := newWorld(t, Limits{Age: time.Hour, Bytes: 400})
	prompt := strings.Repeat("x", 100)
	for range 4 {
		w.create(shop(prompt))
	}
	all := w.All()
	for _, n := range []int{2, 0} {
		w.finish(all[n])
	}
	for range 2 {
		require.Equal(t, []string{"shop-1", "shop-2", "shop-3", "shop-4"}, w.withPrompt())
		w.reopen() // what the prompts take is known after a restart
	}
	w.create(shop(prompt))
	require.Equal(t, []string{"shop-1", "shop-2", "shop-4", "shop-5"}, w.withPrompt(), "the one that was over first has none")
	require.EqualValues(t, 100, w.All()[2].Bytes, "its size is known")
	w.create(shop(prompt))
	require.Equal(t, []string{"shop-2", "shop-4", "shop-5", "shop-6"}, w.withPrompt())

	before := w.All()
	for range 2 {
		_, _, err := w.Create(shop("y"))
		require.ErrorIs(t, err, ErrFull)
		require.ErrorContains(t, err, "keep a turn of session shop: too many turns wait: their prompts take 400 bytes, and all prompts together may take 400")
		require.Equal(t, before, w.All())
		require.NotContains(t, w.files(uid), "7.prompt")
		w.reopen()
	}
	w.finish(before[1])
	require.Equal(t, "shop-7", w.create(shop("y")).Name)
}

// One that could never be kept drops nothing.
func TestAPromptThatIsTooLargeForAllRoomDropsNone(t *testing.T) {
	w := newWorld(t, Limits{Age: time.Hour, Bytes: 100})
	w.finish(w.create(shop("x")))
	_, _, err := w.Create(shop(strings.Repeat("x", 101)))
	require.ErrorIs(t, err, ErrFull)
	require.True(t, w.hasPrompt("shop-1"))
	w.create(shop(strings.Repeat("x", 100)))
	require.False(t, w.hasPrompt("shop-1"))
}

func TestALowerLimitOfBytesDropsPromptsOfTurnsThatAreOver(t *testing.T) {
	w := newWorld(t, Limits{Age: time.Hour})
	prompt := strings.Repeat("x", 100)
	first, second := w.create(shop(prompt)), w.create(shop(prompt))
	w.create(shop(prompt))
	w.finish(first)
	w.finish(second)
	w.limits.Bytes = 250
	require.NoError(t, w.Tidy())
	require.Equal(t, []string{"shop-2", "shop-3"}, w.withPrompt())
	w.limits.Bytes = 50
	require.NoError(t, w.Tidy())
	require.Equal(t, []string{"shop-3"}, w.withPrompt(), "what waits keeps its own")
	require.NoError(t, w.ForgetSession(uid))
	w.limits.Bytes = 100
	w.create(shop(prompt))
}

func TestSoManyTurnsOfOneSessionWaitAndNoMore(t *testing.T) {
	w := newWorld(t, Limits{Age: time.Hour})
	first := w.create(shop("x"))
	for n := int64(2); n <= MaxPending; n++ {
		w.enter(w.queues[uid], Turn{Name: fmt.Sprint("shop-", n), Number: n, Phase: Pending}, 0)
	}
	for range 2 {
		_, existed, err := w.Create(shop("x"))
		require.ErrorIs(t, err, ErrFull)
		require.ErrorContains(t, err, "1000, which is the most for one session")
		require.False(t, existed)
	}
	w.create(Request{Session: "api", SessionUID: "u2", Prompt: "x"})
	initial := w.create(Request{Session: "shop", SessionUID: uid, Initial: true, Prompt: "x"})
	w.finish(initial)
	w.finish(first)
	require.EqualValues(t, MaxPending+2, w.create(shop("x")).Number)
}

func TestWhatWasSetAsideIsBounded(t *testing.T) {
	w := newWorld(t, Limits{Age: time.Hour})
	for n := range maxQuarantined + 10 {
		path := filepath.Join(w.quarantine(), fmt.Sprintf("u-%d.json", n))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		at := start.Add(time.Duration(n) * time.Second)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, os.WriteFile(filepath.Join(w.quarantine(), "notes"), nil, 0o600))
	require.NoError(t, w.Tidy())
	left := w.files("quarantine")
	require.Len(t, left, maxQuarantined+1)
	require.NotContains(t, left, "u-9.json")
	require.Contains(t, left, "u-10.json")
	require.Contains(t, left, "notes")
}

func TestTheSizeOfWhatWasSetAsideIsBounded(t *testing.T) {
	w := newWorld(t, Limits{Age: time.Hour})
	for n := range 6 {
		path := filepath.Join(w.quarantine(), fmt.Sprintf("u-%d.prompt", n))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Truncate(path, maxQuarantinedBytes/3))
		at := start.Add(time.Duration(n) * time.Second)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, w.Tidy())
	require.Equal(t, []string{"u-3.prompt", "u-4.prompt", "u-5.prompt"}, w.files("quarantine"))
}

func TestTheNumbersOfSessionsThatWereForgottenAreBounded(t *testing.T) {
	w := newWorld(t, Limits{Age: time.Hour})
	w.finish(w.create(shop("x")))
	require.NoError(t, w.Forget("shop-1"))
	for n := range 3 {
		id := fmt.Sprintf("u%d", n)
		w.create(Request{Session: id, SessionUID: id, Prompt: "x"})
		require.NoError(t, w.ForgetSession(id))
		at := start.Add(time.Duration(n) * time.Second)
		require.NoError(t, os.Chtimes(w.Store.dir(id), at, at))
	}
	require.NoError(t, w.tidyForgotten(2))
	require.Equal(t, []string{uid, "quarantine", "u1", "u2"}, w.files(""), "one that lives stays, also without turns")
	require.Equal(t, "u0-2", w.create(Request{Session: "u0", SessionUID: "u0", Prompt: "x"}).Name)
}

func TestTidyGoesOnWhereThereIsNothing(t *testing.T) {
	w := newWorld(t, Limits{Turns: 1, Age: time.Minute, Bytes: 1})
	require.NoError(t, w.Tidy())
	require.NoError(t, os.RemoveAll(w.root()))
	require.NoError(t, w.Tidy())
}
