// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// patience is how long a test waits for something that happens at once on an idle
// machine.
const patience = 60 * time.Second

// roleVariable makes the test binary another program.
const roleVariable = "MUXLET_TEST_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func() error{"client": beClient, "agent": beAgent, "wrapper": beWrapper, "hook": beHook, "daemon": beDaemon}
	role, ok := roles[os.Getenv(roleVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// beClient is a client: it carries a mark of its own and runs one shell command per
// line of its input, as a client runs its hooks; it answers each with a line.
func beClient() error {
	if err := takeMark(); err != nil {
		return err
	}
	return beAgent()
}

func takeMark() error {
	p, _ := process.Identify(os.Getpid())
	mark := observe.Mark{Instance: "i", UID: "u", Incarnation: 1, Attempt: theAttempt, Process: p}
	return os.Setenv(observe.EnvClient, mark.String())
}

// beWrapper is a client that leaves everything to a program of its own.
func beWrapper() error {
	if err := takeMark(); err != nil {
		return err
	}
	if err := os.Setenv(roleVariable, "agent"); err != nil {
		return err
	}
	cmd := exec.Command(os.Getenv("SELF"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// beAgent is a client without a mark of its own: it has inherited one.
func beAgent() error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		cmd := exec.Command("sh", "-c", in.Text())
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		_, _ = fmt.Fprintf(os.Stdout, "%s:%v\n", strings.TrimSpace(string(out)), err)
	}
	return in.Err()
}

// beHook is `muxlet hook` with more time, so that a loaded machine loses nothing.
func beHook() error {
	return Hook{
		Class: "claude", Stdin: os.Stdin, Getenv: os.Getenv, PID: os.Getpid(), Now: time.Now(),
		Patience: Patience{Payload: patience, Answer: patience, Whole: 2 * patience},
	}.Run()
}

// beDaemon takes reports, and writes down each before it is answered.
func beDaemon() error {
	journal, err := os.OpenFile(os.Getenv("JOURNAL"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	l, err := Listen(os.Getenv("SOCKET"), os.Getenv("SPOOL"))
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	return l.Serve(context.Background(), func(_ context.Context, r observe.Report) error {
		line, err := json.Marshal(r)
		if err == nil {
			_, err = journal.Write(append(line, '\n'))
		}
		return err
	})
}

// place has the directories of one daemon.
type place struct{ socket, spool string }

// newPlace is short enough for a Unix socket.
func newPlace(t *testing.T) place {
	t.Helper()
	dir, err := os.MkdirTemp("", "mx")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return place{socket: filepath.Join(dir, "run", "reports.sock"), spool: filepath.Join(dir, "state", "reports")}
}

// prepare makes the spool and the way to it, as a daemon that has ended leaves them.
func (p place) prepare(t *testing.T) {
	t.Helper()
	l, err := Listen(p.socket, p.spool)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// desk collects what a listener hands over.
type desk struct {
	mu      sync.Mutex
	reports []observe.Report
	// refuse is asked before a report is taken.
	refuse func(observe.Report) error
}

func (d *desk) handle(_ context.Context, r observe.Report) error {
	if d.refuse != nil {
		if err := d.refuse(r); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reports = append(d.reports, r)
	return nil
}

func (d *desk) all() []observe.Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]observe.Report(nil), d.reports...)
}

// serve has a listener there until the test, or the returned function, ends it.
func serve(t *testing.T, p place, h Handler) (stop func()) {
	t.Helper()
	l, err := Listen(p.socket, p.spool)
	require.NoError(t, err)
	l.every = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx, h) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// program is a running role of the test binary.
type program struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	process observe.Process
}

const theAttempt = "5f0c8a36-0d7e-4a53-9a3e-2f6f3ad0a6ee"

// start starts a command that is, or runs, the test binary in a role.
func start(t *testing.T, cmd *exec.Cmd, role string, env ...string) *program {
	t.Helper()
	cmd.Env = append(append(os.Environ(), roleVariable+"="+role, "SELF="+self(t), "GORACE=atexit_sleep_ms=0"), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p, state := process.Identify(cmd.Process.Pid)
	require.Equal(t, observe.Running, state)
	return &program{t: t, cmd: cmd, in: in, out: bufio.NewReader(out), process: p}
}

// startClient starts a client whose hooks report to a place.
func startClient(t *testing.T, p place) *program {
	t.Helper()
	return start(t, exec.Command(self(t)), "client", observe.EnvReports+"="+p.socket)
}

// run has the client run one shell command, which prints nothing and succeeds.
func (p *program) run(command string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in, command)
	require.NoError(p.t, err)
	line, err := p.out.ReadString('\n')
	require.NoError(p.t, err)
	require.Equal(p.t, ":<nil>\n", line)
}

// hook is the shell command of a hook with a payload, which has no single quote.
func hook(payload string) string {
	return "printf '%s' '" + payload + "' | " + roleVariable + `=hook "$SELF"`
}

// event is a payload as both clients have it.
func event(name, conversation string) string {
	return fmt.Sprintf(`{"session_id":%q,"transcript_path":"/t/%s.jsonl","cwd":"/w","hook_event_name":%q}`, conversation, conversation, name)
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// copyOfSelf is another program that does the same.
func copyOfSelf(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(self(t))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o700))
	return path
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, patience, 5*time.Millisecond, what)
}
