// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

func kill(pid int) error { return unix.Kill(pid, unix.SIGKILL) }

// sampleTests has for each sample, by its path, what its comment promises.
var sampleTests = map[string]func(*sampleWorld){
	"clock.yaml": func(w *sampleWorld) {
		w.use()
		w.up()
		w.killed("clock")
	},
	"logger.yaml": func(w *sampleWorld) {
		w.use()
		w.up()
		w.shows("logger", "hello from "+w.home+"/muxlet-samples/logger")
	},
	"policies.yaml": func(w *sampleWorld) {
		w.use()
		w.becomes("counter", "running", isRunning)
		w.reaches("resting", spec.StatusSuspended)
		w.becomes("flaky", "seen to fail", func(s *spec.Session) bool {
			return s.Status.Client.LastTermination != nil && *s.Status.Client.LastTermination.ExitCode == 1
		})
		w.does("resume", "resting")
		w.becomes("resting", "running", isRunning)
	},
	"shell.yaml": func(w *sampleWorld) {
		w.use()
		w.up()
		s := w.get("shell")
		w.keys(s.Status.Tmux.Pane, "echo $((6*7))th", "Enter")
		w.shows("shell", "\n42th\n")
	},
	"agents/claude.yaml": func(w *sampleWorld) {
		w.use()
		w.up()
		w.ready("claude")
		w.sends("claude", "alpha", 1, "alpha")
		w.does("send", "scout", "--timeout", patience.String(), "where is the parser?")
		w.shows("scout", "first=You answer questions about the code in this directory.")
		assert.Contains(w, w.clients("reviewer")[0].argv, "--model opus")
	},
	"agents/codex.yaml": func(w *sampleWorld) {
		w.use()
		w.up()
		w.trusts("codex")
		w.sends("codex", "alpha", 1, "alpha")
	},
	"agents/gemini.yaml": func(w *sampleWorld) {
		w.use()
		w.up()
		s := w.ready("gemini")
		require.NotEmpty(w, conversation(s))
		w.started("gemini", w.home, "gemini --session-id "+conversation(s))
		w.does("send", "gemini", "alpha", "--timeout", patience.String())
		w.shows("gemini", "alpha")
	},
	"agents/job.yaml": func(w *sampleWorld) {
		w.use()
		w.up()
		w.does("send", "job", "count to three", "--timeout", patience.String())
		w.shows("job", "working on count to three")
	},
	"setups/one-agent.yaml": func(w *sampleWorld) {
		w.use()
		w.up()
		w.ready("shop")
		w.sends("shop", "alpha", 1, "alpha")
		id := conversation(w.kept("shop", 1))
		w.agent = claudeCode(nil)
		w.resumed(w.killed("shop"), id)
		w.ready("shop")
		w.sends("shop", "beta", 2, "alpha")
	},
	"setups/five-agents.yaml": fiveAgents,
	"setups/dev-server.yaml":  devServer,
	"setups/reviewer.yaml":    reviewer,
	"setups/nightly.yaml":     nightly,
	"setups/console.yaml":     console,
	"setups/remote.yaml":      remote,
	"setups/logs.yaml":        logs,
	"setups/secrets.yaml":     secrets,
	"setups/adopted.yaml":     adopted,
	"setups/probe.yaml":       probe,
	"settings/laptop.yaml":    laptop,
	"settings/defaults.yaml":  twoLines,
	"settings/many-sessions.yaml": func(w *sampleWorld) {
		w.settings()
		assert.Contains(w, w.does("config", "view"), "maxInFlight: 32 # file")
		assert.Contains(w, w.log(), `"msg":"Started daemon"`, "the log is JSON")
	},
}

// fiveAgents all die at once, and each has its own conversation again (B1, B4).
func fiveAgents(w *sampleWorld) {
	w.use()
	w.up()
	names := []string{"shop-lead", "shop-checkout", "shop-docs", "shop-tests", "shop-perf"}
	for _, name := range names[3:] {
		w.trusts(name)
	}
	ids := map[string]string{}
	for _, name := range names {
		w.ready(name)
		w.sends(name, "I am "+name, 1, "I am "+name)
		ids[name] = conversation(w.kept(name, 1))
	}
	require.Len(w, ids, 5)
	assert.Contains(w, w.clients("shop-lead")[0].argv, "--model opus")
	w.does("suspend", "-l", "repo=shop")
	for _, name := range names {
		w.reaches(name, spec.StatusSuspended)
		assert.Empty(w, w.clients(name))
	}
	w.does("resume", "-l", "repo=shop")
	for _, name := range names {
		s := w.ready(name)
		assert.Equal(w, ids[name], conversation(s))
		w.sends(name, "and again", 2, "I am "+name)
	}
}

