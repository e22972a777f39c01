// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// classOf is a document of a class, with a marker.
func classOf(name, marker string) string {
	return `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata:
  name: ` + name + `
  labels: {marker: "` + marker + `"}
spec:
  start: {command: [agent, --id, $(CONVERSATION_ID)]}
  resume: {command: [agent, --resume, $(CONVERSATION_ID)]}
  conversation: {identity: Assigned}
`
}

// ofClass is a session of a class.
func ofClass(name, class string) string {
	return strings.Replace(yamlOf(name, class), `client: {command: [sleep, "60"]}`, "clientClassName: "+class, 1)
}

func (w *world) classMarker(name string) string {
	class, _ := w.set.Class(name)
	if class == nil {
		return "none"
	}
	return class.Labels["marker"]
}

func TestDeclaredClassesAreInTheSetAndAreNoSessions(t *testing.T) {
	w := newWorld(t)
	w.files["/m/all.yaml"] = classOf("gemini", "1") + "---\n" + ofClass("a", "gemini")
	w.resolve()
	w.requirePresence(Present, "a")
	assert.Len(t, w.set.Sessions, 1)
	d := w.set.Classes["gemini"]
	assert.Equal(t, DesiredClass{Name: "gemini", Presence: Present, Class: d.Class, File: "/m/all.yaml", Line: 1, Reason: spec.ReasonAccepted}, d)
	require.NotNil(t, d.Class)
	assert.Equal(t, &spec.SourceStatus{File: "/m/all.yaml", Line: 1}, d.Source())
	assert.Empty(t, w.set.Problems)
	assert.Equal(t, []string{"claude", "codex", "exec", "gemini"}, w.set.ClassNames())

	w.files["/m/all.yaml"] = classOf("gemini", "2") + "---\n" + ofClass("a", "gemini")
	w.resolve()
	assert.Equal(t, "2", w.classMarker("gemini"))
}

func TestAClassThatIsNotDeclaredIsTheBuiltInOne(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.resolve()
	class, doubt := w.set.Class(spec.ClassClaude)
	assert.True(t, class.Status.BuiltIn)
	assert.Empty(t, doubt)
	class, doubt = w.set.Class("nobody")
	assert.Nil(t, class)
	assert.Empty(t, doubt)
	w.files["/m/claude.yaml"] = classOf("claude", "mine")
	w.resolve()
	assert.Equal(t, "mine", w.classMarker("claude"))
}

func TestTheSettingsSayWhichClassASessionHasThatNamesNone(t *testing.T) {
	w := newWorld(t)
	w.files["/m/a.yaml"] = strings.Replace(ofClass("a", "x"), "clientClassName: x", "suspend: false", 1)
	w.declare("b")
	w.resolve()
	assert.Equal(t, spec.ClassClaude, w.set.Sessions["a"].Session.Spec.ClientClassName)
	before := w.set.Sessions["a"].Session
	w.resolve()
	assert.Same(t, before, w.set.Sessions["a"].Session, "a reading without a change gives the same session")
	w.policy.DefaultClass = spec.ClassCodex
	w.resolve()
	assert.Equal(t, spec.ClassCodex, w.set.Sessions["a"].Session.Spec.ClientClassName)
	assert.Equal(t, spec.ClassExec, w.set.Sessions["b"].Session.Spec.ClientClassName, "a command is run by exec")
}

func TestASessionIsJudgedByItsClass(t *testing.T) {
	w := newWorld(t)
	w.files["/m/a.yaml"] = ofClass("a", "gemini")
	w.resolve()
	assert.Equal(t, spec.ReasonAccepted, w.set.Sessions["a"].Reason, "an unknown class judges nothing")
	w.files["/m/a.yaml"] = strings.Replace(ofClass("a", "gemini"), "spec:", "spec:\n  client: {command: [sh]}", 1)
	w.files["/m/gemini.yaml"] = classOf("gemini", "1")
	w.resolve()
	a := w.set.Sessions["a"]
	assert.Equal(t, spec.ReasonInvalid, a.Reason)
	assert.Empty(t, a.Session.Spec.Client.Command, "the last good one stays in force")
	require.Len(t, a.Problems, 1)
	assert.Equal(t, "/m/a.yaml:7:21: spec.client.command: class gemini has a command of its own; append to it with client.args, or use clientClassName: exec", a.Problems[0].Error())
	assert.Equal(t, a.Problems, w.set.Problems)
}

