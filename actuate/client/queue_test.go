// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

const queued = "secret 'hi' \"$HOME\" $(HOME) `x` \\\n\t; 日本 \\"

// desk is a client with an environment of its own, whose queue is a script.
type desk struct {
	*testing.T
	dir, work, out string
	turn           actuate.Turn
}

// newDesk has a client whose PATH has the program queue, which runs script.
func newDesk(t *testing.T, script string) *desk {
	t.Helper()
	dir := t.TempDir()
	d := &desk{T: t, dir: dir, work: filepath.Join(dir, "work"), out: filepath.Join(dir, "out")}
	for _, sub := range []string{d.work, d.out, filepath.Join(dir, "bin")} {
		require.NoError(t, os.Mkdir(sub, 0o700))
	}
	d.script(filepath.Join(dir, "bin", "queue"), script)
	promptFile := filepath.Join(dir, "1.prompt")
	require.NoError(t, os.WriteFile(promptFile, []byte(queued), 0o600))
	d.turn = actuate.Turn{
		Name: "shop-1", PromptFile: promptFile, Directory: d.work, Client: d.client(),
		Command: []string{"queue", "--thread", "$(CONVERSATION_ID)"}, Variables: map[string]string{spec.VarConversationID: "c-1"},
	}
	return d
}

func (d *desk) script(path, text string) {
	d.Helper()
	require.NoError(d, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
}

func (d *desk) client() observe.Process {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), "/bin/sleep", "1000")
	cmd.Env = []string{
		"PATH=" + filepath.Join(d.dir, "bin") + ":/usr/bin:/bin", "HOME=/nowhere", "CODEX_HOME=" + d.dir, "OUT=" + d.out, "PWD=/else", "KEY=of the client",
		"MUXLET_CLIENT=i/u/1/a/1/1", "MUXLET_REPORTS=/r", "MUXLET_SESSION=shop", "TMUX=/s,1,0", "TMUX_PANE=%1",
	}
	require.NoError(d, cmd.Start())
	d.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, alive := process.Identify(cmd.Process.Pid)
	require.Equal(d, observe.Running, alive)
	require.Eventually(d, func() bool {
		environment, err := process.Environment(p)
		return err == nil && strings.Contains(strings.Join(environment, "\n"), "CODEX_HOME=")
	}, 20*time.Second, time.Millisecond)
	return p
}

func (d *desk) queue(ctx context.Context) actuate.Outcome {
	return Actuator{}.Do(ctx, actuate.Action{Kind: actuate.ActionQueue, Turn: d.turn})
}

func (d *desk) file(name string) string {
	d.Helper()
	data, err := os.ReadFile(filepath.Join(d.out, name))
	require.NoError(d, err)
	return string(data)
}

const record = `cat >"$OUT/stdin"; pwd >"$OUT/dir"; env >"$OUT/env"; printf '%s\n' "$@" >"$OUT/args"; ps -o pid= -o pgid= -o tty= -p $$ >"$OUT/group"; `

func TestAQueueGetsThePromptOnItsStandardInputInTheClientsPlace(t *testing.T) {
	t.Setenv("OF_THE_DAEMON", "1")
	d := newDesk(t, record+"cat \"$OUT/stdin\"; cat \"$OUT/stdin\" >&2")
	assert.Equal(t, actuate.Outcome{Result: actuate.ResultDone}, d.queue(t.Context()))
	assert.Equal(t, queued, d.file("stdin"))
	assert.Equal(t, "--thread\nc-1\n", d.file("args"))
	assert.Equal(t, d.work+"\n", d.file("dir"))
	env := "\n" + d.file("env")
	for _, has := range []string{"\nCODEX_HOME=" + d.dir + "\n", "\nKEY=of the client\n", "\nHOME=/nowhere\n", "\nPWD=" + d.work + "\n"} {
		assert.Contains(t, env, has)
	}
	for _, none := range []string{"MUXLET_", "TMUX", "OF_THE_DAEMON"} {
		assert.NotContains(t, env, none)
	}
	group := strings.Fields(d.file("group"))
	assert.Equal(t, group[0], group[1], "a process group of its own")
	assert.Equal(t, "?", group[2], "no terminal")
}

func TestAQueueGetsThePromptAsAWordWhereItsCommandSaysSo(t *testing.T) {
	d := newDesk(t, record)
	d.turn.Command = []string{"queue", "--thread=$(CONVERSATION_ID)", "--message", "<$(PROMPT)>", "$(UNKNOWN)", "$$(PROMPT)"}
	assert.Equal(t, actuate.Outcome{Result: actuate.ResultDone}, d.queue(t.Context()))
	assert.Empty(t, d.file("stdin"))
	assert.Equal(t, "--thread=c-1\n--message\n<"+queued+">\n$(UNKNOWN)\n$(PROMPT)\n", d.file("args"))
}