func devServer(w *sampleWorld) {
	w.use()
	w.up()
	w.started("shop-server", w.work, "npm run dev")
	w.started("shop-watch", w.work, "npm test -- --watch")
	client := w.clients("shop-server")[0]
	assert.Equal(w, "3000", client.variable("PORT"))
	w.killed("shop-server")
	w.nth("shop-server", 2)
}

// reviewer has no client before the first turn, and none after its client's end.
func reviewer(w *sampleWorld) {
	w.use()
	w.up()
	w.does("send", "shop-review", "review the last commit", "--timeout", patience.String())
	w.shows("shop-review", "turns=2 first=You review changes of this repository")
	s := w.kept("shop-review", 2)
	assert.Contains(w, w.clients("shop-review")[0].argv, "--permission-mode plan")
	require.NoError(w, kill(pid(s)))
	w.reaches("shop-review", spec.StatusDormant)
	w.does("send", "shop-review", "and the one before", "--timeout", patience.String())
	w.shows("shop-review", "turns=3 first=You review changes of this repository")
	assert.Equal(w, conversation(s), conversation(w.get("shop-review")))
}

// nightly is run when it is asked for, and only then.
func nightly(w *sampleWorld) {
	w.use()
	w.up()
	for night := range 2 {
		w.does("resume", "shop-nightly")
		w.becomes("shop-nightly", "over", func(s *spec.Session) bool {
			last := s.Status.Client.LastTermination
			return last != nil && last.Incarnation == int64(night+1) && *last.ExitCode == 0 && s.Status.Client.Pid == 0
		})
		w.shows("shop-nightly", "built nightly")
		require.Equal(w, "make nightly", w.nth("shop-nightly", night+1).words)
	}
}

func console(w *sampleWorld) {
	secret := filepath.Join(w.home, ".config/shop/database-password")
	require.NoError(w, os.MkdirAll(filepath.Dir(secret), 0o700))
	w.write(secret, "hunter2\n")
	w.use()
	w.up()
	w.does("resume", "shop-db")
	w.becomes("shop-db", "running", isRunning)
	w.started("shop-db", w.work, "psql -h localhost shop")
	assert.Equal(w, "hunter2", w.clients("shop-db")[0].variable("PGPASSWORD"))
	assert.NotContains(w, w.does("describe", "shop-db"), "hunter2")
}

// remote comes back when the connection ends.
func remote(w *sampleWorld) {
	w.use()
	w.up()
	w.started("shop-host", w.home, "ssh -t -oServerAliveInterval=15 -oServerAliveCountMax=3 build.example.com tmux new-session -A -s main")
	w.started("shop-tunnel", w.home, "ssh -N -oServerAliveInterval=15 -oServerAliveCountMax=3 -oExitOnForwardFailure=yes -L5433:localhost:5432 build.example.com")
	w.killed("shop-tunnel")
	w.nth("shop-tunnel", 2)
	w.nth("shop-host", 1)
}

// logs follows a file that comes later.
func logs(w *sampleWorld) {
	w.use()
	w.up()
	w.started("shop-journal", w.home, "journalctl --user --follow --lines=200 --unit=shop")
	require.NoError(w, os.MkdirAll(w.work+"/log", 0o755))
	w.write(w.work+"/log/development.log", "GET /checkout 500\n")
	w.shows("shop-log", "GET /checkout 500")
}

