// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/muxlet/muxlet/spec"
)

// short is a session that leaves its directory to the settings.
func short(name, spec string) string {
	return "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: " + name + "}\n" + spec
}

// fakeClass makes the fake client a class, so that a session needs no line for it.
func (w *World) fakeClass() {
	w.write("class.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: fake}\nspec: {start: {command: ["+w.dir+"/bin/fake]}}\n")
}

func TestASessionOfTwoLinesTakesTheRestFromTheSettings(t *testing.T) {
	t.Parallel()
	given := settings{"workspace": settings{"directory": "~/work"}, "clientClassName": "fake",
		"client": settings{"shellMode": "None", "args": []string{"stay"}, "env": []settings{{"name": "FROM", "value": "settings"}, {"name": "WHO", "value": "settings"}}}}
	w := newWorld(t, settings{"sessionDefaults": given})
	w.fakeClass()
	w.write("a.yaml", short("a", ""))
	w.write("b.yaml", short("b", "spec: {client: {env: [{name: WHO, value: b}]}, startupTimeoutSeconds: 90}\n"))
	assert.Contains(t, w.does("validate"), "2 sessions and 1 client class valid")
	w.start()
	a, b := w.runs("a"), w.runs("b")
	assert.Equal(t, w.home+"/work", a.Status.Workspace.Path)
	assert.Equal(t, []spec.EnvVar{{Name: "FROM", Value: "settings"}, {Name: "WHO", Value: "settings"}}, a.Spec.Client.Env)
	assert.Equal(t, []spec.EnvVar{{Name: "FROM", Value: "settings"}, {Name: "WHO", Value: "b"}}, b.Spec.Client.Env)
	var shown spec.Session
	require.NoError(t, yaml.Unmarshal([]byte(w.does("get", "a", "-o", "yaml")), &shown))
	assert.Equal(t, "~/work", shown.Spec.Workspace.Directory, "what the settings give is shown")
	assert.Equal(t, "fake", shown.Spec.ClientClassName)

	// An edit of the settings is an edit of each session that it touches.
	given["client"] = settings{"shellMode": "None", "args": []string{"stay"}, "env": []settings{{"name": "FROM", "value": "settings"}, {"name": "WHO", "value": "other"}}}
	w.configure(settings{"sessionDefaults": given})
	again := w.runsAs("a", 2)
	assert.Equal(t, a.Generation+1, again.Generation)
	w.holds("b says it itself", 2*time.Second, func() bool { return w.get("b").Status.Client.Pid == pid(b) })
	assert.Equal(t, b.Generation, w.get("b").Generation)

	// A policy restarts nothing.
	given["updateStrategy"] = settings{"type": "OnRestart"}
	w.configure(settings{"sessionDefaults": given})
	w.becomes("a", "it has the policy", func(s *spec.Session) bool { return s.Spec.UpdateStrategy.Type == spec.UpdateOnRestart })
	w.holds("it goes on", time.Second, func() bool { return w.get("a").Status.Client.Pid == pid(again) })

	// What the sessions cannot do without is gone: they go on with what they had.
	w.configure(settings{"sessionDefaults": settings{"clientClassName": "fake"}})
	w.becomes("a", "it is invalid", func(s *spec.Session) bool { return reason(s, spec.ConditionAccepted) == spec.ReasonInvalid })
	assert.Equal(t, pid(again), w.get("a").Status.Client.Pid)
	assert.Equal(t, 2, strings.Count(w.muxlet("validate").errOut, "spec.workspace.directory: is required"))
}

func TestAShortSessionIsAppliedEditedAndSuspendedAsAnyOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"sessionDefaults": settings{"workspace": settings{"directory": "~/work"}, "clientClassName": "fake", "client": settings{"shellMode": "None", "args": []string{"stay"}}}})
	w.fakeClass()
	w.start()
	assert.Equal(t, "session/a created\n", w.feed(short("a", "# mine\nspec: {}\n"), "apply", "-f", "-"))
	a := w.runs("a")
	assert.Equal(t, "session/a unchanged\n", w.feed(short("a", "spec: {}\n"), "apply", "-f", "-"))
	w.does("suspend", "a")
	w.reaches("a", spec.StatusSuspended)
	assert.Contains(t, w.read("a.yaml"), "# mine\nspec: {suspend: true}")
	w.does("resume", "a")
	assert.Greater(t, w.runs("a").Status.Client.Incarnation, a.Status.Client.Incarnation)
	w.setenv("EDITOR", "sed -i s/mine/ours/")
	assert.Equal(t, "session/a edited\n", w.does("edit", "a"))
	assert.Contains(t, w.read("a.yaml"), "# ours")
	w.does("delete", "a")
	w.gone("a")

	// What is wrong is said with the place, as of any other.
	out := w.muxlet("apply", "-f", w.note("bad.yaml", short("b", "spec: {workspace: {directory: \"\"}}\n"))).errOut
	assert.Contains(t, out, "bad.yaml:4:")
	assert.Contains(t, out, "spec.workspace.directory: is required")
}

