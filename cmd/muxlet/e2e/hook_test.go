// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/client/report"
	processes "github.com/muxlet/muxlet/observe/process"
)

// hookLimit is what a client waits for a hook at most.
const hookLimit = 200 * time.Millisecond

// hookWorld has the directories that hooks report to, without a daemon. This test
// is the client.
type hookWorld struct {
	t             *testing.T
	socket, spool string
	client        observe.Process
	env           []string
}

const hookAttempt = "5f0c8a36-0d7e-4a53-9a3e-2f6f3ad0a6ee"

func newHookWorld(t *testing.T) *hookWorld {
	t.Helper()
	dir, err := os.MkdirTemp("", "mxh")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &hookWorld{t: t, socket: filepath.Join(dir, "run", "reports.sock"), spool: filepath.Join(dir, "state", "reports")}
	client, state := processes.Identify(os.Getpid())
	require.Equal(t, observe.Running, state)
	w.client = client
	mark := observe.Mark{Instance: "i", UID: "u", Incarnation: 1, Attempt: hookAttempt, Process: client}
	w.env = []string{"PATH=" + os.Getenv("PATH"), observe.EnvReports + "=" + w.socket, observe.EnvClient + "=" + mark.String()}
	return w
}

func (w *hookWorld) listen() *report.Listener {
	w.t.Helper()
	l, err := report.Listen(w.socket, w.spool)
	require.NoError(w.t, err)
	return l
}

// run runs the hook as a client does, by a shell, and says how long it took. It is
// silent and succeeds, whatever happens.
func (w *hookWorld) run(in io.Reader, words ...string) time.Duration {
	w.t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `"$0" hook "$@"; exit $?`, binary}, words...)...)
	cmd.Env = w.env
	cmd.Stdin = in
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	require.NoError(w.t, err)
	require.Empty(w.t, string(out))
	return took
}

// inTime wants one run below the limit: others work on this machine, too.
func (w *hookWorld) inTime(what string, run func() time.Duration) {
	w.t.Helper()
	best := time.Hour
	for range 20 {
		if best = min(best, run()); best < hookLimit {
			return
		}
	}
	assert.Less(w.t, best, hookLimit, what)
}

// endless is an input that somebody keeps open without saying more.
func (w *hookWorld) endless(text string) *os.File {
	w.t.Helper()
	r, writer, err := os.Pipe()
	require.NoError(w.t, err)
	_, err = writer.WriteString(text)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = r.Close(); _ = writer.Close() })
	return r
}

const hookPayload = `{"session_id":"0d8f4e5c","transcript_path":"/t/0d8f4e5c.jsonl","cwd":"/w","hook_event_name":"SessionStart","source":"startup"}`

func TestAHookIsSilentQuickAndSuccessfulWhateverHappens(t *testing.T) {
	w := newHookWorld(t)
	require.NoError(t, w.listen().Close())
	for name, in := range map[string]func() io.Reader{
		"nothing":               func() io.Reader { return nil },
		"no JSON":               func() io.Reader { return strings.NewReader("hello") },
		"half of one":           func() io.Reader { return strings.NewReader(hookPayload[:40]) },
		"2 MiB":                 func() io.Reader { return strings.NewReader(`{"prompt":"` + strings.Repeat("x", 2<<20) + `"}`) },
		"an input that is mute": func() io.Reader { return w.endless("") },
		"an endless input":      func() io.Reader { return w.endless(hookPayload[:40]) },
	} {
		w.inTime(name, func() time.Duration { return w.run(in(), "claude") })
	}
	for _, words := range [][]string{{}, {""}, {"a b"}, {"claude", "more"}, {"--verbose"}} {
		w.run(strings.NewReader(hookPayload[:40]), words...)
	}
	w.env = w.env[:1]
	w.inTime("outside of a client", func() time.Duration { return w.run(strings.NewReader(hookPayload), "claude") })
	spooled, err := report.ReadSpool(w.spool)
	require.NoError(t, err)
	require.Empty(t, spooled)
}

// A kill of the pane, or of everything that the client has started, ends it, too.
func TestAHookOutlivesTheSignalsThatEndAClient(t *testing.T) {
	w := newHookWorld(t)
	require.NoError(t, w.listen().Close())
	r, in, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(binary, "hook", "claude")
	cmd.Env, cmd.Stdin = w.env, r
	require.NoError(t, cmd.Start())
	require.NoError(t, r.Close())
	require.Eventually(t, func() bool { return ignores(t, cmd.Process.Pid, unix.SIGTERM) }, time.Minute, time.Millisecond)
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGTERM, unix.SIGINT} {
		require.NoError(t, cmd.Process.Signal(s))
	}
	_, _ = in.WriteString(hookPayload) // it may have given up waiting on a loaded machine
	require.NoError(t, cmd.Wait())
	require.NoError(t, in.Close())
}

// ignores says whether a process ignores a signal; true as well once it has ended.
func ignores(t *testing.T, pid int, s unix.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "SigIgn:")
	if !found || strings.Contains(string(status), "State:\tZ") {
		return true
	}
	mask, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	require.NoError(t, err)
	return mask&(1<<(uint(s)-1)) != 0
}

func TestAHookReportsToTheDaemonOrToTheSpool(t *testing.T) {
	w := newHookWorld(t)
	require.NoError(t, w.listen().Close())
	w.inTime("away", func() time.Duration { return w.run(strings.NewReader(hookPayload), "claude") })
	spooled, err := report.ReadSpool(w.spool)
	require.NoError(t, err)
	require.NotEmpty(t, spooled)
	for _, s := range spooled {
		assert.Empty(t, observe.Doubt(s.Report, w.client, hookAttempt))
	}

	// A class that a person has declared, with the hooks of one of the built-in ones.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var own, strange atomic.Int32
	l, ended := w.listen(), make(chan error, 1)
	go func() {
		ended <- l.Serve(ctx, func(_ context.Context, r observe.Report) error {
			if observe.Proves(r, w.client, hookAttempt) && r.Conversation == "0d8f4e5c" && r.Source == "startup" {
				own.Add(1)
			} else {
				strange.Add(1)
			}
			return nil
		})
	}()
	w.inTime("present", func() time.Duration { return w.run(strings.NewReader(hookPayload), "my-agent") })
	require.Eventually(t, func() bool { return own.Load() > int32(len(spooled)) }, time.Minute, 10*time.Millisecond)
	assert.Zero(t, strange.Load())
	cancel()
	require.NoError(t, <-ended)
}

func TestAHookThatCannotReachAnythingIsSilent(t *testing.T) {
	w := newHookWorld(t)
	w.inTime("neither socket nor spool", func() time.Duration { return w.run(strings.NewReader(hookPayload), "claude") })

	// A daemon that hangs: it has the socket and answers nothing.
	l := w.listen()
	w.inTime("a daemon that hangs", func() time.Duration { return w.run(strings.NewReader(hookPayload), "claude") })
	spooled, err := report.ReadSpool(w.spool)
	require.NoError(t, err)
	require.NotEmpty(t, spooled, "what it may not have heard is kept")
	require.NoError(t, l.Close())
}

// The hook is no verb of a person's: it is not listed, and it explains itself.
func TestTheHookIsHiddenAndExplained(t *testing.T) {
	help, err := exec.Command(binary, "--help").CombinedOutput()
	require.NoError(t, err)
	assert.NotContains(t, string(help), "hook")
	help, err = exec.Command(binary, "hook", "--help").CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(help), "always exits 0")
}
