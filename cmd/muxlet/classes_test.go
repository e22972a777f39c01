// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

func classManifest(name string) string {
	return "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata:\n  name: " + name +
		"\nspec:\n  start: {command: [agent, --id, $(CONVERSATION_ID)]} # fresh\n" +
		"  resume: {command: [agent, --resume, $(CONVERSATION_ID)]}\n  conversation: {identity: Assigned}\n"
}

func manifestOfClass(name, class string) string {
	return strings.Replace(manifestOf(name), "  client:\n    command: [sleep, 1d]\n", "  clientClassName: "+class+"\n", 1)
}

// classy is a daemon with the built-in classes and three declared ones.
func classy() *fakeDaemon {
	f := newFakeDaemon()
	for _, c := range spec.BuiltInClasses() {
		c.CreationTimestamp, c.Status.Sessions = before(26*time.Hour), 2
		f.setClass(c)
	}
	gemini := spec.DecodeFile("f", []byte(classManifest("gemini"))).Items[0].Class
	gemini.CreationTimestamp = before(time.Minute)
	gemini.Status.Source = &spec.SourceStatus{File: "/m/gemini.yaml", Line: 3}
	f.setClass(*gemini)
	held := gemini.DeepCopy()
	held.Name, held.Status.Source = "held", &spec.SourceStatus{File: "/m/held.yaml", Held: "the removal is held because of something"}
	f.setClass(*held)
	f.setClass(spec.ClientClass{
		ObjectMeta: metav1.ObjectMeta{Name: "broken", CreationTimestamp: before(time.Minute)},
		Status:     spec.ClientClassStatus{Source: &spec.SourceStatus{File: "/m/broken.yaml", Line: 1, Error: "/m/broken.yaml:9:3: spec.strat: unknown field; nothing is started with it until this is mended"}},
	})
	return f
}

func TestGetListsClientClasses(t *testing.T) {
	c := newCLI(t, classy())
	for _, word := range []string{"clientclasses", "clientclass", "cc", "clientclasses.muxlet.dev"} {
		assert.Equal(t, 0, c.run("get", word), c.errOut)
		c.golden("get-classes")
	}
	assert.Equal(t, 0, c.run("get", "cc", "-o", "wide"))
	c.golden("get-classes-wide")
	assert.Equal(t, 0, c.run("get", "cc", "-o", "name"))
	assert.Equal(t, "clientclass.muxlet.dev/broken\nclientclass.muxlet.dev/claude\nclientclass.muxlet.dev/codex\nclientclass.muxlet.dev/exec\n"+
		"clientclass.muxlet.dev/gemini\nclientclass.muxlet.dev/held\n", c.out)
	assert.Equal(t, 0, c.run("get", "cc", "-o", "jsonpath={.items[*].status.builtIn}"))
	assert.Equal(t, "false true true true false false", c.out)
}

func TestGetShowsSingleClientClasses(t *testing.T) {
	c := newCLI(t, classy())
	for _, args := range [][]string{{"cc", "gemini"}, {"cc/gemini"}, {"clientclass/gemini"}, {"cc", "cc/gemini"}} {
		assert.Equal(t, 0, c.run(append([]string{"get", "--no-headers"}, args...)...), c.errOut)
		assert.Equal(t, "gemini   Assigned   None   false   0     60s\n", c.out, args)
	}
	assert.Equal(t, exitNotFound, c.run("get", "cc", "gemini", "nobody", "-o", "name"))
	assert.Equal(t, "clientclass.muxlet.dev/gemini\n", c.out)
	assert.Equal(t, "Error: client class \"nobody\" not found: \"muxlet get clientclasses\" lists those that exist\n", c.errOut)
	assert.Equal(t, exitUsage, c.run("get", "cc/gemini", "sessions/a"))
	assert.Equal(t, exitUsage, c.run("get", "cc", "--waiting"))
	assert.Equal(t, 0, c.run("get", "cc", "gemini", "-o", "yaml"))
	assert.Contains(t, c.out, "kind: ClientClass\n")
	assert.Contains(t, c.out, "source:\n    file: /m/gemini.yaml\n")
	assert.Equal(t, exitUsage, c.run("suspend", "cc/gemini"), "the other verbs are for sessions")
	assert.Equal(t, exitNotFound, c.run("get", "claude"), "a plain name is a session's")
}

