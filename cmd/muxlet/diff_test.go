// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func differing(command string) *spec.Session {
	s := &spec.Session{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	s.Spec.Client.Command = []string{command}
	return s
}

// newDiffCLI has a daemon that reads the manifests of the test.
func newDiffCLI(t *testing.T, f *fakeDaemon) *cli {
	c := newCLI(t, f)
	f.status.Manifests = []string{filepath.Join(c.dir, "sessions")}
	return c
}

func TestDiffShowsWhatChangesAndWhatItMeans(t *testing.T) {
	f := newFakeDaemon()
	f.diff.Sessions = []server.SessionDiff{
		{Name: "a", InForce: differing("one"), Wanted: differing("two"), Effect: spec.Effect{
			Kind: spec.EffectRestartsWhenIdle, Resumes: "c-1", Message: "not before it does not work", Warning: "it belongs to /old\x1b[2J"}},
		{Name: "b", InForce: differing("one"), Wanted: differing("one"), Effect: spec.Effect{Kind: spec.EffectBlocked, Reason: spec.ReasonClassNotFound, Message: "no class"}},
	}
	c := newDiffCLI(t, f)
	path := c.write("mine.yaml", manifestOf("a"))
	assert.Equal(t, exitDifferent, c.run("diff", "-f", path))
	c.golden("diff")
	require.Len(t, f.diffs, 1)
	assert.Len(t, f.diffs[0].Files, 1)
	assert.Empty(t, c.files("sessions"), "nothing is written")
}

// A reader, and patch, find each hunk by the lines of both texts.
func TestTheHunksOfADiffSayWhereTheyAreInBothTexts(t *testing.T) {
	t.Parallel()
	before := "a: 1\nb: 1\nc: 1\nd: 1\n" + strings.Repeat("x: 1\n", 20) + "y: 1\nz: 1\n"
	after := "a: 2\nb: 1\nc: 1\nnew: 1\nd: 2\n" + strings.Repeat("x: 1\n", 20) + "y: 2\nz: 1\n"
	diff := numbered(udiff.Unified("from", "to", before, after))
	assert.Contains(t, diff, "@@ -1,7 +1,8 @@\n")
	assert.Contains(t, diff, "@@ -22,5 +23,5 @@\n")
	assert.Contains(t, numbered(udiff.Unified("from", "to", "", after)), "@@ -0,0 +1,27 @@\n")
	assert.Contains(t, numbered(udiff.Unified("from", "to", before, "")), "@@ -1,26 +0,0 @@\n")
	assert.Contains(t, numbered(udiff.Unified("from", "to", "a\n", "b\n")), "@@ -1 +1 @@\n")
}

func TestDiffWithoutADifferenceSaysNothing(t *testing.T) {
	c := newDiffCLI(t, newFakeDaemon())
	assert.Zero(t, c.run("diff"))
	path := c.write("sessions/a.yaml", manifestOf("a"))
	assert.Zero(t, c.run("diff", "-f", path))
	assert.Empty(t, c.out+c.errOut)
}

func TestDiffWithoutADaemonComparesTheFiles(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", "# kept\n"+manifestOf("a"))
	path := c.write("mine.yaml", manifestOf("a")+"  suspend: true\n---\n"+manifestOf("b"))
	assert.Equal(t, exitDifferent, c.run("diff", "-f", path))
	c.golden("diff-files")
	assert.Equal(t, exitDiffError, c.run("diff"))
	assert.Contains(t, c.errOut, "No muxlet daemon answers")
}

// The codes of errors are those of kubectl diff: more than 1.
func TestDiffTellsErrorsFromDifferences(t *testing.T) {
	f := newFakeDaemon()
	c := newDiffCLI(t, f)
	bad := c.write("bad.yaml", manifestOf("a")+"  bogus: 1\n")
	assert.Equal(t, exitDiffError, c.run("diff", "-f", bad))
	assert.Contains(t, c.errOut, "spec.bogus: unknown field")
	assert.Equal(t, exitDiffError, c.run("diff", "-f", c.write("none.yaml", "# nothing\n")))
	assert.Equal(t, exitUsage, c.run("diff", bad))
	c.write("sessions/a.yaml", manifestOf("a"))
	c.write("sessions/b.yaml", manifestOf("a"))
	assert.Equal(t, exitConflict, c.run("diff", "-f", c.write("mine.yaml", manifestOf("a"))))
	f.diffError = server.NewError(server.ReasonDeadlineExceeded, "", "too late")
	assert.Equal(t, exitDeadline, c.run("diff"))
}

func TestADryRunSaysWhatItMeans(t *testing.T) {
	f := newFakeDaemon()
	f.diff.Sessions = []server.SessionDiff{
		{Name: "a", Effect: spec.Effect{Kind: spec.EffectRestartsNow, Resumes: "c-1", Warning: "mind"}},
		{Name: "z", Effect: spec.Effect{Kind: spec.EffectAtNextRestart}},
	}
	c := newDiffCLI(t, f)
	path := c.write("mine.yaml", manifestOf("a"))
	assert.Zero(t, c.run("apply", "-f", path, "--dry-run"), c.errOut)
	assert.Equal(t, "session/a created (dry run): restarts now, resumes c-1\nsession/z: at its next restart\n", c.out)
	assert.Equal(t, "Warning: session/a: mind.\n", c.errOut)
	assert.Zero(t, c.run("apply", "-f", path))
	assert.Equal(t, "session/a created\n", c.out)
	assert.Len(t, f.diffs, 1)
	assert.Zero(t, c.run("apply", "-f", path, "--dry-run"))
	assert.Equal(t, "session/a unchanged (dry run)\n", c.out)
}

func TestEditSaysWhatItMeans(t *testing.T) {
	f := newFakeDaemon()
	f.diff.Sessions = []server.SessionDiff{{Name: "a", Effect: spec.Effect{Kind: spec.EffectRestartsWhenIdle, Resumes: "c-1"}}}
	c := newDiffCLI(t, f)
	c.declares("", "")
	c.editor(`sed -i 's/1d/2d/' "$1"`)
	assert.Zero(t, c.run("edit", "a"), c.errOut)
	assert.Equal(t, "session/a edited: restarts when idle, resumes c-1\n", c.out)
	require.Len(t, f.diffs, 1)
	assert.Contains(t, string(f.diffs[0].Files[0].Content), "2d", "asked before it is written")
	f.diffError = server.NewError(server.ReasonDeadlineExceeded, "", "too late")
	c.editor(`sed -i 's/2d/3d/' "$1"`)
	assert.Zero(t, c.run("edit", "a"), c.errOut)
	assert.Equal(t, "session/a edited\n", c.out)
}
