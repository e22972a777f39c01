// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemd && linux

package systemd

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muxlet/muxlet/spec"
)

// The sessions of every service. Those that are at work have a client, the two agents
// a conversation with one turn as well; the others were put to rest by a person.
var (
	agents   = []string{"claude", "codex"}
	atWork   = []string{"claude", "codex", "plain"}
	atRest   = map[string]spec.Status{"suspended": spec.StatusSuspended, "terminated": spec.StatusTerminated}
	declared = []string{"claude", "codex", "plain", "suspended", "terminated"}
)

// key is what the agents are given; they ask nobody about it.
const key = "sk-ant-api03-none-0123456789abcdefghij"

// documents are what the user declares.
func (s *service) documents() map[string]string {
	const head = "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: %s}\nspec:\n  workspace: {directory: %s}\n%s"
	const env = "    env: [{name: %s, value: %s}, {name: %s, value: %s}]\n"
	all := map[string]string{
		"claude": "  clientClassName: claude\n  client:\n" + fmt.Sprintf(env, "CLAUDE_CONFIG_DIR", s.home()+"/claude", "ANTHROPIC_API_KEY", key),
		"codex":  "  clientClassName: codex\n  client:\n    args: [--dangerously-bypass-hook-trust]\n" + fmt.Sprintf(env, "CODEX_HOME", s.home()+"/codex", "MOCK_KEY", key),
	}
	for _, name := range []string{"plain", "suspended", "terminated"} {
		all[name] = "  client: {command: [sleep, infinity], shellMode: None}\n"
	}
	for name, rest := range all {
		all[name] = fmt.Sprintf(head, name, s.work(), rest)
	}
	return all
}

func (s *service) home() string { return "/home/" + s.user }

func (s *service) work() string { return s.home() + "/work" }

// declares writes the sessions' files, and what the agents ask a person once.
func (s *service) declares() {
	s.Helper()
	files := map[string]string{
		s.work() + "/README": "",
		// Many clients die in a row here: what that costs a person is tested elsewhere.
		s.home() + "/.config/muxlet/config.yaml": "apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\nbackOff: {initial: 20ms, max: 500ms}\n",
		s.home() + "/claude/.claude.json": fmt.Sprintf(
			`{"hasCompletedOnboarding": true, "customApiKeyResponses": {"approved": [%q]}, "projects": {%q: {"hasTrustDialogAccepted": true}}}`,
			key[len(key)-20:], s.work()),
		s.home() + "/codex/config.toml": fmt.Sprintf("model_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = \"http://127.0.0.1:9/v1\"\n"+
			"wire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n[projects.%q]\ntrust_level = \"trusted\"\n", s.work()),
	}
	for name, text := range s.documents() {
		files[s.home()+"/.config/muxlet/sessions/"+name+".yaml"] = text
	}
	for path, text := range files {
		require.NoError(s, s.box.WriteFile(path, text, 0o644))
	}
}

// settled waits until what is at work is ready, gives each agent its first turn, and
// puts to rest what is to be at rest.
func (s *service) settled() state {
	s.Helper()
	s.reaches("all sessions are ready", func(now map[string]*spec.Session) bool {
		for _, session := range now {
			if !ready(session) {
				return false
			}
		}
		return true
	})
	s.muxlet("send", "claude", "alpha", "--wait=completed")
	s.muxlet("send", "codex", "alpha", "--wait=completed")
	s.muxlet("suspend", "suspended")
	s.muxlet("terminate", "terminated")
	return s.asBefore(nil)
}

// seen is what a test compares of one session.
type seen struct {
	status       spec.Status
	pid          int
	incarnation  int64
	conversation string
}

// state is that of all sessions, and the processes in tmux's words.
type state struct {
	sessions map[string]seen
	panes    map[string]string
}

func look(session *spec.Session) seen {
	client := session.Status.Client
	now := seen{status: spec.DisplayStatus(session), pid: client.Pid, incarnation: client.Incarnation}
	if c := session.Status.Conversation; c != nil {
		now.conversation = c.ID
	}
	return now
}

func ready(session *spec.Session) bool {
	return spec.DisplayStatus(session) == spec.StatusRunning && meta.IsStatusConditionTrue(session.Status.Conditions, spec.ConditionReady)
}

