// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/controller/server"
)

// crew has n sessions, the even ones with a label.
func crew(n int) *fakeDaemon {
	f := newFakeDaemon()
	for i := range n {
		s := runningSession(fmt.Sprintf("s%02d", i), 1, 100+i)
		if i%2 == 0 {
			s.Labels = map[string]string{"repo": "shop"}
		}
		f.set(s)
	}
	f.on = func(f *fakeDaemon, intent, name string) error {
		switch intent {
		case "suspend=true":
			s := suspendedSession(name)
			f.set(s)
		case "delete":
			f.remove(name)
		case "restart":
			f.set(runningSession(name, 2, 900))
		}
		return nil
	}
	return f
}

func sorted(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines
}

func TestBulkVerbsTakeNamesASelectorOrAll(t *testing.T) {
	for _, r := range []struct {
		args []string
		want []string
	}{
		{[]string{"suspend", "s00", "s03"}, []string{"session/s00 suspended", "session/s03 suspended"}},
		{[]string{"suspend", "-l", "repo=shop"}, []string{"session/s00 suspended", "session/s02 suspended"}},
		{[]string{"suspend", "-l", "!repo"}, []string{"session/s01 suspended", "session/s03 suspended"}},
		{[]string{"delete", "--all"}, []string{"session/s00 deleted", "session/s01 deleted", "session/s02 deleted", "session/s03 deleted"}},
		{[]string{"restart", "-l", "repo in (shop)"}, []string{"session/s00 restarted (incarnation 2, pid 900)", "session/s02 restarted (incarnation 2, pid 900)"}},
	} {
		c := newCLI(t, crew(4))
		assert.Equal(t, 0, c.run(r.args...), "%v: %s", r.args, c.errOut)
		assert.Equal(t, r.want, sorted(c.out), r.args)
		assert.Empty(t, c.errOut, r.args)
	}
}

func TestNothingSelectedIsOneSentenceAndNoError(t *testing.T) {
	c := newCLI(t, crew(2))
	assert.Equal(t, 0, c.run("delete", "-l", "repo=none"))
	assert.Equal(t, "No sessions found: none matches the selector repo=none.\n", c.errOut)
	assert.Empty(t, c.out)
	c = newCLI(t, newFakeDaemon())
	for _, verb := range []string{"suspend", "resume", "restart", "terminate", "delete"} {
		assert.Equal(t, 0, c.run(verb, "--all"), verb)
		assert.Equal(t, "No sessions found: none is declared.\n", c.errOut, verb)
	}
}

func TestOneFailureDoesNotKeepTheOthers(t *testing.T) {
	f := crew(6)
	on := f.on
	f.on = func(f *fakeDaemon, intent, name string) error {
		switch name {
		case "s01":
			return server.NewError(server.ReasonForbidden, name, "its file cannot be written: edit it where it comes from")
		case "s02":
			return server.NewError(server.ReasonTmuxUnavailable, name, "tmux does not answer")
		}
		return on(f, intent, name)
	}
	c := newCLI(t, f)
	assert.Equal(t, exitRetryable, c.run("suspend", "--all"), "the worst of them")
	assert.Len(t, sorted(c.out), 4)
	assert.Equal(t, []string{
		`Error: session "s01": its file cannot be written: edit it where it comes from`,
		`Error: session "s02": tmux does not answer`,
	}, sorted(c.errOut))
	assert.Equal(t, exitNotFound, c.run("delete", "nobody", "s00"))
	assert.Equal(t, "session/s00 deleted\n", c.out)
}

// Thirty sessions do not take thirty times as long as one: they are asked
// together, but not all at once.
func TestManySessionsAreDoneTogether(t *testing.T) {
	f := crew(30)
	on := f.on
	var inside, most atomic.Int32
	var once sync.Once
	full := make(chan struct{})
	f.on = func(f *fakeDaemon, intent, name string) error {
		n := inside.Add(1)
		defer inside.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == asksAtOnce {
			once.Do(func() { close(full) })
		}
		select {
		case <-full:
		case <-time.After(10 * time.Second):
		}
		return on(f, intent, name)
	}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("suspend", "--all"))
	assert.Len(t, sorted(c.out), 30)
	assert.Equal(t, int32(asksAtOnce), most.Load())
}

func TestWhichSessionsHasToBeSaid(t *testing.T) {
	c := newCLI(t, crew(1))
	for _, verb := range []string{"suspend", "resume", "restart", "terminate", "delete"} {
		assert.Equal(t, exitUsage, c.run(verb))
		assert.Contains(t, c.errOut, "Give at least one name, -l SELECTOR or --all")
		assert.Equal(t, exitUsage, c.run(verb, "s00", "--all"))
		assert.Equal(t, exitUsage, c.run(verb, "--selector="))
	}
}

func TestCompletionKnowsNamesKindsAndFlags(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("web", 1, 5), suspendedSession("api")))
	for _, r := range []struct {
		args []string
		want []string
	}{
		{[]string{"describe", ""}, []string{"api\tSuspended", "web\tRunning", "turn\ta turn"}},
		{[]string{"logs", "web", ""}, nil},
		{[]string{"attach", ""}, []string{"api\tSuspended", "web\tRunning"}},
		{[]string{"suspend", "web", ""}, []string{"api\tSuspended"}},
		{[]string{"delete", "sessions/"}, []string{"sessions/api\tSuspended", "sessions/web\tRunning"}},
		{[]string{"get", "e"}, []string{"events\tlist events"}},
		{[]string{"get", "events", "w"}, []string{"web\tRunning"}},
		{[]string{"get", "-o", ""}, []string{"wide", "json", "yaml", "name", "jsonpath=", "jsonpath-file=", "custom-columns=", "custom-columns-file="}},
		{[]string{"get", "--sort-by", ""}, []string{"name", "age", "restarts", "status"}},
		{[]string{"events", "--types", ""}, []string{"Normal", "Warning"}},
		{[]string{"events", "--for", ""}, []string{"api\tSuspended", "web\tRunning"}},
		{[]string{"get", "-l", ""}, nil},
	} {
		assert.Equal(t, 0, c.run(append([]string{"__complete"}, r.args...)...), r.args)
		var got []string
		for _, line := range strings.Split(c.out, "\n") {
			if line != "" && !strings.HasPrefix(line, ":") {
				got = append(got, line)
			}
		}
		if len(r.args) > 1 && r.args[1] == "e" || len(r.args) > 2 && r.args[2] == "w" {
			got = slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, r.args[len(r.args)-1]) })
		}
		assert.Equal(t, r.want, got, r.args)
	}
}

func TestCompletionWithoutADaemonIsSilent(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, 0, c.run("__complete", "describe", ""))
	assert.Equal(t, ":4\n", c.out)
	assert.NotContains(t, c.errOut, "daemon")
}

func TestThereAreCompletionScriptsForEachShell(t *testing.T) {
	c := newCLI(t, nil)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		assert.Equal(t, 0, c.run("completion", shell), shell)
		assert.Contains(t, c.out, "muxlet", shell)
		assert.Empty(t, c.errOut, shell)
	}
}
