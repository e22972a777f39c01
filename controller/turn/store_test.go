// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

const uid = "22222222-2222-4222-8222-222222222222"

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world is a store on a directory that outlives it, and a clock.
type world struct {
	*testing.T
	dir    string
	now    time.Time
	limits Limits
	*Store
	problems []error
}

// newWorld opens a store. Each look at the clock takes a second.
func newWorld(t *testing.T, limits Limits) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir(), now: start, limits: limits}
	w.reopen()
	return w
}

func (w *world) clock() time.Time {
	w.now = w.now.Add(time.Second)
	return w.now
}

// reopen forgets what is in memory, as a new daemon does.
func (w *world) reopen() {
	w.Helper()
	w.Store = NewStore(w.dir, w.clock, func() Limits { return w.limits })
	require.NoError(w, w.Prepare())
	var err error
	w.problems, err = w.Load()
	require.NoError(w, err)
}

func (w *world) create(r Request) Turn {
	w.Helper()
	t, existed, err := w.Create(r)
	require.NoError(w, err)
	require.False(w, existed)
	return t
}

func (w *world) update(t Turn) Turn {
	w.Helper()
	saved, err := w.Update(t)
	require.NoError(w, err)
	return saved
}

// finish ends a turn well.
func (w *world) finish(t Turn) Turn {
	w.Helper()
	return w.update(t.Deliver(w.clock(), "it has it").Complete(w.clock()))
}

// files of a directory below that of turns.
func (w *world) files(dir string) []string {
	w.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "turns", dir))
	require.NoError(w, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func names(turns []Turn) []string {
	out := []string{}
	for _, t := range turns {
		out = append(out, t.Name)
	}
	return out
}

func shop(prompt string) Request { return Request{Session: "shop", SessionUID: uid, Prompt: prompt} }

func TestATurnIsOnDiskWithItsPromptWhenItWasMade(t *testing.T) {
	w := newWorld(t, Limits{})
	deadline := start.Add(time.Hour)
	got := w.create(Request{Session: "shop", SessionUID: uid, ID: "r1", Deadline: deadline, Prompt: "fix it\n\tnow 🛒"})
	require.NotEmpty(t, got.UID)
	at := start.Add(time.Second)
	require.Equal(t, Turn{
		Name: "shop-1", UID: got.UID, Session: "shop", SessionUID: uid, Number: 1, Request: "r1",
		CreatedAt: at, Deadline: deadline, Bytes: 16, Lines: 2, Digest: observe.PromptDigest("fix it now 🛒"), Phase: Pending,
		Delivered: State{Status: metav1.ConditionFalse, Reason: spec.ReasonPending, Message: "nothing was done about it yet", At: at},
		Completed: State{Status: metav1.ConditionUnknown, Reason: spec.ReasonPending, Message: "it was not delivered yet", At: at},
		Revision:  1,
	}, got)
	require.Equal(t, []string{"1.json", "1.prompt"}, w.files(uid))
	data, err := os.ReadFile(w.PromptFile("shop-1"))
	require.NoError(t, err)
	require.Equal(t, "fix it\n\tnow 🛒", string(data), "the bytes and nothing else")
	raw, err := os.ReadFile(filepath.Join(w.dir, "turns", uid, "1.json"))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "fix it")

	for range 2 {
		require.Equal(t, []Turn{got}, w.All())
		require.Equal(t, []Turn{got}, w.Open(uid))
		found, ok := w.Turn("shop-1")
		require.True(t, ok)
		require.Equal(t, got, found)
		prompt, err := w.Prompt("shop-1")
		require.NoError(t, err)
		require.Equal(t, "fix it\n\tnow 🛒", prompt)
		w.reopen()
		require.Empty(t, w.problems)
	}
}