func TestGetWatchPrintsEachChangeOfAClientClass(t *testing.T) {
	f := classy()
	w := newCLI(t, f).begin("get", "cc", "gemini", "-w", "--output-watch-events")
	w.shows("ADDED")
	more, err := f.Class("gemini")
	require.NoError(t, err)
	more.Status.Sessions = 5
	f.setClass(more)
	w.shows("MODIFIED")
	f.removeClass("gemini")
	w.shows("DELETED")
	assert.Equal(t, 0, w.ends())
	assert.NotContains(t, w.out.String(), "claude")
}

// What get prints of a built-in class overrides it, or is another class once it has
// another name.
func TestABuiltInClassThatWasPrintedCanBeApplied(t *testing.T) {
	f := classy()
	c := newCLI(t, f)
	f.status.Manifests = []string{filepath.Join(c.dir, "sessions")}
	for _, name := range []string{"claude", "codex", "exec"} {
		assert.Equal(t, 0, c.run("get", "cc", name, "-o", "yaml"))
		printed := c.out
		renamed := strings.Replace(printed, "name: "+name+"\n", "name: my-"+name+"\n", 1)
		assert.Equal(t, 0, c.run("apply", "-f", c.write("both.yaml", printed+"---\n"+renamed)), c.errOut)
		assert.Equal(t, "clientclass/"+name+" created\nclientclass/my-"+name+" created\n", c.out)
		assert.Equal(t, 0, c.run("validate"), c.errOut)
		for _, file := range []string{name, "my-" + name} {
			text := c.read("sessions/" + file + ".yaml")
			assert.NotContains(t, text, "\nstatus:", "what is served is not declared")
			class := spec.DecodeFile("f", []byte(text)).Items[0].Class
			require.NotNil(t, class)
			assert.Equal(t, spec.ResolveClass(name, nil).Spec, class.Spec)
		}
		assert.Equal(t, 0, c.run("apply", "-f", c.dir+"/both.yaml"))
		assert.Equal(t, "clientclass/"+name+" unchanged\nclientclass/my-"+name+" unchanged\n", c.out)
	}
	assert.Equal(t, 0, c.run("get", "cc", "claude", "codex", "-o", "yaml"))
	assert.Equal(t, 0, c.run("apply", "--dry-run", "-f", c.write("list.yaml", c.out)), c.errOut)
	assert.Equal(t, "clientclass/claude unchanged (dry run)\nclientclass/codex unchanged (dry run)\n", c.out)
}

func TestApplyEditsADocumentOfAClassAsLittleAsPossible(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/all.yaml", "# why\n"+classManifest("a")+"---\n"+manifestOf("a"))
	mine := c.write("mine.yaml", strings.Replace(classManifest("a"), "[agent, --id,", "[agent, --verbose, --id,", 1))
	assert.Equal(t, 0, c.run("apply", "-f", mine, "-o", "name"), c.errOut)
	assert.Equal(t, "clientclass.muxlet.dev/a\n", c.out)
	assert.Empty(t, c.errOut)
	want := strings.Replace(classManifest("a"), "[agent, --id,", "[agent, --verbose, --id,", 1)
	assert.Equal(t, "# why\n"+want+"---\n"+manifestOf("a"), c.read("sessions/all.yaml"), "the session of that name is another thing")
}

