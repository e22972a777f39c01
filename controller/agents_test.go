// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// agents is a world in which claude and codex stand in for the real ones; see
// hack/fakeagent.
type agents struct {
	*envtest.Env
	// bin has the programs, config the folder of Claude Code that all sessions share.
	root, config string
}

// fakeagent builds the stand-in once for all tests.
var fakeagent = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mxagent")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "fakeagent")
	out, err := exec.Command("go", "build", "-o", program, "../hack/fakeagent").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build fakeagent: %w: %s", err, out)
	}
	return program, nil
})

func startAgents(t *testing.T, config envtest.Config) *agents {
	t.Helper()
	program, err := fakeagent()
	require.NoError(t, err)
	e := envtest.Make(t, config)
	a := &agents{Env: e, root: filepath.Join(e.Dir, "agents"), config: filepath.Join(e.Dir, "claude")}
	out, err := exec.Command(program, "install", a.root).CombinedOutput()
	require.NoError(t, err, string(out))
	a.answerDialogs(a.config, e.Work)
	e.Boot()
	return a
}

const agentKey = "sk-test-0123456789abcdefghij"

// answerDialogs does what a person does once.
func (a *agents) answerDialogs(config string, dirs ...string) {
	a.Helper()
	projects := map[string]any{}
	for _, dir := range dirs {
		projects[dir] = map[string]any{"hasTrustDialogAccepted": true}
	}
	text, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "projects": projects,
		"customApiKeyResponses": map[string]any{"approved": []string{agentKey[len(agentKey)-20:]}},
	})
	require.NoError(a, err)
	require.NoError(a, os.MkdirAll(config, 0o700))
	require.NoError(a, os.WriteFile(filepath.Join(config, ".claude.json"), text, 0o600))
}

// claude is a session of class claude, not applied yet.
func (a *agents) claude(name string) *spec.Session {
	s := &spec.Session{}
	s.Name = name
	s.Spec.ClientClassName = spec.ClassClaude
	s.Spec.Client.ShellMode = spec.ShellNone
	s.Spec.Client.Env = []spec.EnvVar{
		{Name: "PATH", Value: filepath.Join(a.root, "bin") + ":/usr/bin:/bin"},
		{Name: "CLAUDE_CONFIG_DIR", Value: a.config}, {Name: "ANTHROPIC_API_KEY", Value: agentKey},
	}
	s.Spec.Workspace.Directory = a.Work
	s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](10)
	return s
}

// set replaces a variable of the session's environment.
func set(s *spec.Session, name, value string) {
	for i := range s.Spec.Client.Env {
		if s.Spec.Client.Env[i].Name == name {
			s.Spec.Client.Env[i].Value = value
		}
	}
}

// control says how the stand-ins behave.
func (a *agents) control(v map[string]any) {
	a.Helper()
	text, err := json.Marshal(v)
	require.NoError(a, err)
	path := filepath.Join(a.config, "fakeagent.json")
	require.NoError(a, os.WriteFile(path+".new", text, 0o600))
	require.NoError(a, os.Rename(path+".new", path))
}

// spoken is one line of what the stand-ins wrote about themselves.
type spoken struct {
	At                                       time.Time
	Event, Session, Mark, Text, Conversation string
	Pid                                      int
	Argv                                     []string
	Directory                                string
}

func (a *agents) spoken(session, event string) []spoken {
	a.Helper()
	data, err := os.ReadFile(filepath.Join(a.root, "journal.jsonl"))
	if err != nil {
		return nil
	}
	var out []spoken
	for line := range bytes.Lines(data) {
		var s spoken
		if json.Unmarshal(line, &s) == nil && s.Session == session && s.Event == event {
			out = append(out, s)
		}
	}
	return out
}

// ready runs the sessions and waits until they can take a turn.
func (a *agents) ready(sessions ...*spec.Session) {
	a.Helper()
	for _, s := range sessions {
		a.Apply(s)
	}
	for _, s := range sessions {
		a.WaitFor(s.Name, envtest.Running)
	}
}

// types a prompt into the session's client and submits it.
func (a *agents) types(session, text string) {
	a.Helper()
	pane := a.pane(session)
	a.Tmux("send-keys", "-t", pane, "-l", text)
	a.Tmux("send-keys", "-t", pane, "Enter")
}

func (a *agents) pane(session string) string {
	a.Helper()
	s, ok := a.Session(session)
	require.True(a, ok)
	require.NotNil(a, s.Status.Tmux)
	return s.Status.Tmux.Pane
}

// turn has one turn with a session's client: it is answered.
func (a *agents) turn(session, text string) string {
	a.Helper()
	before := len(a.spoken(session, "answer"))
	a.types(session, text)
	a.Eventually("session "+session+" answers "+text, func() bool { return len(a.spoken(session, "answer")) > before })
	return a.spoken(session, "answer")[before].Text
}

// begun waits until a session's conversation can be resumed, and returns its id.
func (a *agents) begun(session string) string {
	a.Helper()
	s := a.WaitFor(session, envtest.Check{Words: "has a conversation that can be resumed", Holds: func(s spec.Session) bool {
		c := s.Status.Conversation
		return c != nil && c.Resumable != nil && *c.Resumable
	}})
	return s.Status.Conversation.ID
}

func (a *agents) client(session string) observe.Process {
	a.Helper()
	s, ok := a.Session(session)
	require.True(a, ok)
	return a.Process(s.Status.Client.Pid)
}

func lastArgv(starts []spoken) string {
	if len(starts) == 0 {
		return ""
	}
	return strings.Join(starts[len(starts)-1].Argv, " ")
}