// After a restart the class that took the session is out of sight.
func TestASessionThatWasGoodStaysSoWhileItsClassIsInDoubt(t *testing.T) {
	w := newWorld(t)
	own := strings.Replace(classOf("claude", "mine"), "  start: {command: [agent, --id, $(CONVERSATION_ID)]}\n", "", 1)
	w.files["/m/claude.yaml"] = strings.Replace(own, "Assigned", "Reported", 1)
	withCommand := func(name string) string {
		return strings.Replace(ofClass(name, "claude"), "spec:", "spec:\n  client: {command: [sh]}", 1)
	}
	w.files["/m/a.yaml"] = withCommand("a")
	w.resolve()
	require.Equal(t, spec.ReasonAccepted, w.set.Sessions["a"].Reason)
	w.files["/m/claude.yaml"] += "  x: [\n"
	w.files["/m/b.yaml"] = withCommand("b")
	w.restart()
	w.resolve()
	assert.Equal(t, spec.ReasonAccepted, w.set.Sessions["a"].Reason)
	assert.Equal(t, spec.ReasonInvalid, w.set.Sessions["b"].Reason, "a new one is judged by the class that is in sight")
}

func TestABrokenClassKeepsTheLastGoodOne(t *testing.T) {
	for name, broken := range map[string]string{
		"invalid": strings.Replace(classOf("gemini", "2"), "Assigned", "Asigned", 1),
		"damaged": classOf("gemini", "2") + "  x: [\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.files["/m/gemini.yaml"] = classOf("gemini", "1")
			w.resolve()
			w.files["/m/gemini.yaml"] = broken
			w.resolveAfter(time.Hour)
			w.resolveAfter(time.Hour)
			d := w.set.Classes["gemini"]
			assert.Equal(t, "1", w.classMarker("gemini"))
			assert.Equal(t, spec.ReasonInvalid, d.Reason)
			assert.Contains(t, d.Message, "the last valid class stays in force")
			assert.NotEmpty(t, d.Problems)
			w.files["/m/gemini.yaml"] = classOf("gemini", "2")
			w.resolve()
			assert.Equal(t, "2", w.classMarker("gemini"))
		})
	}
}

// After a restart nothing is known of a class but what the records of its sessions
// have: the built-in one must not take its place.
func TestAClassThatCannotBeReadAfterARestartIsInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(w *world)
		declared bool
	}{
		"invalid": {func(w *world) { w.files["/m/claude.yaml"] = strings.Replace(classOf("claude", ""), "Assigned", "x", 1) }, true},
		"damaged": {func(w *world) { w.files["/m/claude.yaml"] = classOf("claude", "") + "  x: [\n" }, false},
		"unreadable": {func(w *world) {
			w.files["/m/claude.yaml"] = ""
			w.unread = []Unread{{Path: "/m/claude.yaml", Problem: problemAt("/m/claude.yaml", "denied")}}
		}, false},
		"no root":      {func(w *world) { w.roots[0].Access = Missing }, false},
		"emptied root": {func(w *world) { w.files = map[string]string{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.files["/m/claude.yaml"], w.files["/m/a.yaml"] = classOf("claude", "mine"), ofClass("a", "claude")
			w.resolve()
			c.change(w)
			w.restart()
			w.resolve()
			class, doubt := w.set.Class("claude")
			assert.NotEmpty(t, doubt)
			if c.declared {
				assert.Nil(t, class, "a declared one hides the built-in one")
			}
		})
	}
}

func TestAClassThatIsDeclaredTwiceIsRefusedWithBothPlaces(t *testing.T) {
	w := newWorld(t)
	w.files["/m/a.yaml"] = classOf("gemini", "1")
	w.resolve()
	w.files["/m/b.yaml"] = classOf("gemini", "2")
	w.resolve()
	d := w.set.Classes["gemini"]
	assert.Equal(t, spec.ReasonDuplicateName, d.Reason)
	assert.Equal(t, "declared in /m/a.yaml:1 and /m/b.yaml:1: the last valid class stays in force until only one is left", d.Message)
	assert.Equal(t, "1", w.classMarker("gemini"))
	require.Len(t, w.set.Problems, 2)
	assert.Equal(t, `/m/a.yaml:1:1: metadata.name: client class "gemini" is declared by /m/b.yaml:1 too; keep one of them`, w.set.Problems[0].Error())

	w.restart()
	w.resolve()
	class, doubt := w.set.Class("gemini")
	assert.Nil(t, class)
	assert.Contains(t, doubt, "nothing is started with it until only one is left")
}

func TestASessionAndAClassMayHaveOneName(t *testing.T) {
	w := newWorld(t)
	w.files["/m/a.yaml"] = classOf("claude", "1") + "---\n" + ofClass("claude", "claude")
	w.resolve()
	assert.Empty(t, w.set.Problems)
	assert.Equal(t, spec.ReasonAccepted, w.set.Sessions["claude"].Reason)
	assert.Equal(t, spec.ReasonAccepted, w.set.Classes["claude"].Reason)
}