func TestASettingThatMakesNoSenseAsADefaultIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"sessionDefaults": settings{"suspend": true, "restartPolicy": "Sometimes"}})
	out := w.muxlet("validate").errOut
	assert.Regexp(t, `config\.yaml:\d+:\d+: sessionDefaults\.suspend: `, out)
	assert.Regexp(t, `config\.yaml:\d+:\d+: sessionDefaults\.restartPolicy: "Sometimes" is not one of`, out)
	w.configure(settings{"sessionDefaults": settings{"clientClasName": "x"}})
	out = w.muxlet("validate").errOut
	assert.Contains(t, out, `sessionDefaults.clientClasName: unknown field (did you mean "clientClassName"?)`)
	assert.Equal(t, 1, strings.Count(out, "sessionDefaults."))
}

// A settings file that is not there when the daemon starts says nothing: what it gave to
// each session stays, as it does under a daemon that runs.
func TestASettingsFileThatIsGoneEditsNoSession(t *testing.T) {
	t.Parallel()
	given := settings{"sessionDefaults": settings{"clientClassName": "fake", "client": settings{"shellMode": "None", "args": []string{"stay"}}}}
	w := newWorld(t, given)
	w.fakeClass()
	w.write("a.yaml", short("a", "spec: {workspace: {directory: ~/work}}\n"))
	w.start()
	before := w.runs("a")
	file := w.home + "/.config/muxlet/config.yaml"
	stays := func() {
		w.holds("it goes on", time.Second, func() bool {
			now := w.get("a")
			return now == nil || now.Generation == before.Generation && (pid(now) == 0 || pid(now) == pid(before))
		})
	}
	for _, gone := range []func(){
		func() { require.NoError(t, os.Remove(file)) },
		func() { w.write(file, "") },
	} {
		w.kill()
		gone()
		w.start()
		w.eventually([]string{"get"}, "config.yaml: the settings file is ", "what it gave to sessions stays in force until then")
		stays()
		w.kill()
		w.start()
		stays()
		assert.Equal(t, pid(before), pid(w.runs("a")))
	}
	w.write(file, "apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\n")
	w.becomes("a", "edited by a file that says otherwise", func(s *spec.Session) bool { return s.Generation > before.Generation })
}

// A settings file that is written in place is a shorter one for a moment, and a valid one at
// that. It edits no session.
func TestASettingsFileThatIsHalfWrittenEditsNoSession(t *testing.T) {
	t.Parallel()
	given := settings{"sessionDefaults": settings{"updateStrategy": settings{"type": "Recreate"}, "clientClassName": "fake", "client": settings{"shellMode": "None", "args": []string{"stay"}}}}
	w := newWorld(t, given)
	w.fakeClass()
	w.write("a.yaml", short("a", "spec: {workspace: {directory: ~/work}}\n"))
	w.start()
	before := w.runs("a")
	whole, err := os.ReadFile(w.settingsFile())
	require.NoError(t, err)
	head := strings.Index(string(whole), "sessionDefaults:")
	require.Positive(t, head)
	for range 3 {
		// Longer than the hints of a file's changes are held back.
		require.NoError(t, os.WriteFile(w.settingsFile(), whole[:head], 0o600))
		w.holds("it goes on", 400*time.Millisecond, func() bool { return w.get("a").Generation == before.Generation })
		require.NoError(t, os.WriteFile(w.settingsFile(), whole, 0o600))
	}
	w.holds("it goes on", 2*time.Second, func() bool { return w.get("a").Generation == before.Generation })
	assert.Equal(t, pid(before), pid(w.runs("a")))

	// A daemon that starts in the middle of it.
	w.kill()
	require.NoError(t, os.WriteFile(w.settingsFile(), whole[:head], 0o600))
	w.spawn()
	<-time.After(300 * time.Millisecond)
	require.NoError(t, os.WriteFile(w.settingsFile(), whole, 0o600))
	w.answersAnew()
	w.holds("it goes on", 2*time.Second, func() bool { now := w.get("a"); return now == nil || now.Generation == before.Generation })
	assert.Equal(t, pid(before), pid(w.runs("a")))

	require.NoError(t, os.WriteFile(w.settingsFile(), []byte(strings.Replace(string(whole), "- stay", "- stay\n    - more", 1)), 0o600))
	w.becomes("a", "edited by a file that stays", func(s *spec.Session) bool { return s.Generation > before.Generation })
}
