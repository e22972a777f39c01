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

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// said are the findings as level and message, for a comparison.
func said(found []finding) string {
	var lines []string
	for _, f := range found {
		lines = append(lines, string(f.Level)+" "+f.Message+" "+f.Fix)
	}
	return strings.Join(lines, "\n")
}

func TestEachReleaseOfTmuxHasItsKnownFaults(t *testing.T) {
	for version, want := range map[string]struct{ says, saysNot []string }{
		"3.1c":     {[]string{"Error tmux 3.1c is too old"}, []string{"crashes"}},
		"3.2a":     {[]string{"pane_dead_signal", "pane that is dead", "utempter", "control client"}, []string{"Error"}},
		"3.3a":     {[]string{"pane that is dead", "utempter"}, []string{"pane_dead_signal", "Error"}},
		"3.5a":     {[]string{"utempter", "control client"}, []string{"pane that is dead"}},
		"3.6b":     {[]string{"control client"}, []string{"utempter"}},
		"next-3.7": {[]string{"control client"}, []string{"utempter", "no release"}},
		"master":   {[]string{"no release of tmux"}, []string{"crashes"}},
	} {
		text := said(judgeTmux(version))
		for _, words := range want.says {
			assert.Contains(t, text, words, version)
		}
		for _, words := range want.saysNot {
			assert.NotContains(t, text, words, version)
		}
	}
}

// X1: the program was upgraded under the server that runs, or another one is on the PATH.
func TestAServerOfAnotherVersionIsNamed(t *testing.T) {
	assert.Empty(t, judgeVersions("3.3a", "3.3a"))
	assert.Contains(t, said(judgeVersions("3.6", "3.3a")), "Note The tmux server that runs is 3.3a, the program is 3.6")
	assert.Contains(t, said(judgeVersions("3.5a", "3.6b")), "Warning")
	assert.Contains(t, said(judgeVersions("3.5a", "3.6b")), "server exited unexpectedly")
	assert.Empty(t, judgeVersions("master", "3.3a"))
}

func TestTheDoctorKnowsWhichProgramsAreNeededAndWhere(t *testing.T) {
	docs := spec.DecodeFile("a.yaml", []byte(`
apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata: {name: agent}
spec: {workspace: {directory: /tmp}}
---
apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata: {name: agent-2}
spec: {workspace: {directory: /tmp}}
---
apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata: {name: dev}
spec: {workspace: {directory: /tmp}, client: {command: [npm, run, dev], shellMode: None, env: [{name: PATH, value: /opt/node/bin}]}}
---
apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: gemini}
spec: {start: {command: [gem]}}
`))
	require.Empty(t, docs.Problems)
	classes := &manifest.Classes{}
	classes.Add(docs.Items...)
	var sessions []spec.Document
	for _, doc := range docs.Items {
		require.Empty(t, doc.Problems)
		if doc.Session != nil {
			sessions = append(sessions, doc)
		}
	}
	there := map[string]bool{"/home/me/bin/claude": true, "/opt/node/bin/npm": true}
	has := func(name, path string) string {
		for _, dir := range filepath.SplitList(path) {
			if there[filepath.Join(dir, name)] {
				return filepath.Join(dir, name)
			}
		}
		return ""
	}
	var found []finding
	for _, n := range needsOf(sessions, classes) {
		found = append(found, judgeNeed(n, "/usr/bin:/bin", "/usr/bin:/home/me/bin", has))
	}
	text := said(found)
	assert.Contains(t, text, "Error claude (class claude), which agent, agent-2 need, is not found in the PATH that shellMode Interactive gives: /usr/bin:/bin")
	assert.Contains(t, text, "It is in your own PATH (/home/me/bin/claude): add /home/me/bin to PATH in your shell's profile")
	assert.Contains(t, text, "OK npm is /opt/node/bin/npm.")
	assert.Contains(t, text, "Note codex (class codex) is not found; no session uses it.")
	assert.Contains(t, text, "Note gem (class gemini) is not found; no session uses it.")
}

