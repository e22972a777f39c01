// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test binary is the clients as well, by the names that it is linked to.
func TestMain(m *testing.M) {
	executable, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if slices.Contains([]string{"claude", "node", "codex", "gem"}, filepath.Base(executable)) {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	someID   = "11111111-1111-4111-8111-111111111111"
	noID     = "22222222-2222-4222-8222-222222222222"
	patience = 20 * time.Second
)

// place is one account with both clients' answers given.
type place struct {
	*testing.T
	dir string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{T: t, dir: t.TempDir()}
	executable, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, install(executable, p.dir))
	for _, d := range []string{"home", "work", "claude", "codex"} {
		require.NoError(t, os.Mkdir(p.path(d), 0o755))
	}
	p.write("claude/.claude.json", `{"hasCompletedOnboarding":true,"projects":{"`+p.path("work")+`":{"hasTrustDialogAccepted":true}},
		"customApiKeyResponses":{"approved":["0123456789abcdefghij"]}}`)
	p.write("codex/config.toml", "model_provider = \"mock\"\n")
	return p
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

func (p place) write(name, content string) {
	p.Helper()
	require.NoError(p, os.MkdirAll(filepath.Dir(p.path(name)), 0o755))
	require.NoError(p, os.WriteFile(p.path(name), []byte(content), 0o600))
}

func (p place) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(p.path("bin/"+name), args...)
	cmd.Dir = p.path("work")
	cmd.Env = []string{
		"HOME=" + p.path("home"), "PATH=/usr/bin:/bin", "TERM=xterm-256color", "ANTHROPIC_API_KEY=sk-0123456789abcdefghij",
		"CLAUDE_CONFIG_DIR=" + p.path("claude"), "CODEX_HOME=" + p.path("codex"),
	}
	return cmd
}

// terminal is a client in a terminal of its own.
type terminal struct {
	place
	cmd  *exec.Cmd
	file *os.File

	mu     sync.Mutex
	output strings.Builder
	over   chan struct{}
}

func (p place) open(name string, args ...string) *terminal {
	p.Helper()
	x := &terminal{place: p, cmd: p.command(name, args...), over: make(chan struct{})}
	var err error
	x.file, err = pty.StartWithSize(x.cmd, &pty.Winsize{Rows: 50, Cols: 200})
	require.NoError(p, err)
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := x.file.Read(buffer)
			x.mu.Lock()
			x.output.Write(buffer[:n])
			x.mu.Unlock()
			if err != nil {
				_ = x.cmd.Wait()
				close(x.over)
				return
			}
		}
	}()
	p.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		<-x.over
		_ = x.file.Close()
	})
	return x
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.output.String()
}

func (x *terminal) shows(text string) {
	x.Helper()
	require.Eventually(x, func() bool { return strings.Contains(x.text(), text) }, patience, 5*time.Millisecond, "%s in %s", text, x.text())
}

func (x *terminal) types(text string) {
	x.Helper()
	_, err := x.file.WriteString(pasteBegins + text + pasteEnds + "\r")
	require.NoError(x, err)
}

// ends waits until the client is over.
func (x *terminal) ends() syscall.WaitStatus {
	x.Helper()
	select {
	case <-x.over:
	case <-time.After(patience):
		require.Fail(x, "it does not end", x.text())
	}
	status, ok := x.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(x, ok)
	return status
}

// Exit codes and words as measured of Claude Code 2.1.332 and Codex 0.171.0.
func TestClientsRefuseAsTheRealOnesDo(t *testing.T) {
	p := newPlace(t)
	folder := "claude/projects/" + notAlphanumeric.ReplaceAllString(p.path("work"), "-") + "/"
	p.write(folder+someID+".jsonl", "")
	p.write("codex/sessions/2026/11/29/rollout-x-"+someID+".jsonl", "")
	p.write("codex/session_index.jsonl", `{"id":"`+noID+`"}`)
	for _, tc := range []struct {
		command, words string
		code           int
	}{
		{"claude --session-id " + someID, "Error: Session ID " + someID + " is already in use.", 1},
		{"claude --session-id foo", "Error: Invalid session ID. Must be a valid UUID.", 1},
		{"claude --resume " + noID, "No conversation found with session ID: " + noID, 1},
		{"claude --resume " + someID, "No conversation found with session ID: " + someID, 1},
		{"claude --resume " + someID + " --session-id " + noID, "also needs --fork-session", 1},
		{"claude --settings /nowhere", "Settings file not found", 1},
		{"claude --nonsense", "error: unknown option '--nonsense'", 1},
		{"codex resume --no-daemon -C . foo", "ERROR: No saved session found with ID foo.", 1},
		{"codex resume " + someID, "ERROR: No saved session found with ID " + someID, 1},
		{"codex resume " + noID, "no rollout found for thread id " + noID + " (code -32600)", 1},
		{"codex --nonsense", "error: unexpected argument '--nonsense' found", 2},
		{"gem --resume " + noID, "There is no chat with ID " + noID + ".", 42},
	} {
		t.Run(tc.command, func(t *testing.T) {
			argv := strings.Fields(tc.command)
			out, err := p.command(argv[0], argv[1:]...).CombinedOutput()
			exit := (*exec.ExitError)(nil)
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, tc.code, exit.ExitCode())
			assert.Contains(t, string(out), tc.words)
		})
	}
}

