// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shop is a world with two sessions and muxlet on the PATH.
func shop(t *testing.T) *World {
	w := newWorld(t)
	w.setenv("NO_COLOR", "1")
	w.write("checkout-bug.yaml", strings.Replace(w.document("checkout-bug", "stay"), "metadata:", "metadata:\n  labels: {repo: shop}", 1))
	w.declare("docs", "stay")
	require.NoError(t, os.Symlink(binary, w.dir+"/bin/muxlet"))
	w.start()
	w.runs("checkout-bug")
	w.runs("docs")
	return w
}

// interactiveShell is a person in front of a shell without any settings of theirs.
func (w *World) interactiveShell(name string, args ...string) *terminal {
	w.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		w.Skipf("this system has no %s", name)
	}
	tm := &terminal{w: w, cmd: exec.Command(path, args...), over: make(chan struct{})}
	tm.cmd.Env, tm.cmd.Dir = append(w.env, "PS1=ready> ", "ZDOTDIR="+w.home), w.home
	file, err := pty.StartWithSize(tm.cmd, &pty.Winsize{Rows: 30, Cols: 160})
	require.NoError(w, err)
	tm.pty = file
	go tm.copy()
	w.Cleanup(func() { _ = tm.pty.Close() })
	return tm
}

// completes begins a line, presses Tab, and waits until it is as it should be. Then it drops
// the line.
func (tm *terminal) completes(begun, whole string) {
	tm.w.Helper()
	tm.forget()
	tm.types(begun + "\t")
	tm.shows(whole)
	tm.types("\x15") // C-u
}

// forget what was shown.
func (tm *terminal) forget() {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	tm.shown.Reset()
}

// inShells are lines that are begun, and as Tab ends them, in every shell.
var inShells = []struct{ begun, whole string }{
	{"muxlet descr", "muxlet describe"},
	{"muxlet describe check", "checkout-bug"},
	{"muxlet describe docs che", "checkout-bug"},
	{"muxlet delete session/do", "session/docs"},
	{"muxlet get --output-w", "--output-watch-events"},
	{"muxlet get -o ya", "yaml"},
	{"muxlet get --sort-by .status.client.incar", ".status.client.incarnation"},
	{"muxlet suspend -l repo=s", "repo=shop"},
	{"muxlet wait docs --for condition=Inp", "condition=InputRequired"},
	{"muxlet explain session.spec.worksp", "session.spec.workspace"},
}

func TestBashCompletes(t *testing.T) {
	t.Parallel()
	w := shop(t)
	// The functions that the script takes from bash-completion, in their simplest form. Words
	// that an equals sign parts are put together again, as the real one does.
	w.write(w.home+"/completion", `
_get_comp_words_by_ref() {
	local i line="${COMP_LINE:0:COMP_POINT}"
	read -ra words <<<"$line"
	[[ $line == *' ' ]] && words+=("")
	cword=$((${#words[@]} - 1)) cur=${words[cword]} prev=${words[cword-1]}
}
__ltrim_colon_completions() { :; }
[[ -r /usr/share/bash-completion/bash_completion ]] && source /usr/share/bash-completion/bash_completion
source <(muxlet completion bash)
`)
	sh := w.interactiveShell("bash", "--norc", "--noprofile", "-i")
	sh.shows("ready> ")
	sh.types("COMP_WORDBREAKS=${COMP_WORDBREAKS//[=:]/}; source ~/completion; echo load''ed\r")
	sh.shows("loaded")
	for _, line := range inShells {
		sh.completes(line.begun, line.whole)
	}
}

func TestZshCompletes(t *testing.T) {
	t.Parallel()
	w := shop(t)
	w.write(w.home+"/.zshrc", "PS1='ready> '\nunsetopt zle_bracketed_paste 2>/dev/null\nautoload -U compinit && compinit -u -D\nsource <(muxlet completion zsh)\n")
	sh := w.interactiveShell("zsh", "-i", "--no-globalrcs")
	sh.types("echo load''ed\r")
	sh.shows("loaded")
	for _, line := range inShells {
		sh.completes(line.begun, line.whole)
	}
}

func TestFishCompletes(t *testing.T) {
	t.Parallel()
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip("this system has no fish")
	}
	w := shop(t)
	complete := func(line string) string {
		cmd := exec.CommandContext(w.Context(), fish, "--no-config", "-c", `muxlet completion fish | source; complete --do-complete "$argv[1]"`, line)
		cmd.Env, cmd.Dir = w.env, w.home
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	for _, line := range inShells {
		word := line.whole[strings.LastIndex(line.whole, " ")+1:]
		assert.Contains(t, "\n"+complete(line.begun), "\n"+word, line.begun)
	}
	assert.Contains(t, complete("muxlet describe "), "docs\tRunning", "each name with its status")
	w.stop()
	assert.NotContains(t, complete("muxlet describe "), "daemon", "without a daemon it says nothing")
}
