// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func classDocument(name, program string) string {
	return "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: " + name + "}\nspec:\n" +
		"  start: {command: [" + program + ", $(CONVERSATION_ID)]}\n  resume: {command: [" + program + ", $(CONVERSATION_ID)]}\n" +
		"  conversation: {identity: Assigned}\n"
}

// classes waits until what is served of a class is as it should be.
func waitForClass(e *envtest.Env, name string, as func(spec.ClientClass) bool) spec.ClientClass {
	var class spec.ClientClass
	e.Eventually("client class "+name, func() bool {
		var err error
		class, err = e.Controller().Class(name)
		return err == nil && as(class)
	})
	return class
}

func TestClientClassesAreServedWithTheirSessionsAndTheirSource(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Apply(sleeper(e, "a"))
	e.WaitFor("a", envtest.Running)
	exec := waitForClass(e, spec.ClassExec, func(c spec.ClientClass) bool { return c.Status.Sessions == 1 })
	assert.True(t, exec.Status.BuiltIn)
	assert.Nil(t, exec.Status.Source)
	assert.False(t, exec.CreationTimestamp.IsZero())

	e.Write("gemini.yaml", classDocument("gemini", "one"))
	gemini := waitForClass(e, "gemini", func(spec.ClientClass) bool { return true })
	file := filepath.Join(e.Manifests, "gemini.yaml")
	assert.Equal(t, &spec.SourceStatus{File: file, Line: 1}, gemini.Status.Source)
	assert.Equal(t, metav1.TypeMeta{APIVersion: "muxlet.dev/v1alpha1", Kind: "ClientClass"}, gemini.TypeMeta)
	var names []string
	for _, c := range e.Controller().Classes().Items {
		names = append(names, c.Name)
	}
	assert.Equal(t, []string{"claude", "codex", "exec", "gemini"}, names)

	e.Write("gemini.yaml", strings.Replace(classDocument("gemini", "two"), "Assigned", "Asigned", 1))
	broken := waitForClass(e, "gemini", func(c spec.ClientClass) bool { return c.Status.Source.Error != "" })
	assert.Equal(t, "one", broken.Spec.Start.Command[0], "the last good one stays in force")
	assert.Equal(t, gemini.CreationTimestamp, broken.CreationTimestamp)

	e.Write("claude.yaml", classDocument("claude", "mine"))
	waitForClass(e, "claude", func(c spec.ClientClass) bool { return !c.Status.BuiltIn && c.Spec.Start.Command[0] == "mine" })
	version := e.Controller().Classes().ResourceVersion
	e.Write("other.yaml", "# nothing\n")
	e.Remove("other.yaml")
	assert.Equal(t, version, e.Controller().Classes().ResourceVersion, "what is the same is not told again")
}

func TestAClientClassIsDeletedWithItsDocumentAlone(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Write("all.yaml", classDocument("claude", "mine")+"---\n"+e.Document(sleeper(e, "claude")))
	e.WaitFor("claude", envtest.Running)
	waitForClass(e, "claude", func(c spec.ClientClass) bool { return !c.Status.BuiltIn })
	require.NoError(t, e.Controller().DeleteClass(t.Context(), "claude"))
	class, err := e.Controller().Class("claude")
	require.NoError(t, err)
	assert.True(t, class.Status.BuiltIn, "at once")
	data, err := os.ReadFile(filepath.Join(e.Manifests, "all.yaml"))
	require.NoError(t, err)
	assert.NotContains(t, string(data), "ClientClass")
	assert.Contains(t, string(data), "kind: Session")
	e.WaitFor("claude", envtest.Running)

	err = e.Controller().DeleteClass(t.Context(), "claude")
	assert.Equal(t, server.ReasonForbidden, server.ReasonOf(err))
	require.EqualError(t, err, `client class "claude": it is built in, and no document declares it`)
	assert.Equal(t, server.ReasonNotFound, server.ReasonOf(e.Controller().DeleteClass(t.Context(), "nobody")))
	e.Write("a.yaml", classDocument("twice", "x"))
	e.Write("b.yaml", classDocument("twice", "x"))
	waitForClass(e, "twice", func(c spec.ClientClass) bool { return strings.Contains(c.Status.Source.Error, "b.yaml:1") })
	err = e.Controller().DeleteClass(t.Context(), "twice")
	assert.Equal(t, server.ReasonConflict, server.ReasonOf(err), "which one is meant is a person's to say")
}

// An edit that its class does not permit changes nothing about what runs.
func TestASessionThatItsClassDoesNotTakeGoesOnWithItsLastGoodSpec(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	a := sleeper(e, "a")
	e.Apply(a)
	before := e.WaitFor("a", envtest.Running)
	a.Spec.ClientClassName = spec.ClassClaude
	e.Apply(a)
	now := e.WaitFor("a", envtest.Condition(spec.ConditionAccepted, metav1.ConditionFalse, spec.ReasonInvalid))
	assert.Equal(t, before.Status.Client.Pid, now.Status.Client.Pid)
	assert.Equal(t, spec.ClassExec, now.Spec.ClientClassName)
	assert.Contains(t, now.Status.Source.Error, "class claude has a command of its own")
}