// reaches waits until the daemon shows the sessions so.
func (s *service) reaches(what string, as func(map[string]*spec.Session) bool) map[string]*spec.Session {
	s.Helper()
	var now map[string]*spec.Session
	defer func() {
		if s.Failed() {
			for name, session := range now {
				s.Logf("%s: %+v", name, look(session))
			}
		}
	}()
	s.eventually(what, func() bool {
		now = s.sessions()
		return now != nil && as(now)
	})
	return now
}

// asBefore waits until what is at work is ready and the rest at rest, with the same
// clients as before, and returns that; nil for any.
func (s *service) asBefore(before *state) state {
	s.Helper()
	now := s.reaches("what is at work is ready, with the same clients, and the rest is at rest", func(now map[string]*spec.Session) bool {
		return rightful(now) && (before == nil || same(before, now))
	})
	after := snapshot(now, s.panes())
	require.Contains(s, after.panes, "", "the tmux server")
	if before != nil {
		require.Equal(s, before.panes, after.panes, "the processes of the panes")
	}
	return after
}

// cameBack waits until each session at work has a new client, with its conversation, and
// the rest is at rest as before; nothing was started twice.
func (s *service) cameBack(before state) state {
	s.Helper()
	now := s.reaches("what is at work is ready with a new client, and the rest is at rest", func(now map[string]*spec.Session) bool {
		for _, name := range atWork {
			if look(now[name]).incarnation <= before.sessions[name].incarnation {
				return false
			}
		}
		return rightful(now)
	})
	after := snapshot(now, s.panes())
	for _, name := range atWork {
		require.Equal(s, before.sessions[name].conversation, after.sessions[name].conversation, "the conversation of %s", name)
		require.Equal(s, before.sessions[name].incarnation+1, after.sessions[name].incarnation, "%s was started once", name)
	}
	for name := range atRest {
		require.Equal(s, before.sessions[name].incarnation, after.sessions[name].incarnation, "%s stays down", name)
	}
	s.resumed(after)
	s.ownsTheServer(after)
	return after
}

// ownsTheServer: the unit of the tmux server, and no other.
func (s *service) ownsTheServer(now state) {
	s.Helper()
	require.Equal(s, now.panes[""], strconv.Itoa(s.look(s.tmuxUnit()).pid), "the tmux server is that of its unit")
	group := s.does("root", "sed", "-n", "s/^0:://p", "/proc/"+now.panes[""]+"/cgroup")
	require.Equal(s, s.tmuxUnit(), path.Base(group), "and lives in its cgroup")
}

// resumed looks at the command lines of the agents: each goes on with its own
// conversation.
func (s *service) resumed(now state) {
	s.Helper()
	for _, name := range agents {
		argv := s.does("root", "sh", "-c", fmt.Sprintf("tr '\\0' ' ' </proc/%d/cmdline", now.sessions[name].pid))
		require.Contains(s, argv, "resume", "%s", name)
		require.Contains(s, argv, now.sessions[name].conversation, "%s", name)
	}
}

// rightful says whether what is at work is ready, and the rest at rest.
func rightful(now map[string]*spec.Session) bool {
	for _, name := range atWork {
		if !ready(now[name]) {
			return false
		}
	}
	for _, name := range agents {
		if look(now[name]).conversation == "" {
			return false
		}
	}
	for name, status := range atRest {
		if spec.DisplayStatus(now[name]) != status || look(now[name]).pid != 0 {
			return false
		}
	}
	return true
}

func same(before *state, now map[string]*spec.Session) bool {
	for name, session := range now {
		if look(session) != before.sessions[name] {
			return false
		}
	}
	return true
}

func snapshot(now map[string]*spec.Session, panes map[string]string) state {
	all := state{sessions: map[string]seen{}, panes: panes}
	for name, session := range now {
		all.sessions[name] = look(session)
	}
	return all
}

// hostRebooted says whether the daemons of this boot have said so once, and nothing else.
func (s *service) hostRebooted() bool {
	s.Helper()
	log := s.log()
	return strings.Count(log, "host rebooted") > 0
}
