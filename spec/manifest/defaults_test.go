// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testclock "k8s.io/utils/clock/testing"

	"github.com/muxlet/muxlet/spec"
)

func defaultsOf(directory string) *spec.SessionDefaults {
	return spec.NewSessionDefaults(&spec.SessionSpec{Workspace: spec.WorkspaceSpec{Directory: directory}}, spec.ClassClaude)
}

// The files are not read again for it: one may be half written, or on a dead mount, by now.
func TestOtherDefaultsAreLaidUnderWhatWasRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), head)
	r := Reader{Clock: testclock.NewFakePassiveClock(time.Now().Add(time.Minute)), Defaults: defaultsOf("/one")}
	directory := func() string {
		reading := r.Read([]string{dir})
		require.Len(t, reading.Files, 1)
		s := reading.Files[0].Items[0].Session
		if s == nil {
			return ""
		}
		return s.Spec.Workspace.Directory
	}
	assert.Equal(t, "/one", directory())
	opened := 0
	r.open = func(path string) (*os.File, error) { opened++; return openManifest(path) }
	r.Defaults = defaultsOf("/two")
	assert.Equal(t, "/two", directory())
	r.Defaults = nil
	assert.Empty(t, directory())
	r.Defaults = defaultsOf("/two")
	assert.Equal(t, "/two", directory())
	assert.Zero(t, opened)
}

// An edit of the settings touches the sessions that it concerns, and no other.
func TestOtherDefaultsAreAnEditOfTheSessionsThatTheyTouch(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), head)
	write(t, filepath.Join(dir, "o.yaml"), other)
	r := Reader{Defaults: defaultsOf("/one")}
	set, state := Resolve(State{}, r.Read([]string{dir}), nil, time.Now(), Policy{})
	r.Defaults = defaultsOf("/two")
	next, state := Resolve(state, r.Read([]string{dir}), nil, time.Now(), Policy{})
	assert.Same(t, set.Sessions["other"].Session, next.Sessions["other"].Session)
	assert.Equal(t, "/two", next.Sessions["a"].Session.Spec.Workspace.Directory)

	// Without them it is not valid, and goes on with what was in force.
	r.Defaults = nil
	last, _ := Resolve(state, r.Read([]string{dir}), nil, time.Now(), Policy{})
	a := last.Sessions["a"]
	assert.Equal(t, spec.ReasonInvalid, a.Reason)
	assert.Same(t, next.Sessions["a"].Session, a.Session)
	assert.Len(t, last.Problems, 1)
}

func TestAnEditDoesNotDependOnTheSettings(t *testing.T) {
	dir := t.TempDir()
	want := func(text string) Declaration {
		d, problems := Declarations("f", []byte(text))
		require.Empty(t, problems)
		d[0].Document = d[0].Under(defaultsOf("/one"))
		require.NotNil(t, d[0].Session)
		return d[0]
	}
	for _, step := range []struct {
		text    string
		outcome Outcome
	}{
		{head, Created}, {head, Unchanged}, {head + "spec: {restartPolicy: Never}\n", Configured}, {head, Configured}, {head + "spec:\n" + body, Configured},
	} {
		e := NewEditor([]string{dir})
		change, err := e.Apply(want(step.text))
		require.NoError(t, err, step.text)
		assert.Equal(t, step.outcome, change.Outcome, step.text)
		require.NoError(t, e.Write(change))
	}
	copied, err := NewEditor([]string{dir}).Copy(SessionRef("a"))
	require.NoError(t, err)
	_, err = copied.Replace([]byte(head))
	require.ErrorContains(t, err, "is required", "by itself")
	copied.Judge = (&Classes{}).Judge
	_, err = copied.Replace([]byte(head))
	require.ErrorContains(t, err, "is required", "without settings that give it")
	copied.Judge = (&Classes{Defaults: defaultsOf("/one")}).Judge
	change, err := copied.Replace([]byte(head))
	require.NoError(t, err)
	require.NoError(t, change.Write())
	data, err := os.ReadFile(filepath.Join(dir, "a.yaml"))
	require.NoError(t, err)
	assert.Equal(t, head, string(data))
	require.NoError(t, Remove(filepath.Join(dir, "a.yaml"), "a"))
}
