// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// class is what get tells of a client class: its name, whether it is built in, and how
// many sessions have it.
func (w *World) class(name string) string {
	w.Helper()
	return w.muxlet("get", "cc", name, "-o", "jsonpath={.metadata.name} {.status.builtIn} {.status.sessions}").text()
}

// The built-in classes are written in the same YAML, shown by get, and overridden by a
// declared one of that name; nothing that runs is touched by that.
func TestAClientClassIsShownOverriddenEditedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("s", "stay")
	w.start()
	s := w.runs("s")
	assert.Equal(t, "clientclass.muxlet.dev/claude\nclientclass.muxlet.dev/codex\nclientclass.muxlet.dev/exec\n", w.does("get", "clientclasses", "-o", "name"))
	assert.Equal(t, "exec true 1", w.class("exec"))

	printed := w.does("get", "clientclass", "claude", "-o", "yaml")
	renamed := strings.Replace(printed, "name: claude\n", "name: mine\n", 1)
	assert.Equal(t, "clientclass/claude created\nclientclass/mine created\n", w.does("apply", "-f", w.note("classes.yaml", printed+"---\n"+renamed)))
	w.waitFor("it overrides the built-in one", func() bool { return w.class("claude") == "claude false 0" })
	assert.Equal(t, "mine false 0", w.class("mine"))
	assert.Contains(t, w.does("get", "cc", "-o", "wide"), w.manifests+"/mine.yaml:1")
	assert.Equal(t, "1 session and 2 client classes valid\n", w.does("validate"))

	w.editor(`sed -i 's/SIGTERM/SIGINT/' "$1"`)
	assert.Equal(t, "clientclass/mine edited\n", w.does("edit", "cc/mine"))
	w.waitFor("the edit is served", func() bool {
		return w.does("get", "cc", "mine", "-o", "jsonpath={.spec.stop.signal}") == "SIGINT"
	})
	assert.Contains(t, w.does("delete", "clientclass", "mine", "claude"), "clientclass/mine deleted\n")
	assert.Equal(t, "claude true 0", w.class("claude"))
	assert.Contains(t, w.refuses(3, "get", "cc/mine"), `client class "mine" not found`)
	assert.Contains(t, w.refuses(1, "delete", "cc/claude"), "it is built in")
	assert.Equal(t, pid(s), pid(w.get("s")))
	assert.Equal(t, 1, w.countOf("s"))
}

func TestAClientClassIsHeldWithItsDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("s", "stay")
	w.write("mine.yaml", strings.Replace(strings.Replace(w.document("x", "stay"), "kind: Session", "kind: ClientClass", 1), "spec:", "spec: {}\nx-spec:", 1))
	w.start()
	s := w.runs("s")
	assert.Contains(t, w.muxlet("get").text(), "x-spec: unknown field", "a problem of a class is told as one of a session is")
	w.write("mine.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: mine}\nspec: {start: {command: [top]}}\n")
	w.waitFor("the class is there", func() bool { return w.class("mine") == "mine false 0" })
	require.NoError(t, os.Rename(w.manifests, w.manifests+".away"))
	w.eventually([]string{"get", "cc"}, "mine: the removal is held because the manifest directory "+w.manifests+" does not exist")
	assert.Contains(t, w.does("prune"), "clientclass/mine would be removed")
	require.NoError(t, os.Rename(w.manifests+".away", w.manifests))
	w.waitFor("nothing is held", func() bool { return w.does("prune") == "Nothing is held back.\n" })

	require.NoError(t, os.Remove(w.manifests+"/mine.yaml"))
	w.waitFor("it is gone after the settle time", func() bool { return w.muxlet("get", "cc", "mine").code == 3 })
	assert.Equal(t, pid(s), pid(w.get("s")))
}

func TestTheSettingsSayWhichClassIsTheDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"defaultClientClassName": "codex"})
	w.write("plain.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: plain}\nspec: {workspace: {directory: /tmp}, suspend: true}\n")
	w.start()
	class := func() string { return w.muxlet("get", "plain", "-o", "jsonpath={.spec.clientClassName}").text() }
	w.waitFor("it has the default class", func() bool { return class() == "codex" })
	w.configure(settings{"defaultClientClassName": "claude"})
	w.uses("defaultClientClassName", "claude")
	w.waitFor("it has the other class", func() bool { return class() == "claude" })
	assert.NotContains(t, w.read("plain.yaml"), "clientClassName")
}
