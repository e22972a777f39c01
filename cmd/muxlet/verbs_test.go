// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
)

// daemonVerbs are command lines that need a daemon.
var daemonVerbs = [][]string{
	{}, {"get"}, {"get", "a"}, {"get", "events"}, {"describe", "a"}, {"suspend", "a"}, {"resume", "a"}, {"restart", "a"},
	{"terminate", "a"}, {"delete", "a"}, {"events"}, {"wait", "a"}, {"top"}, {"prune"}, {"prune", "--confirm"}, {"logs", "a"}, {"attach", "a"},
}

func TestWithoutADaemonEveryVerbSaysHowToStartOne(t *testing.T) {
	c := newCLI(t, nil)
	c.prepare = func(g *globals) { g.interactive = func() bool { return true } }
	for _, args := range daemonVerbs {
		assert.Equal(t, exitError, c.run(args...), args)
		assert.Empty(t, c.out)
		assert.Equal(t, "Error: No muxlet daemon answers on /tmp/test/run/muxlet.sock: "+
			"start one with \"muxlet daemon\" (or point --runtime-dir at the running one).\n", c.errOut, args)
	}
}

// A daemon that was started by hand would keep the service from its state.
func TestWhereThereIsAUnitItIsTheWayToStartTheDaemon(t *testing.T) {
	c := newCLI(t, nil)
	c.write("home/.config/systemd/user/muxlet.service", "")
	c.prepare = func(g *globals) { g.home = c.dir + "/home" }
	assert.Equal(t, exitError, c.run("get"))
	assert.Contains(t, c.errOut, "start one with \"systemctl --user start muxlet.service\" (or")
}

func TestAnInterruptedQuestionIsSaidToBe(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, args := range daemonVerbs {
		if len(args) > 0 && args[0] == "attach" {
			continue // asks for a terminal first
		}
		assert.Equal(t, exitDeadline, c.runIn(ctx, args...), args)
		assert.Contains(t, c.errOut, "Error: interrupted before the daemon answered", args)
	}
}

func TestAProgramGetsItsErrorsAsAStatus(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, exitError, c.run("get", "-o", "json"))
	var status metav1.Status
	require.NoError(t, json.Unmarshal([]byte(c.errOut), &status))
	assert.Equal(t, metav1.StatusReason("NoDaemon"), status.Reason)
	assert.Equal(t, "Status", status.Kind)

	c = newCLI(t, newFakeDaemon())
	assert.Equal(t, exitNotFound, c.run("get", "nobody", "-o", "json"))
	require.NoError(t, json.Unmarshal([]byte(c.errOut), &status))
	assert.Equal(t, server.ReasonNotFound, status.Reason)
	assert.Equal(t, int32(404), status.Code)
	assert.Equal(t, "nobody", status.Details.Name)

	assert.Equal(t, exitUsage, c.run("get", "a", "-l", "x=y", "-o", "json"))
	require.NoError(t, json.Unmarshal([]byte(c.errOut), &status))
	assert.Equal(t, metav1.StatusReasonBadRequest, status.Reason)
}

func TestUsageErrorsExitTwoAndSayWhereTheHelpIs(t *testing.T) {
	c := newCLI(t, newFakeDaemon())
	for _, test := range []struct{ line, message string }{
		{"gett", "Error: unknown command \"gett\" for \"muxlet\"\n\nDid you mean this?\n\tget\n\tnext\nSee \"muxlet --help\".\n"},
		{"frobnicate", "Error: unknown command \"frobnicate\" for \"muxlet\"\nSee \"muxlet --help\".\n"},
		{"statsu", "Error: unknown command \"statsu\" for \"muxlet\"\n\nDid you mean this?\n\tstate\nSee \"muxlet --help\".\n"},
		{"get --nope", "Error: unknown flag: --nope\nSee \"muxlet get --help\".\n"},
		{"get --all", ""}, {"suspend a --all", "Error: names cannot be given together with -l or --all\nSee \"muxlet suspend --help\".\n"},
		{"suspend a -l a=b", ""}, {"delete --all -l a=b", "Error: -l and --all cannot be given together\nSee \"muxlet delete --help\".\n"},
		{"delete -l ===", ""}, {"delete --selector=", "Error: the selector is empty, which selects everything: say --all if you mean that\nSee \"muxlet delete --help\".\n"},
		{"logs a --conversation -p", ""}, {"logs a --conversation -o yaml", ""}, {"logs a -f -p", ""},
		{"delete -f x.yaml", ""}, {"get -o jsonpath={.items", ""},
		{"get -o xml", "Error: unknown format \"xml\" for -o: it must be wide, json, yaml, name, jsonpath=TEMPLATE, jsonpath-file=FILE, custom-columns=HEADER:PATH,... or custom-columns-file=FILE\nSee \"muxlet get --help\".\n"},
		{"get -l ===", ""}, {"get -l a=b web", "Error: a name and a selector cannot be given together\nSee \"muxlet get --help\".\n"},
		{"get pods/a", "Error: \"pods/a\" names no session: write NAME or sessions/NAME\nSee \"muxlet get --help\".\n"},
		{"get sessions/", ""},
		{"logs a b", "Error: logs takes the name of one session, not 2: \"b\" is too much\nSee \"muxlet logs --help\".\n"}, {"attach", "Error: attach needs the name of a session\nSee \"muxlet attach --help\".\n"},
		{"describe", "Error: describe needs at least one name of a session\nSee \"muxlet describe --help\".\n"},
		{"suspend", ""}, {"resume", ""}, {"restart", ""}, {"terminate", ""}, {"delete", ""}, {"attach a b", ""},
		{"logs", ""}, {"logs a --tail -2", "Error: --tail is -2: it must be from 0 to 20000, or -1 for all\nSee \"muxlet logs --help\".\n"},
		{"logs a --tail x", ""}, {"prune a", ""}, {"version -o yaml", ""}, {"version a", ""}, {"config view a", ""}, {"-v x", ""},
	} {
		assert.Equal(t, exitUsage, c.run(strings.Fields(test.line)...), test.line)
		if test.message != "" {
			assert.Equal(t, test.message, c.errOut, test.line)
		}
		assert.True(t, strings.HasPrefix(c.errOut, "Error: "), c.errOut)
		assert.Contains(t, c.errOut, "--help\".\n", test.line)
		assert.Empty(t, c.out, test.line)
	}
}

