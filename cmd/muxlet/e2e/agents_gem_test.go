// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// gem is a CLI that muxlet has no word of Go for: all that is known of it is in its
// class.
func gem(install func(*agentWorld) model) agent {
	return agent{
		class: "gem", install: install, directory: "GEM_HOME", resumes: "--resume", frail: true, mark: ">",
		prepare: func(w *agentWorld, trusted ...string) {
			w.write("gem-class.yaml", gemClass)
			w.write(filepath.Join(w.config, "trusted"), strings.Join(trusted, "\n")+"\n")
		},
		env:      func(*agentWorld) map[string]string { return map[string]string{} },
		strange:  func(w *agentWorld, directory string) { require.DirExists(w, directory) },
		trusting: []string{"Enter"},
		failures: map[string]string{"401": "AuthenticationFailed", "529": "ModelUnavailable", "limit": "UsageLimited"},
	}
}

// gemClass uses each field that a class may have, but for hooks.
const gemClass = `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: gem}
spec:
  start: {command: [gem, --session-id, $(CONVERSATION_ID)]}
  resume: {command: [gem, --resume, $(CONVERSATION_ID)]}
  configDirectory: {env: GEM_HOME, default: $(HOME)/.gem}
  conversation:
    identity: Assigned
    transcript: $(CONFIG_DIRECTORY)/chats/$(CONVERSATION_ID).json
    transcriptPattern: '"who":"user"'
    notFoundPattern: '^There is no chat with ID '
  ready: {pattern: '^> *$', timeoutSeconds: 5}
  working: {pattern: '^… thinking$'}
  attention:
  - {pattern: '^Do you trust this folder\?', reason: TrustRequired}
  - {pattern: '^May I run ', reason: PermissionRequired}
  failures:
  - {pattern: '^! quota used up until (?P<until>\S+)\n> *$', reason: UsageLimited, retry: Hold}
  - {pattern: '^! error 401\n> *$', reason: AuthenticationFailed, retry: Hold}
  - {pattern: '^! error [^\n]*\n> *$', reason: ModelUnavailable}
  submit:
    settleMilliseconds: 100
    composer: {pattern: '^>(?: |$)(?P<text>[^\n]*(?:\n(?:  [^\n]*)?)*)\z'}
  stop: {keys: [C-c, C-c]}
  env: [{name: GEM_MODE, value: "of $(SESSION_NAME)"}]
  unsetEnv: [GEM_PARENT*]
`

// control writes the control of the world's fakes, in the words of hack/fakeagent.
func (w *agentWorld) control(text string) {
	w.Helper()
	w.write(filepath.Join(w.dir, "agents/fakeagent.json"), text)
}

// elsewhere is another folder for the client's settings, with the same answers.
func (w *agentWorld) elsewhere() string {
	w.Helper()
	kept := w.config
	w.config = filepath.Join(w.home, "elsewhere")
	require.NoError(w, os.MkdirAll(w.config, 0o700))
	w.agent.prepare(w, w.work)
	other := w.config
	w.config = kept
	return other
}
