// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// damages are the ways in which a file can be broken.
var damages = map[string]func(good []byte) []byte{
	"empty":                   func([]byte) []byte { return nil },
	"truncated in the middle": func(good []byte) []byte { return good[:len(good)/2] },
	"NULs":                    func(good []byte) []byte { return make([]byte, len(good)) },
	"another file's content":  func([]byte) []byte { return []byte("apiVersion: v1\n") },
	"a bit in the data": func(good []byte) []byte {
		out := bytes.Clone(good)
		out[bytes.Index(out, []byte("shop"))] ^= 1
		return out
	},
	"a bit in the version": func(good []byte) []byte {
		return bytes.Replace(good, []byte(`"version":1`), []byte(`"version":9`), 1)
	},
	"another turn": func([]byte) []byte {
		return must(durable.Encode(Version, Turn{Name: "shop-7", SessionUID: uid, Number: 7}))
	},
	"another session's turn": func([]byte) []byte {
		return must(durable.Encode(Version, Turn{Name: "api-2", SessionUID: "u2", Number: 2}))
	},
	"data of another shape": func([]byte) []byte { return must(durable.Encode(Version, []string{"x"})) },
}

func TestADamagedTurnIsSetAsideAndNothingElseIsLost(t *testing.T) {
	for name, how := range damages {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Limits{})
			for _, prompt := range []string{"a", "b", "c"} {
				w.create(shop(prompt))
			}
			before := w.All()
			path := w.path(uid, 2, ".json")
			good, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, how(good), 0o600))

			w.reopen()
			require.Len(t, w.problems, 1)
			require.ErrorIs(t, w.problems[0], durable.ErrCorrupt)
			require.ErrorContains(t, w.problems[0], "turn 2 in "+w.Store.dir(uid))
			require.Equal(t, []Turn{before[0], before[2]}, w.All())
			require.Equal(t, []string{uid + "-2.json", uid + "-2.prompt"}, w.files("quarantine"))
			kept, err := os.ReadFile(filepath.Join(w.quarantine(), uid+"-2.json"))
			require.NoError(t, err)
			require.Equal(t, string(how(good)), string(kept), "the damaged file is kept as it was")

			w.reopen()
			require.Empty(t, w.problems, "it is told once")
			require.Equal(t, "shop-4", w.create(shop("d")).Name)
		})
	}
}

// A turn of a newer version, or one that cannot be read, may be good: it is not
// listed, and its files stay as they are.
func TestATurnThatMayBeGoodIsNeverTouched(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"of a newer version": func(path string) error {
			return durable.Write(path, Version+1, map[string]any{"name": "shop-2", "novelty": true})
		},
		"unreadable": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, // EISDIR, for root as well
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Limits{})
			first := w.create(shop("a"))
			w.create(shop("b"))
			require.NoError(t, put(w.path(uid, 2, ".json")))
			before, err := os.Stat(w.path(uid, 2, ".json"))
			require.NoError(t, err)
			for range 2 {
				w.reopen()
				require.Len(t, w.problems, 1)
				require.NotErrorIs(t, w.problems[0], durable.ErrCorrupt)
				require.Equal(t, []Turn{first}, w.All())
			}
			require.Equal(t, "shop-3", w.create(shop("c")).Name)
			require.NoError(t, w.ForgetSession(uid))
			w.reopen()
			require.Equal(t, []string{"2.json", "2.prompt", "3.forgotten"}, w.files(uid))
			require.Empty(t, w.files("quarantine"))
			after, err := os.Stat(w.path(uid, 2, ".json"))
			require.NoError(t, err)
			require.True(t, os.SameFile(before, after))
			require.Equal(t, before.ModTime(), after.ModTime())
		})
	}
}