func TestHelpListsTheVerbsThatWork(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, 0, c.run("--help"))
	for _, verb := range []string{
		"apply", "attach", "cancel", "config", "daemon", "delete", "describe", "diff", "doctor", "edit", "events", "explain", "get", "logs", "new", "next", "pick", "prune", "restart", "resume", "send", "state", "suspend", "terminate", "top", "validate", "version", "wait",
	} {
		assert.Contains(t, c.out, "\n  "+verb+" ")
	}
	assert.NotContains(t, c.out, "\n  launch ", "no person types it")
}

func TestPruneShowsFirstAndRemovesWhenItIsConfirmed(t *testing.T) {
	f := newFakeDaemon()
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("prune"))
	assert.Equal(t, "Nothing is held back.\n", c.out)
	f.held = []server.HeldRemoval{{Name: "a", Message: "the directory /m is empty now"}, {Name: "b", Message: "the directory /m is empty now."}}
	assert.Equal(t, 0, c.run("prune"))
	assert.Equal(t, "session/a would be removed: the directory /m is empty now.\nsession/b would be removed: the directory /m is empty now.\n", c.out)
	assert.Equal(t, "Nothing was removed. To remove what is listed: muxlet prune --confirm\n", c.errOut)
	assert.Equal(t, 0, c.run("prune", "--confirm"))
	assert.Equal(t, "session/a is being removed\nsession/b is being removed\n", c.out)
	assert.Empty(t, c.errOut)
}

func TestLogsPrintTheScreen(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5), declared("b"))
	f.screens["a"] = "one\ntwo\nthree"
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("logs", "a"))
	assert.Equal(t, "one\ntwo\nthree\n", c.out)
	assert.Equal(t, 0, c.run("logs", "a", "--tail", "1"))
	assert.Equal(t, "three\n", c.out)
	assert.Equal(t, exitRetryable, c.run("logs", "b"))
	assert.Equal(t, "Error: session \"b\" has no pane\n", c.errOut)
	assert.Equal(t, exitNotFound, c.run("logs", "nobody"))
}

func TestVersionNeedsNoDaemon(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, 0, c.run("version"))
	assert.Regexp(t, `^muxlet devel \(go1\.[^,]+, \w+/\w+\)\n$`, c.out)
	assert.Empty(t, c.errOut)
	assert.Equal(t, 0, c.run("version", "-o", "json"))
	assert.NotContains(t, c.out, "serverVersion")

	c = newCLI(t, newFakeDaemon())
	assert.Equal(t, 0, c.run("version"))
	assert.True(t, strings.HasSuffix(c.out, "\ndaemon v0.0.0-test\n"), c.out)
	assert.Equal(t, 0, c.run("version", "-o", "json"))
	var all versions
	require.NoError(t, json.Unmarshal([]byte(c.out), &all))
	assert.Equal(t, "devel", all.ClientVersion.GitVersion)
	assert.Equal(t, "v0.0.0-test", all.ServerVersion.GitVersion)
}

func TestConfigViewShowsWhereEachSettingComesFrom(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, 0, c.run("config", "view", "--state-dir", "/s", "-v", "2"))
	assert.Contains(t, c.out, "kind: MuxletConfiguration\n")
	assert.Contains(t, c.out, "stateDir: /s # flag\n")
	assert.Contains(t, c.out, "runtimeDir: /tmp/test/run # environment\n")
	assert.Contains(t, c.out, "verbosity: 2 # flag\n")
	assert.Contains(t, c.out, "command: tmux # default\n")
}

func TestAFlagOfTheSettingsCanStandAnywhere(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	runtime := c.env["MUXLET_RUNTIME_DIR"]
	delete(c.env, "MUXLET_RUNTIME_DIR")
	for _, args := range [][]string{
		{"--runtime-dir", runtime, "get", "-o", "name"}, {"get", "--runtime-dir", runtime, "-o", "name"}, {"get", "-o", "name", "--runtime-dir=" + runtime},
	} {
		assert.Equal(t, 0, c.run(args...), args)
		assert.Equal(t, "session.muxlet.dev/a\n", c.out)
	}
	assert.Equal(t, 0, c.run("--runtime-dir", runtime))
	assert.Contains(t, c.out, "NAME ")
}

func TestSettingsThatAreNotValidAreAnErrorOfEveryVerb(t *testing.T) {
	c := newCLI(t, nil)
	for _, args := range daemonVerbs {
		if len(args) > 0 && args[0] == "attach" {
			continue // asks for a terminal first
		}
		assert.Equal(t, exitError, c.run(append(args, "--config", "/nowhere/muxlet.yaml")...), args)
		assert.Contains(t, c.errOut, "/nowhere/muxlet.yaml", args)
	}
}
