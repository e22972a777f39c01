// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const testConversation = "0198c7a1-1111-7111-8111-111111111111"

// builtIn orders a client of a built-in class, whose program prints its arguments and
// its environment and ends. Its config directory is conf below the state directory.
func (p *pane) builtIn(name string, resume bool) *actuate.ClassOrder {
	p.t.Helper()
	class := spec.ResolveClass(name, nil)
	require.NotNil(p.t, class)
	bin := filepath.Join(p.state, "bin")
	require.NoError(p.t, os.MkdirAll(bin, 0o700))
	program := "#!/bin/sh\nfor word in \"$@\"; do echo \"arg $word\"; done\nenv | sed 's/^/env /'\n"
	require.NoError(p.t, os.WriteFile(filepath.Join(bin, name), []byte(program), 0o700))
	config := filepath.Join(p.state, "conf")
	p.environ = []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + p.state, class.Spec.ConfigDirectory.Env + "=" + config, "CLAUDE_CODE_CHILD_SESSION=1"}
	session := &spec.SessionSpec{Client: spec.ClientSpec{StartArgs: []string{"--fresh"}, Args: []string{"--model", "$(opus)"}}}
	order := &actuate.ClassOrder{
		Name: name, ConfigDirectory: class.Spec.ConfigDirectory, Env: class.Spec.Env, UnsetEnv: class.Spec.UnsetEnv,
		Variables: map[string]string{
			spec.VarConversationID: testConversation, spec.VarWorkspace: p.work,
			spec.VarHook: "'/m' hook " + name, spec.VarHookSettings: "/s/hooks.json",
		},
	}
	if resume {
		order.Resume = &actuate.ResumeOrder{
			ID: testConversation, Reports: class.Spec.Reports, Transcript: class.Spec.Conversation.Transcript,
			TranscriptPattern: class.Spec.Conversation.TranscriptPattern, ConfigDirectory: config,
		}
	}
	p.stored.Order.Class = order
	p.stored.Order.Command, p.stored.Order.Args = spec.Argv(&class.Spec, session, resume)
	return order
}

// said are the arguments that such a client was given, and its environment.
func (p *pane) said() (args, environ []string) {
	p.t.Helper()
	require.Equal(p.t, 0, p.run(), p.stderr.String())
	for line := range strings.Lines(p.stdout.String()) {
		kind, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if kind == "arg" {
			args = append(args, text)
		} else {
			environ = append(environ, text)
		}
	}
	return args, environ
}

// transcript writes one of the built-in class's files below conf.
func (p *pane) transcript(path, text string) string {
	p.t.Helper()
	file := filepath.Join(p.state, "conf", path)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(p.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// A10: each agent gets its own words, and a resume has its own each time.
func TestABuiltInClassStartsAndResumesInItsOwnWords(t *testing.T) {
	own := []string{"--model", "$(opus)"}
	for name, c := range map[string]struct {
		file, text    string
		start, resume []string
		env           string
	}{
		spec.ClassClaude: {
			"projects/-w/" + testConversation + ".jsonl", `{"type":"user"}` + "\n",
			[]string{"--session-id", testConversation, "--settings", "/s/hooks.json", "--fresh"},
			[]string{"--resume", testConversation, "--settings", "/s/hooks.json"},
			"CLAUDE_CODE_FORCE_SESSION_PERSISTENCE=1",
		},
		spec.ClassCodex: {
			"sessions/2026/11/29/rollout-2026-11-29T00-00-00-" + testConversation + ".jsonl", `{"type":"session_meta"}` + "\n",
			[]string{"--no-daemon", "-C", "WORK", "HOOKS", "--fresh"},
			[]string{"resume", "--no-daemon", "-C", "WORK", "HOOKS", testConversation},
			"COLORTERM=truecolor",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPane(t)
			p.builtIn(name, false)
			args, environ := p.said()
			assert.Equal(t, append(c.start, own...), short(p, args))
			assert.Contains(t, environ, c.env)
			assert.NotContains(t, strings.Join(environ, "\n"), "CLAUDE_CODE_CHILD_SESSION")

			for range 2 {
				again := newPane(t)
				again.builtIn(name, true)
				r := again.refused(spec.ReasonConversationMissing)
				assert.Contains(t, r.File, testConversation)
				assert.Contains(t, r.Message, testConversation)

				again = newPane(t)
				again.builtIn(name, true)
				again.transcript(c.file, "")
				again.refused(spec.ReasonConversationMissing)

				again = newPane(t)
				again.builtIn(name, true)
				again.transcript(c.file, c.text)
				args, _ = again.said()
				assert.Equal(t, append(c.resume, own...), short(again, args))
				assert.Equal(t, observe.StageExec, again.receipt().Stage)
				assert.Equal(t, filepath.Join(again.state, "conf"), again.receipt().ConfigDirectory)
			}
		})
	}
}

// short replaces what is long in the arguments by a word for it.
func short(p *pane, args []string) []string {
	var out []string
	for i, word := range args {
		switch {
		case word == p.work:
			out = append(out, "WORK")
		case word == "-c":
		case i > 0 && args[i-1] == "-c":
			assert.Regexp(p.t, `^hooks\.[A-Za-z]+=\[\{hooks=\[\{type="command",command="'/m' hook codex"\}\]\}\]$`, word)
			if out[len(out)-1] != "HOOKS" {
				out = append(out, "HOOKS")
			}
		default:
			out = append(out, word)
		}
	}
	return out
}

// B2: the profile, or an edit of the spec, has given the client another config
// directory, where the conversation is not.
func TestAConversationInAnotherConfigDirectoryIsNotBegunAnew(t *testing.T) {
	p := newPane(t)
	p.builtIn(spec.ClassClaude, true)
	p.transcript("projects/-w/"+testConversation+".jsonl", `{"type":"user"}`+"\n")
	moved := filepath.Join(p.state, "moved")
	require.NoError(t, os.Mkdir(moved, 0o700))
	p.stored.Order.Env = []spec.EnvVar{{Name: "CLAUDE_CONFIG_DIR", Value: moved}}
	r := p.refused(spec.ReasonConversationElsewhere)
	assert.Contains(t, r.Message, filepath.Join(p.state, "conf"))
	assert.Contains(t, r.Message, moved)
	assert.Equal(t, moved, r.ConfigDirectory)
}