func TestFilesArePrivate(t *testing.T) {
	w := newWorld(t, Limits{})
	w.create(shop("x"))
	for path, want := range map[string]fs.FileMode{"": 0o700, "quarantine": 0o700, uid: 0o700, uid + "/1.json": 0o600, uid + "/1.prompt": 0o600} {
		info, err := os.Stat(filepath.Join(w.dir, "turns", path))
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
}

func TestNumbersRisePerSession(t *testing.T) {
	w := newWorld(t, Limits{})
	for i := range 12 {
		require.EqualValues(t, i+1, w.create(shop("x")).Number)
	}
	require.Equal(t, "api-1", w.create(Request{Session: "api", SessionUID: "u2", Prompt: "x"}).Name)
	w.reopen()
	require.Equal(t, "shop-13", w.create(shop("x")).Name)
	all := names(w.All())
	require.Equal(t, []string{"api-1", "shop-1", "shop-2"}, all[:3])
	require.Equal(t, []string{"shop-9", "shop-10", "shop-11", "shop-12", "shop-13"}, all[9:], "10 comes after 9")
}

// Whatever is removed, and however: a number is given once.
func TestANumberIsNeverGivenTwice(t *testing.T) {
	for name, remove := range map[string]func(*world, Turn){
		"forgotten":           func(w *world, n Turn) { require.NoError(w, w.Forget(n.Name)) },
		"its session as well": func(w *world, _ Turn) { require.NoError(w, w.ForgetSession(uid)) },
		"too old": func(w *world, _ Turn) {
			w.now = w.now.Add(time.Hour)
			require.NoError(w, w.Tidy())
			require.Empty(w, w.All())
		},
		"damaged": func(w *world, n Turn) {
			require.NoError(w, os.WriteFile(w.path(uid, n.Number, ".json"), []byte("{"), 0o600))
			w.reopen()
		},
		"of a newer version": func(w *world, n Turn) {
			require.NoError(w, durable.Write(w.path(uid, n.Number, ".json"), Version+1, n))
			w.reopen()
		},
		"unreadable": func(w *world, n Turn) {
			path := w.path(uid, n.Number, ".json")
			require.NoError(w, os.Remove(path))
			require.NoError(w, os.Mkdir(path, 0o700))
			w.reopen()
		},
	} {
		for _, restarts := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s, %d restarts", name, restarts), func(t *testing.T) {
				w := newWorld(t, Limits{})
				for n := int64(1); n < 4; n++ {
					made := w.create(shop("x"))
					require.Equal(t, n, made.Number)
					remove(w, w.finish(made))
					for range restarts {
						w.reopen()
					}
				}
			})
		}
	}
}

// A client that does not know whether its request came through sends it again.
func TestARequestThatComesTwiceMakesOneTurn(t *testing.T) {
	w := newWorld(t, Limits{})
	request := Request{Session: "shop", SessionUID: uid, ID: "r1", Prompt: "x"}
	first := w.create(request)
	for range 2 {
		again, existed, err := w.Create(request)
		require.NoError(t, err)
		require.True(t, existed)
		require.Equal(t, first, again)
		first = w.update(first.Begin(w.clock(), spec.SubmitPaste, 1, "a", ""))
		w.reopen()
	}
	require.Equal(t, "other-1", w.create(Request{Session: "other", SessionUID: "u2", ID: "r1", Prompt: "x"}).Name, "another session's")
	require.Equal(t, "shop-2", w.create(shop("x")).Name)
	require.Equal(t, "shop-3", w.create(shop("x")).Name, "without an id it is always another one")
	w.finish(first)
	require.NoError(t, w.Forget("shop-1"))
	require.Equal(t, "shop-4", w.create(request).Name, "nothing is known of what was forgotten")
}

func TestOneRequestAtTheSameTimeMakesOneTurn(t *testing.T) {
	w := newWorld(t, Limits{})
	s := NewStore(w.dir, time.Now, func() Limits { return Limits{} })
	var all sync.WaitGroup
	made := make([]string, 8)
	for i := range made {
		all.Go(func() {
			got, _, err := s.Create(Request{Session: "shop", SessionUID: uid, ID: "r1", Prompt: "x"})
			assert.NoError(t, err)
			made[i] = got.Name
		})
	}
	all.Wait()
	require.Equal(t, []string{"shop-1"}, slices.Compact(made))
	require.Len(t, s.All(), 1)
}

