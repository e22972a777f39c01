// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// counting is a client that says its number, writes lines, and then what it is
// given on the file of words.
func (w *World) counting(name string) {
	w.Helper()
	words := w.dir + "/" + name + ".words"
	w.write(words, "")
	w.write(name+".yaml", document(name, fmt.Sprintf(`[sh, -c, 'echo incarnation ${MUXLET_CLIENT#*/*/} | cut -d/ -f1; seq 1 100; exec tail -n +1 -f %s']`, words), w.home+"/work"))
	w.runs(name)
	w.eventually([]string{"logs", name}, "\n99\n100\n")
}

// hears makes the client of counting write a line.
func (w *World) hears(name, line string) {
	w.Helper()
	f, err := os.OpenFile(w.dir+"/"+name+".words", os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(w, err)
	_, err = f.WriteString(line + "\n")
	require.NoError(w, err)
	require.NoError(w, f.Close())
}

func TestLogsShowThePaneAndWhatTheLastIncarnationHasShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.counting("s")
	lines := strings.Split(strings.TrimSpace(w.does("logs", "s")), "\n")
	require.Len(t, lines, 101, "the history, too")
	assert.Equal(t, "incarnation 1", lines[0])
	assert.Equal(t, w.does("logs", "s"), w.does("logs", "s", "--tail", "-1"))
	assert.Equal(t, "99\n100\n", w.does("logs", "s", "--tail", "2"))
	assert.Empty(t, w.does("logs", "s", "--tail=0"))
	assert.Contains(t, w.refuses(3, "logs", "s", "-p"), "no incarnation of it has ended yet")

	w.hears("s", "last words of the first")
	w.eventually([]string{"logs", "s"}, "last words of the first")
	w.write(w.dir+"/s.words", "")
	signal(t, pid(w.get("s")), unix.SIGKILL)
	w.runsAs("s", 2)
	assert.Equal(t, "100\nlast words of the first\n", w.does("logs", "s", "--previous", "--tail", "2"))
	assert.Contains(t, w.does("logs", "s", "-p"), "incarnation 1\n1\n2\n")
	assert.NotContains(t, w.log(), "last words")
	files, err := filepath.Glob(w.state + "/screens/*")
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())

	w.does("suspend", "s")
	assert.Contains(t, w.does("logs", "s", "-p"), "incarnation 2\n")
	signal(t, w.server().pid, unix.SIGKILL)
	w.kill()
	w.start()
	w.reaches("s", spec.StatusSuspended)
	w.waitFor("its pane is seen to be gone", func() bool { return w.muxlet("logs", "s").code == 4 })
	said := w.refuses(4, "logs", "s")
	assert.Contains(t, said, "no pane now")
	assert.Contains(t, said, "muxlet logs s --previous")
	assert.Contains(t, w.does("logs", "s", "-p", "--tail", "1"), "100\n")
	w.eventually([]string{"describe", "s"}, "Last screen", "| 100\n")
}

// follower is `muxlet logs -f`.
type follower struct {
	w   *World
	cmd *exec.Cmd
	mu  sync.Mutex
	// out is what it printed; errOut what it said beside that.
	out, errOut bytes.Buffer
	over        chan struct{}
}

// locked writes into one of the follower's buffers.
type locked struct {
	f  *follower
	to *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	return l.to.Write(p)
}

func (w *World) follow(args ...string) *follower {
	w.Helper()
	f := &follower{w: w, cmd: exec.Command(binary, args...), over: make(chan struct{})}
	f.cmd.Env, f.cmd.Dir = w.env, w.home
	f.cmd.Stdout, f.cmd.Stderr = locked{f, &f.out}, locked{f, &f.errOut}
	require.NoError(w, f.cmd.Start())
	go func() {
		_ = f.cmd.Wait()
		close(f.over)
	}()
	w.Cleanup(func() { _ = f.cmd.Process.Kill() })
	return f
}

func (f *follower) text() (out, errOut string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.String(), f.errOut.String()
}

// printed waits until the follower has printed exactly that.
func (f *follower) printed(want string) {
	f.w.Helper()
	defer func() {
		if f.w.Failed() {
			out, errOut := f.text()
			f.w.Logf("It printed %q and said %q", out, errOut)
		}
	}()
	f.w.waitFor(fmt.Sprintf("the follower has printed %q", want), func() bool {
		out, _ := f.text()
		return out == want
	})
}

