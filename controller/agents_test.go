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
	"github.com/muxlet/muxlet/controller/record"
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

// codex is a session of class codex whose hooks are trusted.
func (a *agents) codex(name string) *spec.Session {
	a.Helper()
	home := filepath.Join(a.Dir, "codex")
	text := "model_provider = \"mock\"\nmodel = \"gpt-5.1-codex\"\ncheck_for_update_on_startup = false\n" +
		"[model_providers.mock]\nname = \"mock\"\nbase_url = \"http://127.0.0.1:9/v1\"\nwire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n" +
		fmt.Sprintf("[projects.%q]\ntrust_level = \"trusted\"\n", a.Work)
	require.NoError(a, os.MkdirAll(home, 0o700))
	require.NoError(a, os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600))
	s := a.claude(name)
	s.Spec.ClientClassName = spec.ClassCodex
	s.Spec.Client.Args = []string{"--dangerously-bypass-hook-trust"}
	s.Spec.Client.Env = append(s.Spec.Client.Env[:1:1], spec.EnvVar{Name: "CODEX_HOME", Value: home}, spec.EnvVar{Name: "MOCK_KEY", Value: agentKey})
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
	return a.Process(a.WaitFor(session, envtest.Running).Status.Client.Pid)
}

func lastArgv(starts []spoken) string {
	if len(starts) == 0 {
		return ""
	}
	return strings.Join(starts[len(starts)-1].Argv, " ")
}

// idle is a session whose client is ready and works on nothing.
var idle = envtest.Check{Words: "is idle", Holds: func(s spec.Session) bool {
	return envtest.Running.Holds(s) && s.Status.Activity != nil && s.Status.Activity.State == spec.ActivityIdle
}}

var working = envtest.Check{Words: "works", Holds: func(s spec.Session) bool {
	return envtest.Running.Holds(s) && s.Status.Activity != nil && s.Status.Activity.State == spec.ActivityWorking
}}

// reporter lets the session's client run a tool that goes on, and returns what lets
// that send what a hook of the client would: from a process below the client.
func (a *agents) reporter(session string) (send func(event, conversation, more string)) {
	a.Helper()
	self, err := os.Executable()
	require.NoError(a, err)
	payload := filepath.Join(a.Dir, "payload."+session)
	script := fmt.Sprintf("while :; do if [ -e %[1]s ]; then mv %[1]s %[1]s.now; %[2]s hook claude <%[1]s.now; rm %[1]s.now; fi; sleep 0.02; done", payload, self)
	file := filepath.Join(a.Dir, "reporter."+session)
	require.NoError(a, os.WriteFile(file, []byte(script), 0o600))
	a.types(session, "!tool sh "+file)
	a.WaitFor(session, working)
	return func(event, conversation, more string) {
		a.Helper()
		if more != "" {
			more = "," + more
		}
		text := fmt.Sprintf(`{"hook_event_name":%q,"session_id":%q%s}`, event, conversation, more)
		require.NoError(a, os.WriteFile(payload+".new", []byte(text), 0o600))
		require.NoError(a, os.Rename(payload+".new", payload))
		a.Eventually("the report is sent", func() bool {
			left, err := filepath.Glob(payload + "*")
			return err == nil && len(left) == 0
		})
	}
}

// written says whether a transcript has the text.
func (a *agents) written(text string) bool {
	a.Helper()
	files, err := filepath.Glob(filepath.Join(a.config, "projects", "*", "*.jsonl"))
	require.NoError(a, err)
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), text) {
			return true
		}
	}
	return false
}

// recordFile is the session's record as it is on disk.
func (a *agents) recordFile(session string) string {
	a.Helper()
	text, err := json.Marshal(a.Record(session))
	require.NoError(a, err)
	return string(text)
}

// versions is the version of the session that those who watch know.
func (a *agents) versions(session string) string {
	a.Helper()
	s, _ := a.Session(session)
	return s.ResourceVersion
}

func (a *agents) reportedAt(session string) time.Time {
	a.Helper()
	s, _ := a.Session(session)
	if s.Status.Activity == nil || s.Status.Activity.ReportedAt == nil {
		return time.Time{}
	}
	return s.Status.Activity.ReportedAt.Time
}

// spooled are the reports that wait on disk.
func (a *agents) spooled() []string {
	a.Helper()
	files, err := filepath.Glob(filepath.Join(a.Spool(), "*.json"))
	require.NoError(a, err)
	return files
}

// blockRecords puts a file in the place of the records' directory, so that no save
// succeeds, or puts the directory back.
func (a *agents) blockRecords(block bool) {
	a.Helper()
	path := filepath.Join(a.State, "records")
	if block {
		require.NoError(a, os.Rename(path, path+".away"))
		require.NoError(a, os.WriteFile(path, nil, 0o600))
		return
	}
	require.NoError(a, os.Remove(path))
	require.NoError(a, os.Rename(path+".away", path))
}

// recordOnDisk needs no controller.
func (a *agents) recordOnDisk(uid string) record.Record {
	a.Helper()
	r, err := record.NewStore(a.State).Read(uid)
	require.NoError(a, err)
	return r
}