// secrets are in the program's environment, and nowhere else that can be looked at.
func secrets(w *sampleWorld) {
	w.use()
	w.reaches("shop-worker", spec.StatusBlocked)
	told := w.does("describe", "shop-worker")
	assert.Contains(w, told, w.home+"/.config/shop/")
	require.NoError(w, os.MkdirAll(w.home+"/.config/shop", 0o700))
	w.write(w.home+"/.config/shop/stripe-key", "sk_hunter2\n")
	w.write(w.home+"/.config/shop/keys.env", "# keys\nSMTP_PASSWORD=hunter3\nLOG=quiet\n")
	w.becomes("shop-worker", "running", isRunning)
	w.started("shop-worker", w.work, "npm run worker")
	client := w.clients("shop-worker")[0]
	assert.Equal(w, "sk_hunter2", client.variable("STRIPE_KEY"))
	assert.Equal(w, "hunter3", client.variable("SMTP_PASSWORD"))
	assert.Equal(w, "debug", client.variable("LOG"))
	options, err := w.tmux("show-options", "-pv", "-t", w.pane("shop-worker"))
	require.NoError(w, err)
	for _, text := range []string{client.argv, options, w.log(), w.does("describe", "shop-worker"), w.does("get", "shop-worker", "-o", "yaml")} {
		assert.NotContains(w, text, "hunter")
	}
}

// adopted goes on with a conversation that muxlet did not begin, and waits while it is
// missing.
func adopted(w *sampleWorld) {
	const id = "6e0c1f9a-6c0f-4f3e-9b54-2f3f1b0f7a11"
	w.use()
	w.reaches("shop-earlier", spec.StatusBlocked)
	assert.Empty(w, w.clients("shop-earlier"))
	file := filepath.Join(w.home, ".claude/projects/-src-shop", id+".jsonl")
	require.NoError(w, os.MkdirAll(filepath.Dir(file), 0o700))
	w.write(file, `{"type":"user","uuid":"1","message":{"role":"user","content":"by hand"},"timestamp":"2026-01-02T03:04:05Z"}`+"\n")
	s := w.ready("shop-earlier")
	assert.Equal(w, id, conversation(s))
	w.agent = claudeCode(nil)
	w.resumed(s, id)
}

// settings starts a daemon with the sample as its settings file.
func (w *sampleWorld) settings() {
	w.write(w.home+"/.config/muxlet/config.yaml", w.read(w.path()))
	w.start()
	assert.Empty(w, w.muxlet("config", "view").errOut)
}

// laptop has sessions in the repository too.
func laptop(w *sampleWorld) {
	require.NoError(w, os.MkdirAll(w.work+"/.muxlet", 0o755))
	w.write(w.work+"/.muxlet/fake.yaml", w.document("of-the-repository", "stay"))
	w.declare("mine", "stay")
	w.settings()
	w.runs("of-the-repository")
	w.runs("mine")
}

// probe is a server whose probe fails: it is replaced, which takes its third answer. The
// periods of the sample are those of people, so the test shortens them.
func probe(w *sampleWorld) {
	program := filepath.Join(w.dir, "bin/curl")
	w.write(program, "#!/bin/sh\n[ ! -e '"+w.dir+"/down' ]\n")
	require.NoError(w, os.Chmod(program, 0o755))
	text := strings.Replace(w.read(w.path()), "initialDelaySeconds: 20", "initialDelaySeconds: 0\n    periodSeconds: 1", 1)
	w.write("probe.yaml", text)
	w.start()
	w.becomes("shop-api", "running", isRunning)
	w.started("shop-api", w.work, "npm run api")
	w.write(w.dir+"/down", "")
	w.becomes("shop-api", "replaced", func(s *spec.Session) bool { return s.Status.Client.Incarnation == 2 })
	require.NoError(w, os.Remove(w.dir+"/down"))
	assert.Equal(w, spec.ReasonLivenessProbeFailed, w.get("shop-api").Status.Client.LastTermination.Reason)
}

// twoLines is a session of which everything is said in the settings.
func twoLines(w *sampleWorld) {
	w.write("checkout-bug.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: checkout-bug}\n")
	w.settings()
	s := w.ready("checkout-bug")
	assert.Equal(w, spec.ClassClaude, s.Spec.ClientClassName)
	assert.Equal(w, w.work, s.Status.Workspace.Path)
	client := w.clients("checkout-bug")[0]
	assert.Contains(w, client.argv, "--model opus")
	assert.Equal(w, "true", client.variable("EDITOR"))
}

// A sample that nobody tries is found.
func TestASampleWithoutATestIsFound(t *testing.T) {
	for sample := range sampleTests {
		assert.FileExists(t, filepath.Join(samplesFolder, sample))
	}
}