// ends waits for its end and returns the exit code.
func (f *follower) ends() int {
	f.w.Helper()
	f.w.waitFor("the follower ends", func() bool {
		select {
		case <-f.over:
			return true
		default:
			return false
		}
	})
	return f.cmd.ProcessState.ExitCode()
}

func TestLogsFollowOverTheDeathsOfTheClientAndOfTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.counting("s")
	var hundred strings.Builder
	for i := range 100 {
		fmt.Fprintln(&hundred, i+1)
	}
	f := w.follow("logs", "s", "-f", "--tail", "1")
	short := w.follow("logs", "s", "-f", "--tail", "2")
	want := "100\n"
	f.printed(want)
	short.printed("99\n100\n")
	w.hears("s", "a")
	f.printed(want + "a\n")
	short.printed("99\n100\na\n")
	require.NoError(t, short.cmd.Process.Signal(unix.SIGINT))
	assert.Equal(t, 0, short.ends())

	// The last line comes a moment before the end.
	w.hears("s", "boom")
	w.eventually([]string{"logs", "s"}, "boom")
	w.write(w.dir+"/s.words", "")
	signal(t, pid(w.get("s")), unix.SIGKILL)
	w.runsAs("s", 2)
	want += "a\nboom\nincarnation 2\n" + hundred.String()
	f.printed(want)
	_, said := f.text()
	assert.Equal(t, "--- incarnation 2 ---\n", said)

	// What comes while no daemon runs is not lost.
	w.kill()
	w.hears("s", "meanwhile")
	w.start()
	want += "meanwhile\n"
	f.printed(want)
	w.hears("s", "afterwards")
	want += "afterwards\n"
	f.printed(want)

	w.does("delete", "s")
	assert.Equal(t, 0, f.ends())
	f.printed(want)
	_, said = f.text()
	assert.Equal(t, "--- incarnation 2 ---\n--- the muxlet daemon has gone; waiting for the next ---\n--- session deleted ---\n", said)
}

// A client's escape sequences are text, and a screen that is drawn over and over
// is not printed over and over.
func TestLogsOfAProgramThatDraws(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.write("s.yaml", document("s", `[sh, -c, "printf '\\033[?1049h\\033[2J\\033[Htitle\\033]0;evil\\007'; i=0; while :; do i=$((i+1)); printf '\\033[3;1Htick %s\\302\\23331m' $i; sleep 0.05; done"]`, w.home+"/work"))
	w.runs("s")
	text := w.eventually([]string{"logs", "s"}, "title\n\ntick ")
	assert.NotContains(t, text, "\x1b")
	assert.NotContains(t, text, "\u009b")
	f := w.follow("logs", "s", "-f")
	w.waitFor("it prints the screen", func() bool {
		out, _ := f.text()
		return strings.Contains(out, "title\n\ntick ")
	})
	w.eventually([]string{"logs", "s"}, "tick 4")
	require.NoError(t, f.cmd.Process.Signal(unix.SIGINT))
	assert.Equal(t, 0, f.ends())
	out, said := f.text()
	assert.NotContains(t, out, "\x1b")
	assert.NotContains(t, out, "\u009b")
	assert.Equal(t, 1, strings.Count(out, "title"), "what stands is printed once")
	assert.Empty(t, said)
}

// A client that has never run has told nobody where it keeps its transcripts.
func TestAConversationWithoutAClientSoFarHasNoTranscriptYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.write("shop.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: shop}\nspec:\n  clientClassName: claude\n"+
		"  workspace: {directory: "+w.home+"}\n  client: {env: [{name: PATH, value: /nonexistent}]}\n")
	w.waitFor("the program is missed", func() bool { return strings.Contains(w.muxlet("get", "shop").out, "Blocked") })
	seen := w.muxlet("logs", "shop", "--conversation")
	assert.Equal(t, 3, seen.code)
	assert.Regexp(t, `^Error: session "shop": where the transcript of conversation [-0-9a-f]{36} is comes to be known when its client runs; "muxlet logs shop" prints its screen\n$`, seen.errOut)
}
