// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tourShell is in a checkout in which bin/muxlet is built already.
func tourShell(t *testing.T) *shell {
	w := newWorld(t)
	checkout := filepath.Join(w.home, "muxlet")
	require.NoError(t, os.MkdirAll(filepath.Join(checkout, "bin"), 0o755))
	for _, part := range []string{"Makefile", "hack/run.sh", "hack/need.sh", "config/samples"} {
		target := filepath.Join(checkout, part)
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		out, err := exec.Command("cp", "-R", filepath.Join("../../..", part), target).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	w.buildsByCopying()
	return w.shell(checkout, [2]string{w.home, "/home/me"})
}

// agentsShell is that of a person who has agents, repositories, and no muxlet yet. The
// agents are the stand-ins of hack/fakeagent, and what they answer is written here.
func agentsShell(t *testing.T) *shell {
	w := newWorld(t)
	program, err := buildFakeAgent()
	require.NoError(t, err, program)
	folder := filepath.Join(w.dir, "agents")
	out, err := exec.Command(program, "install", folder).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, name := range []string{"claude", "codex"} {
		require.NoError(t, os.Symlink(filepath.Join(folder, "bin", name), filepath.Join(w.dir, "bin", name)))
	}
	script, err := json.Marshal(map[string]any{"script": []map[string]string{
		{"prompt": "Why does the cart test fail?", "answer": "The cart counts its items from one, the test from zero: cart.go, line 41."},
		{"prompt": "Mend it", "answer": "Done: cart.go counts from zero now, and TestAnEmptyCart covers it."},
		{"prompt": "Review", "delay": "2s", "answer": "Two remarks: the total is rounded twice, and the discount has no test."},
	}})
	require.NoError(t, err)
	w.write(filepath.Join(folder, "fakeagent.json"), string(script))

	shop, docs := filepath.Join(w.home, "src/shop"), filepath.Join(w.home, "src/docs")
	for _, d := range []string{shop, docs, w.home + "/.claude", w.home + "/.codex"} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	w.write(filepath.Join(shop, "review.md"), "Review the last commit.\n\nBe brief.\n")
	answers := fmt.Sprintf(`{"hasCompletedOnboarding": true, "customApiKeyResponses": {"approved": [%q], "rejected": []}, "projects": {%q: {"hasTrustDialogAccepted": true}}}`,
		agentKey[len(agentKey)-20:], shop)
	w.write(w.home+"/.claude.json", answers)
	w.write(w.home+"/.claude/.claude.json", answers)
	w.write(w.home+"/.codex/config.toml", "model_provider = \"mock\"\nmodel = \"gpt-5.1-codex\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = \"http://127.0.0.1:9/v1\"\nenv_key = \"MOCK_KEY\"\n")
	profile := fmt.Sprintf("export ANTHROPIC_API_KEY=%s MOCK_KEY=%s\n", agentKey, agentKey)
	for _, v := range w.env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			profile += "export PATH=" + path + "\n"
		}
	}
	w.write(w.home+"/.profile", profile)
	w.write(w.home+"/.bash_profile", profile)

	repository, err := filepath.Abs("../../..")
	require.NoError(t, err)
	w.write(w.home+"/.gitconfig", fmt.Sprintf("[url \"file://%s\"]\n\tinsteadOf = https://github.com/muxlet/muxlet\n[safe]\n\tdirectory = *\n", repository))
	w.buildsByCopying()
	return w.shell(w.home, [2]string{w.home, "/home/me"})
}

// buildsByCopying puts a make before the real one that takes the binary under test for
// what it would build.
func (w *World) buildsByCopying() {
	w.Helper()
	program, err := exec.LookPath("make")
	require.NoError(w, err)
	w.write(filepath.Join(w.dir, "bin/make"), fmt.Sprintf("#!/bin/sh\nmkdir -p bin && cp %q bin/muxlet && exec %q GO_BUILD=: \"$@\"\n", binary, program))
	require.NoError(w, os.Chmod(filepath.Join(w.dir, "bin/make"), 0o755))
}

// Two minutes of a person who types 200 characters in one.
func TestFromCloneToTheFirstAgentIsTwoMinutesOfTyping(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readmeFile)
	require.NoError(t, err)
	_, quick, ok := strings.Cut(string(text), "## Quick start\n")
	require.True(t, ok)
	quick, _, _ = strings.Cut(quick, "\n## ")
	stories, _ := readmeStories(quick)
	typed := 0
	for _, step := range stories["agents"] {
		command, _, _ := strings.Cut(step.command, "    #")
		typed += len(command) + 1
	}
	assert.Greater(t, typed, 100)
	assert.Less(t, typed, 2*200)
}
