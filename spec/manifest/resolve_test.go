// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

func TestAdditionsAndEditsActAtOnce(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.resolve()
	w.requirePresence(Present, "a")
	a := w.set.Sessions["a"]
	assert.Equal(t, spec.ReasonAccepted, a.Reason)
	assert.Equal(t, "/m/a.yaml", a.File)
	assert.Equal(t, 1, a.Line)
	assert.Empty(t, a.Message)

	w.files["/m/a.yaml"] = yamlOf("a", "2")
	w.declare("b")
	w.resolve()
	assert.Equal(t, "2", marker(w.set.Sessions["a"]))
	w.requirePresence(Present, "a", "b")
	assert.Zero(t, w.set.NextCheck)
	assert.Empty(t, w.set.Problems)
}

func TestAnInvalidDocumentKeepsTheLastGoodSpec(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.resolve()
	w.files["/m/a.yaml"] = invalidOf("a")
	w.resolve()
	a := w.set.Sessions["a"]
	assert.Equal(t, Present, a.Presence)
	assert.Equal(t, spec.ReasonInvalid, a.Reason)
	assert.Equal(t, "1", marker(a))
	require.NotEmpty(t, a.Problems)
	assert.Equal(t, a.Problems, w.set.Problems)
	assert.Contains(t, a.Message, "/m/a.yaml:")
	assert.Contains(t, a.Message, "last valid spec stays in force")

	w.restart()
	w.resolve()
	assert.Equal(t, "1", marker(w.set.Sessions["a"]), "the record has the last good spec")

	w.files["/m/a.yaml"] = yamlOf("a", "2")
	w.resolve()
	assert.Equal(t, "2", marker(w.set.Sessions["a"]))
	assert.Equal(t, spec.ReasonAccepted, w.set.Sessions["a"].Reason)
}

func TestWhatThisProcessSawWinsOverTheRecord(t *testing.T) {
	w := newWorld(t)
	w.known["a"] = Known{Name: "a", LastGood: goodOf(t, "a", "old"), File: "/m/a.yaml"}
	w.files["/m/a.yaml"] = yamlOf("a", "new")
	known := slices.Collect(maps.Values(w.known))
	_, state := Resolve(State{}, w.reading(), known, w.now, w.policy)
	w.files["/m/a.yaml"] = invalidOf("a")
	set, _ := Resolve(state, w.reading(), known, w.now, w.policy)
	assert.Equal(t, "new", marker(set.Sessions["a"]))
}

func TestAnInvalidDocumentOfANewSessionIsShown(t *testing.T) {
	w := newWorld(t)
	w.files["/m/a.yaml"] = invalidOf("a")
	w.files["/m/b.yaml"] = yamlOf("My.App", "1")
	w.files["/m/c.yaml"] = yamlOf("../../etc", "1")
	w.resolve()
	for _, name := range []string{"a", "My.App"} {
		d := w.set.Sessions[name]
		assert.Equal(t, Present, d.Presence, name)
		assert.Equal(t, spec.ReasonInvalid, d.Reason, name)
		assert.Nil(t, d.Session, name)
		assert.Contains(t, d.Message, "nothing is started", name)
	}
	assert.NotContains(t, w.set.Sessions, "../../etc", "a path is no name")
	assert.GreaterOrEqual(t, len(w.set.Problems), 3)

	w.remove("a", "b")
	w.resolve()
	assert.Empty(t, w.set.Sessions, "what was never valid leaves no trace")
}

func TestADocumentThatMovesToAnotherFileIsTheSameSession(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c", "d")
	w.resolve()
	all := w.files["/m/a.yaml"] + "---\n" + w.files["/m/b.yaml"] + "---\n" + w.files["/m/c.yaml"] + "---\n" + w.files["/m/d.yaml"]
	w.files = map[string]string{"/m/sub/all.yaml": all}
	w.resolve()
	w.requirePresence(Present, "a", "b", "c", "d")
	assert.Equal(t, "/m/sub/all.yaml", w.set.Sessions["c"].File)
	assert.Positive(t, w.set.Sessions["c"].Line)
	assert.Zero(t, w.set.NextCheck)
}

func TestOneBadDocumentSpoilsNoOther(t *testing.T) {
	w := newWorld(t)
	w.files["/m/all.yaml"] = yamlOf("a", "1") + "---\n" + invalidOf("b") + "---\n" + damagedOf("c") + "---\n" + yamlOf("d", "1")
	w.resolve()
	w.requirePresence(Present, "a", "b", "d")
	assert.Equal(t, spec.ReasonAccepted, w.set.Sessions["a"].Reason)
	assert.Equal(t, spec.ReasonInvalid, w.set.Sessions["b"].Reason)
	assert.Equal(t, spec.ReasonAccepted, w.set.Sessions["d"].Reason)
	assert.NotContains(t, w.set.Sessions, "c", "a guessed name makes no session")
}