func TestAQueueIsFoundWhereTheClientWouldFindIt(t *testing.T) {
	d := newDesk(t, record)
	d.script(filepath.Join(d.work, "own"), record)
	d.turn.Command = []string{"./own", "here"}
	assert.Equal(t, actuate.ResultDone, d.queue(t.Context()).Result)
	assert.Equal(t, "here\n", d.file("args"))
}

func TestACommandThatCouldNotBeExecutedHasQueuedNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*desk)
		reason string
	}{
		"missing":        {func(d *desk) { d.turn.Command = []string{"absent"} }, spec.ReasonCommandNotFound},
		"missing path":   {func(d *desk) { d.turn.Command = []string{"/nowhere/absent"} }, spec.ReasonCommandNotFound},
		"none":           {func(d *desk) { d.turn.Command = nil }, spec.ReasonCommandNotFound},
		"of the prompt":  {func(d *desk) { d.turn.Command = []string{"$(PROMPT)"} }, spec.ReasonCommandNotFound},
		"no directory":   {func(d *desk) { d.turn.Directory = filepath.Join(d.dir, "none") }, spec.ReasonWorkspaceMissing},
		"no interpreter": {func(d *desk) { d.interpreter("#!/nowhere/sh\n") }, spec.ReasonExecFailed},
		"no program":     {func(d *desk) { d.interpreter("\x00\x01\x02") }, spec.ReasonExecFailed},
		"too long": {func(d *desk) {
			require.NoError(d, os.WriteFile(d.turn.PromptFile, []byte(strings.Repeat("secret", 100000)), 0o600))
			d.turn.Command = []string{"queue", "$(PROMPT)"}
		}, spec.ReasonExecFailed},
		"no prompt":      {func(d *desk) { require.NoError(d, os.Remove(d.turn.PromptFile)) }, spec.ReasonPromptLost},
		"damaged prompt": {func(d *desk) { require.NoError(d, os.Truncate(d.turn.PromptFile, 0)) }, spec.ReasonPromptLost},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, record)
			c.change(d)
			out := d.queue(t.Context())
			assert.Equal(t, actuate.ResultFailed, out.Result, out.Message)
			assert.Equal(t, c.reason, out.Reason, out.Message)
			assert.Contains(t, out.Message, "shop-1")
			assert.NotContains(t, out.Message, "secret")
			assert.NoFileExists(t, filepath.Join(d.out, "args"))
		})
	}
}

func (d *desk) interpreter(text string) {
	require.NoError(d, os.WriteFile(filepath.Join(d.dir, "bin", "queue"), []byte(text), 0o700))
}

func TestNothingIsQueuedForAClientThatIsAnotherProcessNow(t *testing.T) {
	d := newDesk(t, record)
	d.turn.Client.Ticks++
	out := d.queue(t.Context())
	assert.Equal(t, actuate.ResultRefused, out.Result, out.Message)
	d.turn.Client.Ticks = 0
	assert.Equal(t, actuate.ResultFailed, d.queue(t.Context()).Result)
	assert.NoFileExists(t, filepath.Join(d.out, "args"))
}

func TestACommandThatFailedMayHaveQueuedThePrompt(t *testing.T) {
	d := newDesk(t, record+`echo "$(cat "$OUT/stdin")"; cat "$OUT/stdin" >&2; exit 3`)
	out := d.queue(t.Context())
	assert.Equal(t, actuate.ResultUnclear, out.Result)
	assert.Equal(t, spec.ReasonNotConfirmed, out.Reason)
	assert.Contains(t, out.Message, "exit status 3")
	assert.NotContains(t, out.Message, "secret")
}

func TestACommandThatHangsIsEndedWithAllThatItStarted(t *testing.T) {
	d := newDesk(t, `sleep 1000 & echo $! >"$OUT/child"; wait`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := make(chan actuate.Outcome, 1)
	go func() { out <- d.queue(ctx) }()
	var child observe.Process
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(filepath.Join(d.out, "child"))
		if err != nil {
			return false
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			return false
		}
		child, _ = process.Identify(pid)
		return true
	}, 20*time.Second, time.Millisecond)
	cancel()
	got := <-out
	assert.Equal(t, actuate.ResultUnclear, got.Result)
	assert.Contains(t, got.Message, "deadline")
	require.Eventually(t, func() bool { return process.State(child) == observe.Gone }, 20*time.Second, 5*time.Millisecond)
}

// What a queue leaves behind holds up nobody.
func TestACommandThatLeavesAProcessBehindHasQueuedThePrompt(t *testing.T) {
	d := newDesk(t, `sleep 1000 & echo $! >"$OUT/child"; exit 0`)
	assert.Equal(t, actuate.Outcome{Result: actuate.ResultDone}, d.queue(t.Context()))
	pid, err := strconv.Atoi(strings.TrimSpace(d.file("child")))
	require.NoError(t, err)
	left, err := os.FindProcess(pid)
	require.NoError(t, err)
	assert.NoError(t, left.Kill())
}