func TestApplyJudgesSessionsByTheirClass(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/gemini.yaml", classManifest("gemini"))
	both := strings.Replace(manifestOf("a"), "spec:\n", "spec:\n  clientClassName: gemini\n", 1)
	assert.Equal(t, exitError, c.run("apply", "-f", c.write("a.yaml", both)))
	assert.Equal(t, "Error: session \"a\": /tmp/test/a.yaml:8:14: spec.client.command: class gemini has a command of its own; append to it with client.args, or use clientClassName: exec\n", c.errOut)
	assert.Empty(t, c.out)
	assert.NotContains(t, c.files("sessions"), "a.yaml")

	c.write("a.yaml", manifestOfClass("a", "gemini")+"---\n"+manifestOfClass("b", "opencode")+"---\n"+classManifest("opencode"))
	assert.Equal(t, 0, c.run("apply", "-f", c.dir+"/a.yaml"))
	assert.Empty(t, c.errOut, "classes that come along are known")
	assert.Equal(t, "session/a created\nsession/b created\nclientclass/opencode created\n", c.out)
	c.write("a.yaml", manifestOfClass("c", "nobody"))
	assert.Equal(t, 0, c.run("apply", "-f", c.dir+"/a.yaml"))
	assert.Equal(t, "Warning: session/c names the client class \"nobody\", which is neither declared nor built in; there are claude, codex, exec, gemini, opencode.\n", c.errOut)
}

func TestTheDefaultClassOfTheSettingsJudgesWhatNamesNone(t *testing.T) {
	c := newCLI(t, nil)
	plain := strings.Replace(manifestOfClass("a", "x"), "  clientClassName: x\n", "", 1)
	c.write("sessions/a.yaml", plain)
	assert.Equal(t, 0, c.run("validate"), c.errOut)
	c.write("config/muxlet/config.yaml", "apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\ndefaultClientClassName: exec\n")
	assert.Equal(t, exitError, c.run("validate"))
	assert.Contains(t, c.errOut, "/tmp/test/sessions/a.yaml:5:1: spec.client.command: is required: class exec runs what the session says")
	assert.Equal(t, exitError, c.run("apply", "-f", c.write("b.yaml", plain)))
	assert.Contains(t, c.errOut, "class exec runs what the session says")
	c.editor(`sed -i 's/^spec:$/spec: # x/' "$1"`)
	assert.Equal(t, exitError, c.run("edit", "a"))
	assert.Contains(t, c.errOut, "class exec runs what the session says")
}

func TestValidateKnowsBothKinds(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", classManifest("gemini")+"---\n"+manifestOfClass("a", "gemini")+"---\n"+manifestOfClass("b", "claude"))
	assert.Equal(t, 0, c.run("validate"), c.errOut)
	assert.Equal(t, "2 sessions and 1 client class valid\n", c.out)
	assert.Empty(t, c.errOut)
	one := c.write("one.yaml", classManifest("k")+"---\n"+classManifest("l"))
	assert.Equal(t, 0, c.run("validate", one))
	assert.Equal(t, "2 client classes valid\n", c.out)
	// A file alone is checked by the classes that are declared where it may go.
	assert.Equal(t, 0, c.run("validate", c.write("alone.yaml", manifestOfClass("c", "gemini"))))
	assert.Empty(t, c.errOut)
	assert.Equal(t, 0, c.run("validate", c.write("alone.yaml", manifestOfClass("c", "gemni"))))
	assert.Equal(t, "Warning: /tmp/test/alone.yaml:6:20: session \"c\" names the client class \"gemni\", which is neither declared nor built in; there are claude, codex, exec, gemini.\n", c.errOut)

	c.write("sessions/b.yaml", classManifest("gemini")+"---\n"+strings.Replace(classManifest("bad"), "Assigned", "Asigned", 1))
	assert.Equal(t, exitError, c.run("validate"))
	c.golden("validate-classes")
}

