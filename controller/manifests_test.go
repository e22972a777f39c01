// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
	"github.com/muxlet/muxlet/spec/manifest"
)

func TestADesiredSessionDiffersByWhateverMattersToADecision(t *testing.T) {
	base := func() manifest.Desired {
		return manifest.Desired{Name: "a", Presence: manifest.Present, File: "a.yaml", Line: 1, Reason: spec.ReasonAccepted}
	}
	assert.False(t, differs(base(), base()))
	for name, change := range map[string]func(*manifest.Desired){
		"presence": func(d *manifest.Desired) { d.Presence = manifest.Held },
		"session":  func(d *manifest.Desired) { d.Session = &spec.Session{} },
		"file":     func(d *manifest.Desired) { d.File = "b.yaml" },
		"line":     func(d *manifest.Desired) { d.Line = 2 },
		"reason":   func(d *manifest.Desired) { d.Reason = spec.ReasonInvalid },
		"message":  func(d *manifest.Desired) { d.Message = "bad" },
		"problems": func(d *manifest.Desired) { d.Problems = []spec.Problem{{Message: "bad"}} },
	} {
		changed := base()
		change(&changed)
		assert.True(t, differs(base(), changed), name)
	}
}

// Invariant 7: only a removal that the manifests have decided upon removes, and
// only a document that nobody can use keeps a session from being started.
func TestTheWishFollowsTheManifests(t *testing.T) {
	good := &spec.Session{}
	good.Labels = map[string]string{"k": "v"}
	for name, c := range map[string]struct {
		desired manifest.Desired
		want    plan.Want
		// spec, held, error and refusal: whether there are any.
		spec, held, fault, refusal bool
	}{
		"present":            {desired: manifest.Desired{Presence: manifest.Present, Session: good, Reason: spec.ReasonAccepted}, spec: true},
		"settling":           {desired: manifest.Desired{Presence: manifest.Settling, Session: good, Reason: spec.ReasonRemovalSettling, Message: "m"}, spec: true},
		"held":               {desired: manifest.Desired{Presence: manifest.Held, Session: good, Reason: spec.ReasonRemovalHeld, Message: "m"}, spec: true, held: true},
		"unknown":            {desired: manifest.Desired{Session: good}, spec: true},
		"removed":            {desired: manifest.Desired{Presence: manifest.Removed, Session: good, Reason: spec.ReasonRemoved}, want: plan.Remove, spec: true},
		"invalid, last good": {desired: manifest.Desired{Presence: manifest.Present, Session: good, Reason: spec.ReasonInvalid, Message: "m"}, spec: true, fault: true},
		"invalid, no good":   {desired: manifest.Desired{Presence: manifest.Present, Reason: spec.ReasonInvalid, Message: "m"}, fault: true, refusal: true},
		"declared twice":     {desired: manifest.Desired{Presence: manifest.Present, Session: good, Reason: spec.ReasonDuplicateName, Message: "m"}, spec: true, fault: true, refusal: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := bare(t, Options{})
			b.read, b.desired.Sessions = true, map[string]manifest.Desired{"a": c.desired}
			w := b.wishOf(newSession("a"))
			assert.Equal(t, c.want, w.Want)
			assert.Equal(t, c.spec, w.Spec != nil)
			assert.Equal(t, c.held, w.Held != "")
			assert.Equal(t, c.held, w.source.Held != "")
			assert.Equal(t, c.fault, w.source.Error != "")
			assert.Equal(t, c.refusal, w.Refusal.Reason != "")
		})
	}
}

// Before the first reading, and for what it does not mention, nothing is wished:
// the session goes on as its record has it.
func TestWithoutAReadingNothingIsWished(t *testing.T) {
	s := newSession("a")
	s.hold(record.Record{UID: "u", Name: "a", File: "a.yaml", Held: "held for a reason"})
	c := bare(t, Options{})
	for _, read := range []bool{false, true} {
		c.read = read
		w := c.wishOf(s)
		assert.Equal(t, plan.Keep, w.Want)
		assert.Nil(t, w.Spec)
		assert.Equal(t, "held for a reason", w.Held)
		assert.Equal(t, "a.yaml", w.source.File)
	}
}

func TestARecordOfANewerVersionRefusesItsSessionAndIsNamed(t *testing.T) {
	c := bare(t, Options{})
	c.read, c.desired.Sessions = true, map[string]manifest.Desired{"a": {Presence: manifest.Present, Session: &spec.Session{}, Reason: spec.ReasonAccepted}}
	c.bad["a"] = record.Bad{UID: "u-1", Name: "a", Err: errors.Join(durable.ErrNewer)}
	w := c.wishOf(newSession("a"))
	assert.Equal(t, spec.ReasonRecordTooNew, w.Refusal.Reason)
	assert.Contains(t, w.Refusal.Message, "u-1")
}

func TestProblemsAreToldInOneSentence(t *testing.T) {
	d := manifest.Desired{Problems: []spec.Problem{
		{Position: spec.Position{File: "a.yaml", Line: 1, Column: 2}, Message: "no"},
		{Position: spec.Position{File: "b.yaml", Line: 3, Column: 4}, Message: "nor this"},
	}}
	assert.Contains(t, problems(d), "a.yaml:1:2")
	assert.Contains(t, problems(d), "; b.yaml:3:4")
	d.Message = "said already"
	assert.Equal(t, "said already", problems(d))
}

// looks are the keys that wait for a look, and drop them.
func looks(c *Controller) []string {
	var keys []string
	for c.queue.Len() > 0 {
		key, _ := c.queue.Get()
		c.queue.Done(key)
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// A change of one file costs passes of its sessions alone, and a rewrite without
// a change none, however many there are.
func TestAnEditAsksForALookAtItsOwnSessionsAlone(t *testing.T) {
	dir := t.TempDir()
	doc := func(name, command string) string {
		return "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: " + name + "}\n" +
			"spec:\n  client: {command: [" + command + "]}\n  workspace: {directory: /tmp}\n"
	}
	write := func(file, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	all := func() {
		for i := range 50 {
			write(fmt.Sprintf("s%d.yaml", i), doc(fmt.Sprintf("s%d", i), "sleep"))
		}
		write("several.yaml", doc("one", "sleep")+"---\n"+doc("two", "sleep")+"---\n"+doc("three", "sleep"))
	}
	all()
	recorder, err := status.OpenRecorder(t.TempDir(), 10)
	require.NoError(t, err)
	c := bare(t, Options{Initial: Settings{Manifests: []string{dir}}, Recorder: recorder})
	c.watcher = manifest.NewWatcher(c.Log)
	t.Cleanup(func() { assert.NoError(t, c.watcher.Close()) })
	c.refresh(nil)
	assert.Len(t, looks(c), 53)

	c.refresh(nil)
	assert.Empty(t, looks(c), "nothing has changed")
	all()
	c.refresh(nil)
	assert.Empty(t, looks(c), "all files were written anew, as they were")
	write("s7.yaml", doc("s7", "cat"))
	c.refresh(nil)
	assert.Equal(t, []string{"s7"}, looks(c))
	write("several.yaml", doc("one", "sleep")+"---\n"+doc("two", "cat")+"---\n"+doc("three", "sleep"))
	c.refresh(nil)
	assert.Equal(t, []string{"two"}, looks(c), "the other documents of the file are as they were")
	write("new.yaml", doc("new", "sleep"))
	c.refresh(nil)
	assert.Equal(t, []string{"new"}, looks(c))
	write("s8.yaml", doc("s8", "sleep")+"  nonsense: true\n")
	c.refresh(nil)
	assert.Equal(t, []string{"s8"}, looks(c))
}