func TestAnUpdateRestsOnThePresentRevision(t *testing.T) {
	w := newWorld(t, Limits{})
	first := w.create(shop("x"))
	second := w.update(first.Begin(w.clock(), spec.SubmitPaste, 3, "attempt", "conversation"))
	require.EqualValues(t, 2, second.Revision)
	_, err := w.Update(first.Cancel(w.clock()))
	require.ErrorIs(t, err, ErrChanged)
	for range 2 {
		require.Equal(t, []Turn{second}, w.All(), "and has changed nothing")
		w.reopen()
	}
	other := second
	other.UID = "another"
	_, err = w.Update(other)
	require.ErrorIs(t, err, fs.ErrNotExist)
	other = second
	other.Name = "shop-2"
	_, err = w.Update(other)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Two decide about one turn: one of them wins.
func TestOfTwoUpdatesAtTheSameTimeOneIsRefused(t *testing.T) {
	w := newWorld(t, Limits{})
	for range 20 {
		first := w.create(shop("x"))
		var all sync.WaitGroup
		errs := make([]error, 2)
		for i, next := range []Turn{first.Begin(start, spec.SubmitPaste, 1, "a", ""), first.Cancel(start)} {
			all.Go(func() { _, errs[i] = w.Update(next) })
		}
		all.Wait()
		won, lost := errs[0], errs[1]
		if won != nil {
			won, lost = lost, won
		}
		require.NoError(t, won)
		require.ErrorIs(t, lost, ErrChanged)
	}
}

func TestAFailedUpdateChangesNothing(t *testing.T) {
	w := newWorld(t, Limits{})
	first := w.create(shop("x"))
	require.NoError(t, os.Rename(w.Store.dir(uid), w.Store.dir("aside")))
	require.NoError(t, os.WriteFile(w.Store.dir(uid), nil, 0o600))
	var seen []Turn
	w.Follow(func(t Turn) { seen = append(seen, t) }, func(Turn) {})
	_, err := w.Update(first.Cancel(w.clock()))
	require.ErrorContains(t, err, "save turn shop-1: ")
	require.Equal(t, []Turn{first}, w.All())
	require.Empty(t, seen)
	_, _, err = w.Create(shop("y"))
	require.Error(t, err)
	require.NoError(t, os.Remove(w.Store.dir(uid)))
	require.NoError(t, os.Rename(w.Store.dir("aside"), w.Store.dir(uid)))
	require.Equal(t, Over, w.update(first.Cancel(w.clock())).Phase, "and can be made again")
	require.Equal(t, "shop-2", w.create(shop("y")).Name)
}

// What is under way comes first, then initial turns, then what was sent first.
func TestTheOrderOfAQueue(t *testing.T) {
	w := newWorld(t, Limits{})
	require.Empty(t, w.Open("nobody"))
	first, second := w.create(shop("a")), w.create(shop("b"))
	w.create(Request{Session: "shop", SessionUID: uid, Initial: true, Prompt: "i"})
	w.create(shop("c"))
	require.Equal(t, []string{"shop-3", "shop-1", "shop-2", "shop-4"}, names(w.Open(uid)))
	second = w.update(second.Begin(w.clock(), spec.SubmitPaste, 1, "a", ""))
	require.Equal(t, []string{"shop-2", "shop-3", "shop-1", "shop-4"}, names(w.Open(uid)))
	second = w.update(second.Deliver(w.clock(), ""))
	w.finish(first)
	require.Equal(t, []string{"shop-2", "shop-3", "shop-4"}, names(w.Open(uid)))
	w.finish(second)
	require.Equal(t, []string{"shop-3", "shop-4"}, names(w.Open(uid)))
	require.Equal(t, []string{"shop-1", "shop-2", "shop-3", "shop-4"}, names(w.All()))
}

func TestWhoFollowsHearsOfEachChangeInItsOrder(t *testing.T) {
	w := newWorld(t, Limits{})
	var heard []string
	follow := func() {
		w.Follow(func(t Turn) { heard = append(heard, fmt.Sprintf("%s %s %d", t.Name, t.Phase, t.Revision)) },
			func(t Turn) { heard = append(heard, "gone "+t.Name) })
	}
	follow()
	first := w.create(shop("a"))
	w.create(shop("b"))
	w.finish(first)
	require.NoError(t, w.Forget("shop-1"))
	require.NoError(t, w.ForgetSession(uid))
	require.Equal(t, []string{"shop-1 Pending 1", "shop-2 Pending 1", "shop-1 Over 2", "gone shop-1", "gone shop-2"}, heard)
	w.create(shop("c"))
	heard = nil
	w.Store = NewStore(w.dir, w.clock, func() Limits { return Limits{} })
	follow()
	_, err := w.Load()
	require.NoError(t, err)
	require.Equal(t, []string{"shop-3 Pending 1"}, heard)
}

func TestOnlyWhatIsOverIsForgotten(t *testing.T) {
	w := newWorld(t, Limits{})
	first := w.create(shop("a"))
	require.EqualError(t, w.Forget("shop-1"), "forget turn shop-1: it is not over")
	require.ErrorIs(t, w.Forget("shop-2"), fs.ErrNotExist)
	w.finish(first)
	require.NoError(t, w.Forget("shop-1"))
	require.ErrorIs(t, w.Forget("shop-1"), fs.ErrNotExist)
	require.Equal(t, []string{"1.spent"}, w.files(uid))
	_, err := w.Prompt("shop-1")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Empty(t, w.PromptFile("shop-1"))
}

func TestNothingIsLeftOfAForgottenSession(t *testing.T) {
	w := newWorld(t, Limits{})
	require.NoError(t, w.ForgetSession(uid), "one that never had a turn")
	require.Empty(t, w.files("quarantine"))
	w.finish(w.create(shop("a")))
	second := w.create(shop("b"))
	other := w.create(Request{Session: "api", SessionUID: "u2", Prompt: "x"})
	require.NoError(t, w.ForgetSession(uid))
	for range 2 {
		require.Equal(t, []Turn{other}, w.All())
		require.Empty(t, w.Open(uid))
		require.Equal(t, []string{"2.forgotten"}, w.files(uid))
		_, err := w.Update(second)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, w.ForgetSession(uid), "and once more")
		w.reopen()
	}
	require.Equal(t, "shop-3", w.create(shop("c")).Name)
	require.NoError(t, w.ForgetSession(uid))
	require.Equal(t, []string{"3.forgotten"}, w.files(uid))
	for _, bad := range []string{"", ".", "..", "a/b", "quarantine", ".x"} {
		require.Error(t, w.ForgetSession(bad))
		_, _, err := w.Create(Request{Session: "x", SessionUID: bad, Prompt: "x"})
		require.Error(t, err)
	}
}