// A crash leaves a prompt before its turn, or after it.
func TestAPromptWithoutATurnIsRemoved(t *testing.T) {
	w := newWorld(t, Limits{})
	w.create(shop("a"))
	require.NoError(t, os.WriteFile(w.promptPath(uid, 2), []byte("secret"), 0o600))
	for _, left := range []string{"x/" + durable.TempPrefix + "1.json-1", uid + "/" + durable.TempPrefix + "3.prompt-2", "quarantine/" + durable.TempPrefix + "x"} {
		path := filepath.Join(w.root(), left)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	}
	w.reopen()
	require.Empty(t, w.problems)
	require.Equal(t, []string{"1.json", "1.prompt"}, w.files(uid))
	require.Empty(t, w.files("x"))
	require.Empty(t, w.files("quarantine"))
	require.Len(t, w.All(), 1)
}

func TestATurnThatNeedsItsPromptAndHasNoneEnds(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"gone":      os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 1) },
		"changed":   func(path string) error { return os.WriteFile(path, []byte("fix is"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Limits{})
			pending, delivering, delivered, over := w.create(shop("fix it")), w.create(shop("fix it")), w.create(shop("fix it")), w.create(shop("fix it"))
			begin := func(t Turn) Turn { return w.update(t.Begin(w.clock(), spec.SubmitPaste, 1, "a", "")) }
			delivering, delivered, over = begin(delivering), w.update(begin(delivered).Deliver(w.clock(), "")), w.finish(begin(over))
			for n := range int64(4) {
				require.NoError(t, lose(w.promptPath(uid, n+1)))
			}
			w.reopen()
			require.Len(t, w.problems, 2)
			for range 2 {
				got := w.All()
				require.Equal(t, Over, got[0].Phase)
				require.True(t, got[0].Retryable)
				require.Equal(t, metav1.ConditionFalse, got[0].Delivered.Status)
				require.Equal(t, spec.ReasonPromptLost, got[0].Delivered.Reason)
				require.Equal(t, pending.Revision+1, got[0].Revision)
				require.Equal(t, Over, got[1].Phase, "it may have been handed over")
				require.False(t, got[1].Retryable)
				require.Equal(t, metav1.ConditionUnknown, got[1].Delivered.Status)
				require.Equal(t, spec.ReasonPromptLost, got[1].Delivered.Reason)
				require.Equal(t, delivering.Revision+1, got[1].Revision)
				require.Equal(t, []Turn{delivered, over}, got[2:], "they need none")
				w.reopen()
				require.Empty(t, w.problems, "it is told once")
			}
		})
	}
}

// A prompt that cannot be read now may be read when it is needed.
func TestATurnWhosePromptCannotBeReadWaits(t *testing.T) {
	w := newWorld(t, Limits{})
	made := w.create(shop("x"))
	path := w.PromptFile(made.Name)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(path, path)) // ELOOP, for root as well
	w.reopen()
	require.Len(t, w.problems, 1)
	require.Equal(t, []Turn{made}, w.All())
}

// Without the list of its files it is not known which numbers were given.
func TestASessionWhoseDirectoryCannotBeReadGetsNoTurns(t *testing.T) {
	w := newWorld(t, Limits{})
	w.create(shop("x"))
	other := w.create(Request{Session: "api", SessionUID: "u2", Prompt: "x"})
	require.NoError(t, os.Rename(w.Store.dir(uid), w.dir+"/aside"))
	require.NoError(t, os.Symlink(uid, w.Store.dir(uid))) // ELOOP, for root as well
	w.reopen()
	require.Len(t, w.problems, 1)
	require.Equal(t, []Turn{other}, w.All())
	_, _, err := w.Create(shop("y"))
	require.ErrorIs(t, err, syscall.ELOOP)
	require.ErrorIs(t, w.ForgetSession(uid), syscall.ELOOP)

	require.NoError(t, os.Remove(w.Store.dir(uid)))
	require.NoError(t, os.Symlink(w.dir+"/aside", w.Store.dir(uid)))
	w.reopen()
	require.Empty(t, w.problems)
	require.Equal(t, "shop-2", w.create(shop("y")).Name, "it may be elsewhere")
}

