// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// zoo has a session in each state.
func zoo() *fakeDaemon {
	restarted := runningSession("api", 4, 4711)
	restarted.Labels = map[string]string{"repo": "shop"}
	ended(&restarted, 3, killed())
	blocked := stalledSession("docs", spec.ReasonWorkspaceMissing, "The directory /home/me/src/docs does not exist.")
	condition(&blocked, spec.ConditionWorkspaceReady, metav1.ConditionFalse, spec.ReasonWorkspaceMissing, "")
	completed := stalledSession("import", spec.ReasonCompleted, "The client exited with status 0.")
	ended(&completed, 1, spec.Termination{ExitCode: pointer(int32(0)), Reason: spec.ReasonCompleted, FinishedAt: before(3 * time.Hour)})
	lost := runningSession("worker", 2, 99)
	ended(&lost, 1, spec.Termination{Reason: spec.ReasonLost, FinishedAt: before(50 * time.Hour)})
	never := downSession("new", spec.ReasonStarting, "")
	never.CreationTimestamp = before(0)
	return newFakeDaemon(restarted, blocked, completed, lost, never,
		crashLooping("web"), suspendedSession("old"), unknownSession("tmux-hung"), invalidSession("typo"))
}

// A worktree may be removed under the shell of the person who works in it.
func TestADirectoryThatWasRemovedUnderAShellIsInNobodysWay(t *testing.T) {
	c := newCLI(t, newFakeDaemon())
	gone := filepath.Join(c.dir, "gone")
	require.NoError(t, os.Mkdir(gone, 0o700))
	t.Chdir(gone)
	require.NoError(t, os.Remove(gone))
	require.Zero(t, c.run("get"), c.errOut)
	assert.Equal(t, exitError, c.run("get", "--runtime-dir", "run"))
	assert.Contains(t, c.errOut, "is relative, and the working directory is not there any more")
}

func TestGetListsEverySessionInOneTable(t *testing.T) {
	c := newCLI(t, zoo())
	assert.Equal(t, 0, c.run("get"))
	c.golden("get")
	table := c.out
	for _, args := range [][]string{{}, {"get", "sessions"}, {"get", "session"}, {"get", "ses"}} {
		assert.Equal(t, 0, c.run(args...), args)
		assert.Equal(t, table, c.out, args)
	}
}

func TestGetWideAddsWhereAndHowItEnded(t *testing.T) {
	c := newCLI(t, zoo())
	assert.Equal(t, 0, c.run("get", "-o", "wide"))
	c.golden("get-wide")
}

func TestGetShowsASessionThatWaitsForADemandAsDormantAndAtRest(t *testing.T) {
	lazy := dormantSession("lazy")
	ended(&lazy, 2, killed())
	c := newCLI(t, newFakeDaemon(lazy, stalledSession("web", spec.ReasonCommandNotFound, "")))
	assert.Equal(t, 0, c.run("get", "--no-headers", "-o", "wide"))
	lines := strings.Split(c.out, "\n")
	assert.Contains(t, lines[0], "web", "what needs a person comes first")
	assert.Regexp(t, `^lazy +exec +Dormant +False +1 \(2m ago\) +- +26h +2 +/home/me/src/lazy +- +- +SIGKILL \(2m ago\)$`, lines[1])
	assert.Equal(t, 0, c.run("get", "--waiting", "--no-headers"))
	assert.NotContains(t, c.out, "lazy", "nobody has to do anything about it")
}

func TestGetShowsAnInitialPromptAsAFileHasIt(t *testing.T) {
	for prompt, want := range map[string]string{
		"Read the notes:\n\n  - all; \"now\"\n": "  initialPrompt: |\n    Read the notes:\n\n      - all; \"now\"\n",
		"one\ntwo":                              "  initialPrompt: |-\n    one\n    two\n",
		"a\tb 🙂\n\n":                            "  initialPrompt: \"a\\tb \\U0001F642\\n\\n\"\n",
	} {
		lazy := dormantSession("lazy")
		lazy.Spec.InitialPrompt = prompt
		c := newCLI(t, newFakeDaemon(lazy))
		assert.Equal(t, 0, c.run("get", "lazy", "-o", "yaml"))
		assert.Contains(t, c.out, want)
		assert.Contains(t, c.out, "  provisioningPolicy: OnDemand\n")
		docs := spec.DecodeFile("f", []byte(c.out))
		require.Len(t, docs.Items, 1)
		require.Empty(t, docs.Items[0].Problems)
		assert.Equal(t, lazy.Spec, docs.Items[0].Session.Spec, "and the output can be put into one")
	}
}