func TestWhatRunsOutIsToldBeforeItDoes(t *testing.T) {
	fine := observe.Limits{Terminals: observe.Use{Used: 10, Limit: 3072}, ServerFiles: observe.Use{Used: 20, Limit: 65536}}
	for name, r := range map[string]struct {
		limits   observe.Limits
		daemon   observe.Use
		sessions int
		says     string
	}{
		"nothing is known":             {observe.Limits{}, observe.Use{}, 10, ""},
		"room for all":                 {fine, observe.Use{Used: 30, Limit: 1024}, 100, "OK Open files of the daemon: 30 of 1024 are in use."},
		"no terminal is left":          {observe.Limits{Terminals: observe.Use{Used: 3070, Limit: 3072}}, observe.Use{}, 1, "Error Pseudo-terminals of the system: 3070 of 3072 are in use, and 16 are kept free: nothing is started."},
		"more sessions than terminals": {observe.Limits{Terminals: observe.Use{Used: 10, Limit: 100}}, observe.Use{}, 200, "Warning Pseudo-terminals of the system: there may be 100, and 200 declared sessions need about 216."},
		"a server of 1024 files":       {observe.Limits{ServerFiles: observe.Use{Used: 10, Limit: 1024}, ServerHardLimit: 4096}, observe.Use{}, 1000, "Warning Open files of the tmux server: there may be 1024"},
		"a daemon of 256 files":        {fine, observe.Use{Used: 200, Limit: 256}, 150, "Error Open files of the daemon: 200 of 256"},
	} {
		text := said(judgeLimits(r.limits, r.daemon, r.sessions))
		assert.Contains(t, text, r.says, name)
		assert.Equal(t, strings.HasPrefix(r.says, "Error"), strings.Contains(text, "Error"), name)
	}
}

func TestADiskIsJudgedByWhatIsFree(t *testing.T) {
	assert.Contains(t, said(judgeDisk("/state", room{blocks: 1, free: 5 << 30, files: 10, freeFiles: 5000})), "OK /state has 5120 MiB free.")
	assert.Contains(t, said(judgeDisk("/state", room{blocks: 1, free: 100 << 20})), "Warning /state has 100 MiB free.")
	assert.Contains(t, said(judgeDisk("/state", room{blocks: 1, free: 512 << 10})), "Error /state is on a disk that is full (512 KiB are free)")
	assert.Contains(t, said(judgeDisk("/state", room{blocks: 1, free: 5 << 30, files: 10, freeFiles: 3})), "Warning /state is on a disk with 3 inodes free.")
	assert.Contains(t, said(judgeDisk("/state", room{})), "OK", "a file system that does not tell")
}

func TestAClockThatWasSetBackIsTold(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	assert.Contains(t, said(judgeClock(now, time.Time{})), "OK The clock says 2026-03-01 12:00:00 UTC.")
	assert.Contains(t, said(judgeClock(now, now.Add(30*time.Second))), "OK")
	assert.Contains(t, said(judgeClock(now, now.Add(time.Hour))), "Warning The clock was set back: the newest record is 1h0m0s ahead of it.")
}

func TestAPluginThatRestoresSessionsIsNamedWithItsLine(t *testing.T) {
	text := "# set -g @plugin 'tmux-plugins/tmux-resurrect'\nset -g mouse on\n"
	assert.Equal(t, "OK tmux.include is /c. ", said(judgeInclude("/c", text)))
	for _, line := range []string{
		"set -g @plugin 'tmux-plugins/tmux-continuum'", "run-shell ~/src/tmux-resurrect/resurrect.tmux", "set -g @continuum-restore 'on'", "set -g @resurrect-processes 'ssh'",
	} {
		found := said(judgeInclude("/c", text+line+"\n"))
		assert.Contains(t, found, "Warning /c:3: ", line)
	}
	assert.Contains(t, said(judgeInclude("/c", "set -g @continuum-restore 'off'\n")), "OK")
}