func TestARemovedClassGoesAfterTheSettleTime(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.files["/m/claude.yaml"] = classOf("claude", "mine")
	w.resolve()
	delete(w.files, "/m/claude.yaml")
	w.resolve()
	assert.Equal(t, Settling, w.set.Classes["claude"].Presence)
	assert.Equal(t, "mine", w.classMarker("claude"))
	assert.Equal(t, w.now.Add(w.policy.Settle), w.set.NextCheck)
	w.resolveAfter(w.policy.Settle)
	assert.Empty(t, w.set.Classes)
	class, doubt := w.set.Class("claude")
	assert.True(t, class.Status.BuiltIn)
	assert.Empty(t, doubt)
}

func TestARemovedClassIsHeldUnderSuspiciousCircumstances(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		why    string
	}{
		"emptied root": {func(w *world) { w.files = map[string]string{} }, "the manifest directory /m is empty"},
		"no root":      {func(w *world) { w.roots[0].Access = Missing }, "the manifest directory /m does not exist"},
		"other device": {func(w *world) { w.roots[0].Device = 8; delete(w.files, "/m/claude.yaml") }, "on another device than before"},
		"unreadable": {func(w *world) {
			w.unread = []Unread{{Path: "/m/claude.yaml", Problem: problemAt("/m/claude.yaml", "denied")}}
			delete(w.files, "/m/claude.yaml")
		}, "denied"},
		"many at once": {func(w *world) { w.remove("a", "b", "c"); delete(w.files, "/m/claude.yaml") }, "3 of 4 sessions are missing at once"},
		"elsewhere":    {func(w *world) { w.roots[0].Path = "/n"; w.files["/n/x.yaml"] = yamlOf("x", "") }, "/m/claude.yaml is below no manifest directory that is in use"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("a", "b", "c", "d")
			w.files["/m/claude.yaml"] = classOf("claude", "mine")
			w.resolve()
			c.change(w)
			w.resolve()
			w.resolveAfter(time.Hour)
			d := w.set.Classes["claude"]
			assert.Equal(t, Held, d.Presence)
			assert.Contains(t, d.Message, c.why)
			assert.Equal(t, d.Message, d.Source().Held)
			assert.Equal(t, "mine", w.classMarker("claude"))

			w.roots[0], w.unread = Root{Path: "/m", Access: Readable, Device: 7}, nil
			delete(w.files, "/m/claude.yaml")
			w.declare("a", "b", "c", "d")
			w.resolveAfter(time.Hour)
			assert.Equal(t, Held, w.set.Classes["claude"].Presence, "a hold ends when the document is back")
			w.files["/m/claude.yaml"] = classOf("claude", "mine")
			w.resolve()
			assert.Equal(t, Present, w.set.Classes["claude"].Presence)
		})
	}
}

func TestAPersonEndsTheHoldOfAClass(t *testing.T) {
	w := newWorld(t)
	w.files["/m/claude.yaml"] = classOf("claude", "mine")
	w.resolve()
	w.files = map[string]string{}
	w.resolveAfter(time.Hour)
	assert.Equal(t, Held, w.set.Classes["claude"].Presence)
	w.state = Confirm(w.state, nil)
	w.resolve()
	assert.Empty(t, w.set.Classes)
}

func TestADeletedClassGoesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.files["/m/claude.yaml"] = classOf("claude", "mine")
	w.resolve()
	delete(w.files, "/m/claude.yaml")
	w.state = DeletedClass(w.state, "claude")
	w.resolve()
	assert.Empty(t, w.set.Classes)
	w.files["/m/claude.yaml"] = classOf("claude", "mine")
	w.state = DeletedClass(w.state, "claude")
	w.resolve()
	w.resolve()
	assert.Equal(t, "mine", w.classMarker("claude"), "the mark ends when the document stays")
}

// A class guards no session, and a session no class.
func TestANameInADamagedFileGuardsItsKindAlone(t *testing.T) {
	w := newWorld(t)
	w.declare("keep", "x")
	w.files["/m/c.yaml"] = classOf("x", "1")
	w.resolve()
	w.remove("x")
	w.files["/m/c.yaml"] = strings.Replace(classOf("x", "1"), "Assigned", "Asigned", 1)
	w.resolveAfter(0)
	w.resolveAfter(time.Hour)
	w.requirePresence(Removed, "x")
	assert.Equal(t, "1", w.classMarker("x"))
}