func TestGetCanLeaveOutTheHeaders(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	assert.Equal(t, 0, c.run("get", "--no-headers"))
	assert.Equal(t, "a     exec   Running   True   0     -     26h\n", c.out)
}

func TestGetByNameTakesEachSpelling(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5), runningSession("b", 1, 6)))
	for _, args := range [][]string{
		{"get", "a"}, {"get", "sessions", "a"}, {"get", "sessions/a"}, {"get", "ses/a"}, {"get", "a", "sessions/a"},
		{"get", "sessions.muxlet.dev/a"},
	} {
		assert.Equal(t, 0, c.run(append(args, "-o", "name")...), args)
		assert.Equal(t, "session.muxlet.dev/a\n", c.out, args)
	}
	assert.Equal(t, 0, c.run("get", "a", "b", "--no-headers"))
	assert.Equal(t, "a     exec   Running   True   0     -     26h\nb     exec   Running   True   0     -     26h\n", c.out)
}

func TestGetShowsWhatExistsAndNamesWhatDoesNot(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	assert.Equal(t, exitNotFound, c.run("get", "nobody", "a", "-o", "name"))
	assert.Equal(t, "session.muxlet.dev/a\n", c.out)
	assert.Equal(t, "Error: session \"nobody\" not found: \"muxlet get\" lists those that exist\n", c.errOut)
}

func TestAMissingSessionMayBeInAFileWithAProblem(t *testing.T) {
	f := newFakeDaemon()
	f.status.Problems = []string{"/m/app.yaml:4:9: metadata.name: \"My.App\" is not a valid name (did you mean \"my-app\"?)"}
	c := newCLI(t, f)
	for _, verb := range []string{"get", "describe"} {
		assert.Equal(t, exitNotFound, c.run(verb, "My.App"))
		assert.Equal(t, "Error: session \"My.App\" not found: \"muxlet get\" lists those that exist\n"+
			"Problem: /m/app.yaml:4:9: metadata.name: \"My.App\" is not a valid name (did you mean \"my-app\"?)\n", c.errOut)
	}
}

func TestGetByNameTellsWhatIsWrongWithItsFile(t *testing.T) {
	typo := invalidSession("typo")
	c := newCLI(t, newFakeDaemon(typo, runningSession("a", 1, 5)))
	assert.Equal(t, 0, c.run("get", "typo"))
	assert.Equal(t, "Problem: "+typo.Status.Source.Error+"\n", c.errOut)
	assert.Equal(t, 0, c.run("get", "a"))
	assert.Empty(t, c.errOut)
	assert.Equal(t, 0, c.run("get", "typo", "-o", "name"))
	assert.Empty(t, c.errOut, "a program reads it")
}

func TestOneNameIsAnObjectAndAListIsAList(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5), runningSession("b", 1, 6)))
	decode := map[string]func(string) map[string]any{
		"json": func(text string) map[string]any {
			var object map[string]any
			require.NoError(t, json.Unmarshal([]byte(text), &object))
			return object
		},
		"yaml": func(text string) map[string]any {
			var object map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(text), &object))
			return object
		},
	}
	for format, read := range decode {
		assert.Equal(t, 0, c.run("get", "a", "-o", format))
		one := read(c.out)
		assert.Equal(t, "Session", one["kind"], format)
		assert.Equal(t, "muxlet.dev/v1alpha1", one["apiVersion"], format)
		declared, ok := one["spec"].(map[string]any)
		require.True(t, ok)
		assert.Equal(t, "Always", declared["restartPolicy"], "defaults are visible")

		assert.Equal(t, 0, c.run("get", "-o", format))
		list := read(c.out)
		assert.Equal(t, "List", list["kind"], format)
		assert.Len(t, list["items"], 2, format)
		assert.Equal(t, 0, c.run("get", "a", "b", "-o", format))
		assert.Equal(t, "List", read(c.out)["kind"], format)
	}
}

func TestAnEmptyListIsStillAListForAProgram(t *testing.T) {
	c := newCLI(t, newFakeDaemon())
	assert.Equal(t, 0, c.run("get", "-o", "json"))
	assert.Contains(t, c.out, `"items": []`)
	assert.Empty(t, c.errOut)
}

func TestGetSelectsByLabel(t *testing.T) {
	c := newCLI(t, zoo())
	assert.Equal(t, 0, c.run("get", "-l", "repo=shop", "-o", "name"))
	assert.Equal(t, "session.muxlet.dev/api\n", c.out)
	assert.Equal(t, 0, c.run("get", "-l", "repo=none"))
	assert.Equal(t, "No sessions found: none matches the selector repo=none.\n", c.errOut)
}