func TestOfTwoDocumentsTheOneOfTheRunningClientGoesOn(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.resolve()
	w.running("a")
	w.files["/m/0.yaml"] = yamlOf("a", "other")
	w.resolve()
	a := w.set.Sessions["a"]
	assert.Equal(t, Present, a.Presence)
	assert.Equal(t, spec.ReasonAccepted, a.Reason)
	assert.Equal(t, "1", marker(a))
	assert.Equal(t, "/m/a.yaml", a.File)
	assert.Contains(t, a.Message, "/m/a.yaml:1")
	assert.Contains(t, a.Message, "/m/0.yaml:1")
	assert.Len(t, a.Problems, 2)
	assert.Len(t, w.set.Problems, len(a.Problems))

	k := w.known["a"]
	k.Running = false
	w.known["a"] = k
	w.files["/m/a.yaml"] = yamlOf("a", "2")
	w.resolve()
	assert.Equal(t, "2", marker(w.set.Sessions["a"]), "its own document goes on after a death too")
	assert.Equal(t, spec.ReasonAccepted, w.set.Sessions["a"].Reason)

	w.remove("a")
	w.resolve()
	assert.Equal(t, "other", marker(w.set.Sessions["a"]), "the other one is left")
	assert.Empty(t, w.set.Sessions["a"].Message)
	assert.Empty(t, w.set.Problems)
}

func TestTwoDocumentsOfASessionThatDoesNotRunStartNothing(t *testing.T) {
	for name, c := range map[string]struct {
		known map[string]Known
		good  string
	}{
		"a new session":        {known: map[string]Known{}, good: "none"},
		"one that is down":     {known: map[string]Known{"a": {Name: "a", File: "/m/a.yaml", LastGood: goodOf(t, "a", "old")}}, good: "old"},
		"running, file gone":   {known: map[string]Known{"a": {Name: "a", File: "/m/x.yaml", Running: true, LastGood: goodOf(t, "a", "old")}}, good: "old"},
		"running without file": {known: map[string]Known{"a": {Name: "a", Running: true}}, good: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.known = c.known
			w.files["/m/a.yaml"] = yamlOf("a", "1")
			w.files["/m/b.yaml"] = "# second\n" + yamlOf("a", "2")
			w.resolve()
			a := w.set.Sessions["a"]
			assert.Equal(t, Present, a.Presence)
			assert.Equal(t, spec.ReasonDuplicateName, a.Reason)
			assert.Equal(t, c.good, marker(a))
			assert.Contains(t, a.Message, "/m/a.yaml:1 and /m/b.yaml:2")
			require.Len(t, w.set.Problems, 2)
			assert.Contains(t, w.set.Problems[0].Message, "/m/b.yaml:2")
			assert.Contains(t, w.set.Problems[1].Message, "/m/a.yaml:1")
		})
	}
}

func TestTwoDocumentsInTheRunningOnesFileKeepTheLastGoodSpec(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.resolve()
	w.running("a")
	w.files["/m/a.yaml"] = yamlOf("a", "2") + "---\n" + yamlOf("a", "3")
	w.resolve()
	assert.Equal(t, spec.ReasonDuplicateName, w.set.Sessions["a"].Reason)
	assert.Equal(t, "1", marker(w.set.Sessions["a"]))
}

func TestAnInvalidDocumentTakesPartInADuplicate(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.resolve()
	w.running("a")
	w.files["/m/a.yaml"] = invalidOf("a")
	w.files["/m/b.yaml"] = yamlOf("a", "2")
	w.resolve()
	a := w.set.Sessions["a"]
	assert.Equal(t, spec.ReasonInvalid, a.Reason)
	assert.Equal(t, "1", marker(a))
	assert.Contains(t, a.Message, "/m/b.yaml:1")
}

func TestAMissingRootOfNobodyIsOneProblem(t *testing.T) {
	w := newWorld(t)
	w.roots = append(w.roots, Root{Path: "/later", Access: Missing, Message: "it does not exist"})
	w.declare("a", "b")
	w.resolve()
	w.requirePresence(Present, "a", "b")
	require.Len(t, w.set.Problems, 1)
	assert.Equal(t, "/later", w.set.Problems[0].File)

	w.remove("b")
	w.resolve()
	w.requirePresence(Settling, "b")
	w.resolveAfter(w.policy.Settle)
	w.requirePresence(Removed, "b")
}

func TestResolveChangesNoArgument(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b")
	w.resolve()
	before := w.state.clone()
	w.remove("b")
	w.resolveOnce()
	assert.Equal(t, before, w.state.clone())
	Confirm(w.state, nil)
	Deleted(w.state, "a")
	assert.Equal(t, before, w.state.clone())
}

// resolveOnce throws the answer away.
func (w *world) resolveOnce() {
	Resolve(w.state, w.reading(), slices.Collect(maps.Values(w.known)), w.now, w.policy)
}