// A crash while a session is forgotten brings none of its turns back.
func TestWhatIsLeftOfAForgottenSessionIsRemovedAtTheNextStart(t *testing.T) {
	w := newWorld(t, Limits{})
	w.create(shop("a"))
	w.create(shop("b"))
	require.NoError(t, os.WriteFile(w.path(uid, 2, ".forgotten"), nil, 0o600))
	w.reopen()
	require.Empty(t, w.problems)
	require.Empty(t, w.All())
	require.Equal(t, []string{"2.forgotten"}, w.files(uid))
	require.Equal(t, "shop-3", w.create(shop("c")).Name)
	w.reopen()
	require.Equal(t, []string{"shop-3"}, names(w.All()))
}

// A name may belong to a session of another uid, which is forgotten a moment later.
func TestTwoTurnsNeverHaveOneName(t *testing.T) {
	w := newWorld(t, Limits{})
	w.create(shop("a"))
	other := w.create(Request{Session: "shop", SessionUID: "u2", Prompt: "b"})
	require.Equal(t, "shop-2", other.Name)
	require.NoError(t, w.ForgetSession(uid))
	require.Equal(t, []Turn{other}, w.All())
}

func TestAStoreCannotBePreparedInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	s := NewStore(path, time.Now, func() Limits { return Limits{} })
	require.Error(t, s.Prepare())
	_, err := s.Load()
	require.Error(t, err)
	_, _, err = s.Create(shop("x"))
	require.Error(t, err)
}

// The state directory may be removed while the daemon runs.
func TestATurnIsMadeWhereTheDirectoryWasRemoved(t *testing.T) {
	w := newWorld(t, Limits{})
	first := w.create(shop("a"))
	require.NoError(t, os.RemoveAll(w.root()))
	require.Equal(t, "shop-2", w.create(shop("b")).Name)
	w.update(first.Cancel(w.clock()))
	_, err := w.Prompt("shop-1")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, w.Forget("shop-1"))
	require.Equal(t, []string{"2.json", "2.prompt"}, w.files(uid))
}

func TestAPromptThatIsNotWhatWasSentIsNotHandedOut(t *testing.T) {
	w := newWorld(t, Limits{})
	w.create(shop("rm -r build"))
	for _, other := range []string{"", "rm -r /home", "rm -r build\n", strings.Repeat("x", 100)} {
		require.NoError(t, os.WriteFile(w.PromptFile("shop-1"), []byte(other), 0o600))
		_, err := w.Prompt("shop-1")
		require.ErrorIs(t, err, durable.ErrCorrupt)
	}
}