func TestGetOnNothingSaysWhereAYAMLIsLookedFor(t *testing.T) {
	f := newFakeDaemon()
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run())
	assert.Empty(t, c.out)
	assert.Equal(t, "No sessions found: no manifest in /home/me/.config/muxlet/sessions. "+
		"Put a YAML there that declares a Session, or run \"muxlet new\" in a project, and it comes up by itself.\n", c.errOut)
	f.status.Problems = []string{"/home/me/.config/muxlet/sessions/a.yaml:1:1: kind: missing"}
	assert.Equal(t, 0, c.run())
	c.golden("get-nothing-valid")
}

// It must show: get says what is held and how to go on.
func TestFootersSayWhatIsHeldUnclaimedOrWrong(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	f.status.Held = []server.HeldRemoval{
		{Name: "a", Message: "its document is gone with all others in /m"},
		{Name: "z", Message: "its document is gone with all others in /m"},
		{Name: "b", Message: "2 of 3 sessions are missing; put the files back or run \"muxlet prune --confirm\""},
	}
	f.status.Problems = []string{"/m/c.yaml:3:1: spec.workspce: unknown field (did you mean \"workspace\"?)"}
	f.status.Unclaimed = []server.UnclaimedPane{{Pane: "%9", TmuxSession: "lost", Name: "lost", UID: "u", PID: 77}}
	f.status.Tmux = server.ObservedStatus{State: server.StateUnknown, Reason: spec.ReasonTmuxTimeout, Message: "tmux did not answer within 5s"}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("get"))
	c.golden("get-footers")
	for _, format := range []string{"json", "yaml", "name"} {
		assert.Equal(t, 0, c.run("get", "-o", format))
		assert.Empty(t, c.errOut, "a program is not told")
	}
}

func TestFootersAreBounded(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	for i := range 25 {
		f.status.Problems = append(f.status.Problems, fmt.Sprintf("/m/%d.yaml:1:1: kind: missing", i))
	}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("get"))
	assert.Contains(t, c.errOut, "Problem: /m/9.yaml:1:1: kind: missing\n… and 15 more. \"muxlet validate\" shows all of them.\n")
	assert.NotContains(t, c.errOut, "/m/10.yaml")
}

func event(name, kind, reason, message string, count int32, first, last time.Duration) corev1.Event {
	return corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Name: name + "." + reason, Namespace: spec.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: spec.KindSession, Name: name},
		Type:           kind, Reason: reason, Message: message, Count: count,
		FirstTimestamp: before(first), LastTimestamp: before(last),
	}
}

func eventful(f *fakeDaemon) *fakeDaemon {
	f.events = []corev1.Event{
		event("web", corev1.EventTypeNormal, spec.ReasonStarted, "Incarnation 1 was started (pid 12).", 1, time.Hour, time.Hour),
		event("web", corev1.EventTypeWarning, spec.ReasonDied, "The client exited with status 1.", 3, time.Hour, 4*time.Second),
		event("api", corev1.EventTypeNormal, spec.ReasonStarted, "Incarnation 4 was started (pid 4711).", 1, 5*time.Minute, 5*time.Minute),
	}
	return f
}

func TestGetEventsIsATableOldestFirst(t *testing.T) {
	c := newCLI(t, eventful(zoo()))
	assert.Equal(t, 0, c.run("get", "events"))
	c.golden("get-events")
	table := c.out
	assert.Equal(t, 0, c.run("get", "ev"))
	assert.Equal(t, table, c.out)
	assert.Equal(t, 0, c.run("events"))
	assert.Equal(t, table, c.out)
	assert.Equal(t, 0, c.run("get", "events", "-o", "wide"))
	c.golden("get-events-wide")
	assert.Equal(t, 0, c.run("get", "event", "api", "--no-headers"))
	assert.Equal(t, "5m    Normal   Started   session/api   Incarnation 4 was started (pid 4711).\n", c.out)
}

func TestGetEventsForAProgram(t *testing.T) {
	c := newCLI(t, eventful(zoo()))
	assert.Equal(t, 0, c.run("get", "events", "web", "-o", "name"))
	assert.Equal(t, "event/web.Started\nevent/web.Died\n", c.out)
	assert.Equal(t, 0, c.run("get", "events", "-o", "json"))
	var list corev1.List
	require.NoError(t, json.Unmarshal([]byte(c.out), &list))
	assert.Len(t, list.Items, 3)
	assert.Equal(t, 0, c.run("get", "events", "nobody"))
	assert.Equal(t, "No events found about nobody.\n", c.errOut)
}