func TestClaudeAnswersFromTheConversationThatItResumes(t *testing.T) {
	p := newPlace(t)
	first := p.open("claude", "--session-id", someID)
	first.shows("❯")
	first.types("alpha\nbeta")
	first.shows("turns=1 first=alpha beta")
	registry, err := filepath.Glob(p.path("claude/sessions/*.json"))
	require.NoError(t, err)
	require.Len(t, registry, 1)
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 143, first.ends().ExitStatus())
	assert.NoFileExists(t, registry[0], "an orderly end removes it")
	second := p.open("claude", "--resume", someID)
	second.shows("❯")
	second.types("gamma")
	second.shows("turns=2 first=alpha beta")
}

func TestCodexAnswersFromTheConversationThatItResumes(t *testing.T) {
	p := newPlace(t)
	first := p.open("codex", "--no-daemon", "-C", p.path("work"))
	first.shows("default · " + p.path("work"))
	locks, err := filepath.Glob(p.path("codex/thread-writer-locks/*.lock"))
	require.NoError(t, err)
	require.Len(t, locks, 1)
	id := strings.TrimSuffix(filepath.Base(locks[0]), ".lock")
	assert.Empty(t, findRollout(p.path("codex"), id), "before the first turn there is none")
	first.types("alpha")
	first.shows("turns=1 first=alpha")
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, syscall.SIGTERM, first.ends().Signal())
	second := p.open("codex", "resume", "--no-daemon", "-C", p.path("work"), id)
	second.shows("default · ")
	second.types("beta")
	second.shows("turns=2 first=alpha")
}

func TestATurnDoesWhatItsPromptSays(t *testing.T) {
	at := time.Date(2026, 1, 2, 14, 38, 0, 0, time.UTC)
	for prompt, want := range map[string]control{
		"hello":                   {},
		"!hang":                   {Mode: "hang"},
		"!tool sleep 5":           {Mode: "tool", Command: "sleep 5"},
		"!slow 2s":                {Mode: "ok", Delay: "2s"},
		"!fail 401":               {Mode: "401"},
		"!fail 429 until 2:38 PM": {Mode: "429", UsageLimit: true, ResetAt: &at},
	} {
		got := control{}.directive(prompt)
		if want.ResetAt != nil {
			require.NotNil(t, got.ResetAt)
			assert.Equal(t, "2:38PM", got.ResetAt.Format(time.Kitchen))
			got.ResetAt, want.ResetAt = nil, nil
		}
		assert.Equal(t, want, got, prompt)
	}
}

// prompts that the journal has, in order.
func (p place) prompts() []string {
	p.Helper()
	data, err := os.ReadFile(p.path("journal.jsonl"))
	require.NoError(p, err)
	var all []string
	for line := range bytes.Lines(data) {
		var e entry
		require.NoError(p, json.Unmarshal(line, &e))
		if e.Event == "prompt" {
			all = append(all, e.Text)
		}
	}
	return all
}

// What is pasted arrives as it was, in one piece, whatever its size.
func TestAPasteIsWrittenDownByteByByte(t *testing.T) {
	for client, ready := range map[string]string{"claude": "❯", "codex": "default · "} {
		p := newPlace(t)
		x := p.open(client)
		x.shows(ready)
		given := []string{
			"one", "one\ttwo\n\n  three", "grüße \U0001f469\u200d\U0001f467 e\u0301", "/etc/passwd what", strings.Repeat("line of many\n", 90) + "end",
			strings.Repeat("0123456789abcde\n", 1<<16) + "end",
		}
		for _, text := range given {
			x.types(strings.ReplaceAll(text, "\n", "\r"))
		}
		require.Eventually(t, func() bool { return len(p.prompts()) == len(given) }, patience, 5*time.Millisecond, client)
		assert.Equal(t, given, p.prompts(), client)
	}
}

func TestALongPasteHasALabelAndTheHookIsToldOfIt(t *testing.T) {
	p := newPlace(t)
	p.write("settings.json", `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"cat > `+p.path("told")+`"}]}]}}`)
	x := p.open("claude", "--settings", p.path("settings.json"))
	x.shows("❯")
	x.types("a\rb\rc\rd")
	x.shows("[Pasted text #1 +3 lines]")
	x.shows("turns=1")
	told, err := os.ReadFile(p.path("told"))
	require.NoError(t, err)
	assert.Contains(t, string(told), `\n\n\u003cpasted_content id=\"6edc\"\u003e\na\nb\nc\nd\n`)
	x.types("/nonsense")
	x.shows("Unknown command: /nonsense")
	assert.Len(t, p.prompts(), 1)
}

func TestEnterIsLostWhileTheComposerIsDeaf(t *testing.T) {
	for client, ready := range map[string]string{"claude": "❯", "codex": "default · "} {
		p := newPlace(t)
		p.write(controlFile, `{"deaf":"1h"}`)
		x := p.open(client)
		x.shows(ready)
		x.types("lost for now")
		x.shows("lost for now")
		p.write(controlFile, `{}`)
		y := p.open(client)
		y.shows(ready)
		y.types("not lost")
		y.shows("turns=1 first=not lost")
		assert.Equal(t, []string{"not lost"}, p.prompts(), client)
	}
}

func TestAScriptSaysWhatATurnDoesByItsPrompt(t *testing.T) {
	c := control{Mode: "hang", Script: []scene{
		{Prompt: "cart", Answer: "The cart counts from one."},
		{Prompt: "deploy", Mode: "ask", Command: "true"},
	}}
	answered := c.directive("Why does the cart test fail?")
	assert.Equal(t, [2]string{"The cart counts from one.", ""}, [2]string{answered.Answer, answered.Mode})
	asked := c.directive("!exit 3, or deploy")
	assert.Equal(t, [2]string{"true", "ask"}, [2]string{asked.Command, asked.Mode})
	assert.Equal(t, "hang", c.directive("anything else").Mode)
}