func TestForeignFilesAreNoTurns(t *testing.T) {
	w := newWorld(t, Limits{})
	w.create(shop("x"))
	foreign := []string{"README", ".hidden.json", "01.json", "0.json", "-1.json", "x.prompt", "1.json.bak", "+2.spent"}
	for _, name := range foreign {
		require.NoError(t, os.WriteFile(filepath.Join(w.Store.dir(uid), name), []byte("x"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(w.root(), "notes"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(w.root(), ".git"), 0o700))
	w.reopen()
	require.Empty(t, w.problems)
	require.Equal(t, []string{"shop-1"}, names(w.All()))
	require.NoError(t, w.ForgetSession(uid))
	require.NoError(t, w.Tidy())
	require.Subset(t, w.files(uid), foreign)
}

// Turn files that were ever written stay readable, and nothing that they say gets
// lost: each version has its golden files.
func TestTheGoldenTurnsAreRead(t *testing.T) {
	for version := 1; version <= Version; version++ {
		golden, err := filepath.Glob(fmt.Sprintf("testdata/v%d*.json", version))
		require.NoError(t, err)
		require.NotEmpty(t, golden, "version %d has no golden file", version)
		for _, file := range golden {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			w := newWorld(t, Limits{})
			require.NoError(t, os.Mkdir(w.Store.dir(uid), 0o700))
			require.NoError(t, os.WriteFile(w.path(uid, 7, ".json"), data, 0o600))
			w.reopen()
			require.Empty(t, w.problems, file)
			require.Len(t, w.All(), 1)
			var before, after map[string]any
			require.NoError(t, durable.Decode(data, Version, &before))
			require.NoError(t, json.Unmarshal(must(json.Marshal(w.All()[0])), &after))
			for field, value := range before {
				require.Equal(t, value, after[field], "%s: %s", file, field)
			}
		}
	}
}

// full is a turn with everything in it.
func full() Turn {
	at := func(s int) time.Time { return time.Date(2026, 5, 1, 12, 0, s, 123456789, time.UTC) }
	return Turn{
		Name: "shop-7", UID: "33333333-3333-4333-8333-333333333333", Session: "shop", SessionUID: uid, Number: 7,
		Request: "r1", Initial: true, CreatedAt: at(0), Deadline: at(50), Bytes: 12, Lines: 2, Digest: "0123456789abcdef",
		Phase:     Over,
		Delivered: State{Status: metav1.ConditionTrue, Reason: spec.ReasonDelivered, Message: "the client has it", At: at(5)},
		Completed: State{Status: metav1.ConditionFalse, Reason: spec.ReasonClientDied, Message: "the client has ended", At: at(9)},
		Retryable: true, Incarnation: 3, Attempt: "44444444-4444-4444-8444-444444444444", Conversation: "c-1", Method: spec.SubmitPaste,
		HandedAt: at(1), PastedAt: at(2), Submits: 2, SubmittedAt: at(4), Before: "fedcba9876543210",
		DeliveredAt: at(5), FinishedAt: at(9), Revision: 8,
	}
}

// A new field belongs into full, and into a golden file of the version that has it.
func TestTheGoldenTurnHasAllFields(t *testing.T) {
	data, err := os.ReadFile(fmt.Sprintf("testdata/v%d.json", Version))
	require.NoError(t, err)
	require.Equal(t, string(data), string(must(durable.Encode(Version, full()))))
	var golden map[string]any
	require.NoError(t, durable.Decode(data, Version, &golden))
	all := map[string]any{}
	require.NoError(t, json.Unmarshal(must(json.Marshal(full())), &all))
	require.Len(t, golden, len(all))
	require.Len(t, all, reflect.TypeFor[Turn]().NumField(), "full leaves a field empty")
}
