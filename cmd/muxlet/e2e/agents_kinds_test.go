// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// agentKey is what the agents are given as a key.
const agentKey = "sk-ant-api03-none-0123456789abcdefghij"

// claudeCode is Claude Code; facts as of 2.1.332.
func claudeCode(install func(*agentWorld) model) agent {
	return agent{
		class: "claude", install: install, directory: "CLAUDE_CONFIG_DIR", freshly: "/clear", forks: "/branch", resumes: "--resume", mark: "❯",
		prepare: func(w *agentWorld, trusted ...string) {
			projects := make([]string, 0, len(trusted))
			for _, directory := range trusted {
				projects = append(projects, fmt.Sprintf("%q: {\"hasTrustDialogAccepted\": true}", directory))
			}
			w.write(filepath.Join(w.config, ".claude.json"), fmt.Sprintf(
				`{"hasCompletedOnboarding": true, "customApiKeyResponses": {"approved": [%q], "rejected": []}, "projects": {%s}}`,
				agentKey[len(agentKey)-20:], strings.Join(projects, ", ")))
		},
		env: func(w *agentWorld) map[string]string {
			return map[string]string{
				"ANTHROPIC_BASE_URL": "http://" + w.address, "ANTHROPIC_API_KEY": agentKey, "CLAUDE_CODE_MAX_RETRIES": "1",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
			}
		},
		strange: func(*agentWorld, string) {},
		// The answer that it stands on is No.
		trusting: []string{"Down", "Enter"},
		asks:     []string{"--permission-mode", "default"},
		failures: map[string]string{
			"401": "AuthenticationFailed", "429": "RateLimited", "limit": "UsageLimited",
			"529": "ModelUnavailable", "drop": "ModelUnavailable",
		},
		planned:    map[string]string{"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-none-0123456789abcdefghijklmnopqrstuvwxyz"},
		nestedArgs: []string{"--permission-mode", "default", "--allowedTools", "Bash"},
		nested: func(w *agentWorld) string {
			return w.dir + "/bin/claude -p --settings " + filepath.Join(w.state, "hooks/claude-settings.json") + " nested"
		},
	}
}

// codex is Codex; facts as of 0.171.0.
func codex(install func(*agentWorld) model) agent {
	return agent{
		class: "codex", install: install, directory: "CODEX_HOME", freshly: "/new", forks: "/fork", resumes: "resume", mark: "›",
		prepare: func(w *agentWorld, trusted ...string) {
			text := fmt.Sprintf(`model_provider = "mock"
model = "gpt-5.1-codex"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "http://%s/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 1
stream_max_retries = 1
`, w.address)
			for _, directory := range trusted {
				text += fmt.Sprintf("[projects.%q]\ntrust_level = \"trusted\"\n", directory)
			}
			w.write(filepath.Join(w.config, "config.toml"), text)
		},
		env: func(*agentWorld) map[string]string { return map[string]string{"MOCK_KEY": agentKey} },
		// Its question about hooks has a test of its own.
		args: []string{"--dangerously-bypass-hook-trust"},
		// It asks about repositories, and about what brings settings of its own.
		strange: func(w *agentWorld, directory string) {
			git := exec.Command("git", "init", "-q", directory)
			git.Env = w.env
			out, err := git.CombinedOutput()
			require.NoError(w, err, string(out))
		},
		trusting: []string{"Enter"},
		failures: map[string]string{
			"401": "AuthenticationFailed", "429": "RateLimited", "limit": "UsageLimited",
			"529": "ModelUnavailable", "drop": "ModelUnavailable",
		},
		nested: func(w *agentWorld) string {
			hook := fmt.Sprintf(`hooks.SessionStart=[{hooks=[{type="command",command="'\''%s'\'' hook codex"}]}]`, binary)
			return w.dir + "/bin/codex exec --skip-git-repo-check --dangerously-bypass-hook-trust -c '" + hook + "' nested"
		},
		nestedArgs: []string{"--sandbox", "danger-full-access", "--ask-for-approval", "never"},
	}
}

// linked makes a program callable by its name in the world.
func linked(w *agentWorld, name, program string) {
	w.Helper()
	require.NoError(w, os.Symlink(program, filepath.Join(w.dir, "bin", name)))
}