func TestEditOfAClientClass(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/all.yaml", manifestOf("gemini")+"---\n# mine\n"+classManifest("gemini"))
	c.editor(`cp "$1" ` + c.dir + `/seen; sed -i 's/--id/--session/' "$1"`)
	for _, args := range [][]string{{"edit", "clientclass", "gemini"}, {"edit", "cc/gemini"}} {
		c.write("sessions/all.yaml", manifestOf("gemini")+"---\n# mine\n"+classManifest("gemini"))
		assert.Equal(t, 0, c.run(args...), c.errOut)
		assert.Equal(t, "clientclass/gemini edited\n", c.out)
		assert.Equal(t, manifestOf("gemini")+"---\n# mine\n"+strings.Replace(classManifest("gemini"), "--id", "--session", 1), c.read("sessions/all.yaml"))
		assert.Contains(t, c.read("seen"), "#muxlet: Edit the document of client class gemini below")
	}
	for script, said := range map[string]string{
		`sed -i 's/name: gemini/name: other/' "$1"`:        "a client class cannot be renamed: put \"gemini\" back",
		`sed -i 's/kind: ClientClass/kind: Session/' "$1"`: "unknown field",
		`sed -i 's/Assigned/Asigned/' "$1"`:                `"Asigned" is not one of Assigned, Reported, None (did you mean "Assigned"?)`,
	} {
		c.editor(script)
		assert.Equal(t, exitError, c.run("edit", "cc/gemini"))
		assert.Contains(t, c.errOut, said)
	}
	assert.Equal(t, exitNotFound, c.run("edit", "cc/nobody"))
	assert.Equal(t, "Error: client class \"nobody\" not found: no file in /tmp/test/sessions declares it\n", c.errOut)
	assert.Equal(t, exitNotFound, c.run("edit", "clientclass", "claude"))
	assert.Equal(t, "Error: client class \"claude\" is built in: to override it, put the output of \"muxlet get clientclass claude -o yaml\" into a file, change that and apply it\n", c.errOut)
	assert.Equal(t, exitUsage, c.run("edit", "cc", "a", "b"))
}

func TestDeleteOfAClientClass(t *testing.T) {
	f := classy()
	f.set(runningSession("gemini", 1, 5))
	c := newCLI(t, f)
	assert.Equal(t, exitError, c.run("delete", "cc/claude"))
	assert.Equal(t, "Error: client class \"claude\": it is built in\n", c.errOut)
	assert.Equal(t, 0, c.run("delete", "clientclass", "gemini", "held"), c.errOut)
	assert.Equal(t, "clientclass/gemini deleted\nclientclass/held deleted\n", c.out)
	assert.Empty(t, f.intents(), "the session of that name is another thing")
	assert.Equal(t, exitNotFound, c.run("delete", "cc/gemini"))
	override, err := f.Class("claude")
	require.NoError(t, err)
	override.Status = spec.ClientClassStatus{Sessions: 2}
	f.setClass(override)
	assert.Equal(t, 0, c.run("delete", "cc/claude"))
	assert.Equal(t, "Warning: clientclass/claude is the built-in one again, for 2 sessions.\n", c.errOut)
	assert.Equal(t, exitUsage, c.run("delete", "cc/codex", "--all"))
}

func TestClientClassesAreCompleted(t *testing.T) {
	f := classy()
	f.set(runningSession("web", 1, 5))
	c := newCLI(t, f)
	for _, r := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "cc", ""}, "broken\t0 sessions\nclaude\t2 sessions\ncodex\t2 sessions\nexec\t2 sessions\ngemini\t0 sessions\nheld\t0 sessions\n"},
		{[]string{"edit", "cc/"}, "cc/broken\t0 sessions\ncc/claude\t2 sessions\ncc/codex\t2 sessions\ncc/exec\t2 sessions\ncc/gemini\t0 sessions\ncc/held\t0 sessions\n"},
		{[]string{"delete", "clientclass", "claude", "broken", "codex", "exec", ""}, "gemini\t0 sessions\nheld\t0 sessions\n"},
		{[]string{"edit", ""}, "web\tRunning\nclientclass\ta client class\n"},
		{[]string{"suspend", "cc", ""}, "web\tRunning\n"},
	} {
		assert.Equal(t, 0, c.run(append([]string{"__complete"}, r.args...)...), r.args)
		words, _, _ := strings.Cut(c.out, ":4")
		assert.Equal(t, r.want, words, r.args)
	}
}
