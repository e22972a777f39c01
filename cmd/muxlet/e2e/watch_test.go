// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// ends interrupts the command and gives its exit code.
func (tm *terminal) ends() int {
	tm.w.Helper()
	require.NoError(tm.w, tm.cmd.Process.Signal(syscall.SIGINT))
	tm.w.waitFor("the command is over", func() bool {
		select {
		case <-tm.over:
			return true
		default:
			return false
		}
	})
	return tm.cmd.ProcessState.ExitCode()
}

func TestGetWatchShowsADeathAndOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setenv("NO_COLOR", "1")
	w.declare("s", "stay")
	w.start()
	s := w.runs("s")
	screen := w.open("get", "-w")
	events := w.open("events", "-w", "--types", "Warning")
	screen.shows("s      exec    Running")
	began := time.Now()
	require.NoError(t, unix.Kill(pid(s), unix.SIGKILL))
	screen.shows("1 (")
	events.shows("Died")
	t.Logf("Shown %s after the kill", time.Since(began))
	w.runsAs("s", 2)

	w.stop()
	screen.shows("The daemon does not answer any more; waiting for it.")
	w.start()
	screen.shows("The daemon answers again.")
	assert.NotContains(t, screen.text(), "Deleted")
	assert.NotContains(t, screen.text(), "\x1b", "NO_COLOR")
	assert.Equal(t, "session/s suspended\n", w.does("suspend", "s"))
	screen.shows("Suspended")
	assert.Equal(t, 1, strings.Count(screen.text(), "NAME "))
	assert.Equal(t, 0, screen.ends())
	assert.Equal(t, 0, events.ends())
}

func TestColoursInATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("s", "stay")
	w.start()
	w.runs("s")
	w.open("get").shows("\x1b[32mRunning\x1b[0m")
	assert.NotContains(t, w.does("get"), "\x1b", "not into a pipe")
	for _, variable := range []string{"NO_COLOR=1", "TERM=dumb"} {
		name, value, _ := strings.Cut(variable, "=")
		w.setenv(name, value)
		screen := w.open("get")
		screen.shows("Running")
		assert.NotContains(t, screen.text(), "\x1b", variable)
		w.setenv(name, "")
	}
}

func TestBulkVerbsTakeThirtySessionsTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 30
	var documents []string
	for i := range n {
		documents = append(documents, strings.Replace(w.document(fmt.Sprintf("s%02d", i), "stay"), "metadata:", "metadata:\n  labels: {half: h"+fmt.Sprint(i%2)+"}", 1))
	}
	w.write("all.yaml", strings.Join(documents, "---\n"))
	w.start()
	for i := range n {
		w.runs(fmt.Sprintf("s%02d", i))
	}
	assert.Equal(t, n/2, strings.Count(w.does("terminate", "-l", "half=h1"), "terminated\n"))
	assert.Equal(t, n/2, strings.Count(w.does("get", "-l", "half=h1", "--no-headers"), string(spec.StatusTerminated)))
	assert.Equal(t, n, strings.Count(w.does("suspend", "--all"), "suspended\n"))
	assert.Equal(t, n, strings.Count(w.read("all.yaml"), "suspend: true"))
	assert.Contains(t, w.muxlet("resume", "-l", "half=none").errOut, "No sessions found")
	assert.Equal(t, n, strings.Count(w.does("delete", "--all"), "deleted\n"))
	assert.Contains(t, w.muxlet("get").errOut, "No sessions found: no manifest in "+w.manifests)
}

func TestBashCompletesTheNameOfASession(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	w := newWorld(t)
	w.declare("checkout-bug", "stay")
	w.start()
	w.runs("checkout-bug")
	// The functions that the script takes from bash-completion, in their simplest form.
	script := `
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; }
__ltrim_colon_completions() { :; }
compopt() { :; }
muxlet() { "$BINARY" "$@"; }
source <("$BINARY" completion bash)
COMP_WORDS=(muxlet describe che) COMP_CWORD=2 COMP_LINE="muxlet describe che" COMP_POINT=19 COMP_TYPE=9
__start_muxlet
printf '[%s]\n' "${COMPREPLY[@]}"
`
	complete := func() string {
		cmd := exec.CommandContext(w.Context(), bash, "--norc", "-c", script)
		cmd.Env, cmd.Dir = append(w.env, "BINARY="+binary), w.home
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	assert.Contains(t, complete(), "[checkout-bug")
	w.stop()
	assert.Equal(t, "[]", complete(), "without a daemon it says nothing")
}

func TestGetOnNothingSaysWhereItLooked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.eventually([]string{"get"}, "No sessions found: no manifest in "+w.manifests+" (it is empty)")
	w.write("bad.yaml", "kind: Session\n")
	w.eventually([]string{"get"}, "no valid manifest in "+w.manifests+" (1 file)", "Problem: "+w.manifests+"/bad.yaml:1:1")
	w.remove(w.manifests)
	w.eventually([]string{"get"}, w.manifests+" (it does not exist)")
}
