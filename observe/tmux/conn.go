// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package tmux asks one tmux server. Every call is bounded in time and in size,
// goes to one socket and never to the person's own server, and says what kind of
// answer came: an exit code of tmux proves nothing by itself. List and Capture
// change nothing; Run and Start are what others build their commands on. No call
// is repeated here: the caller's next pass is the repetition.
package tmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// defaultTimeout bounds a call of a Conn without a Timeout.
	defaultTimeout = 5 * time.Second
	// drainTime is how long the pipes of a tmux client are read after its end.
	// Without a bound a killed client of a hung server would block for ever: its
	// stdout is in flight in the server's socket, and so the pipe never ends.
	drainTime = 200 * time.Millisecond
	// maxStdout and maxStderr bound what is kept of an answer, in bytes. A
	// listing has about 250 bytes for each pane.
	maxStdout = 32 << 20
	maxStderr = 64 << 10
)

var (
	// ErrTimeout says that tmux did not answer within the deadline.
	ErrTimeout = errors.New("tmux did not answer in time")
	// ErrTooLong says that an answer was longer than what is kept of one.
	ErrTooLong = errors.New("the answer of tmux is too long")
	// ErrNoProgram says that the tmux program could not be found or executed.
	ErrNoProgram = errors.New("the tmux program cannot be executed")
)

// environment names the variables that a tmux client is given. What else the
// caller has, TMUX and TMUX_TMPDIR above all, would lead to another server or
// leak into every pane.
var environment = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG"}

// Conn is one tmux server as seen from outside. Its fields are set before its
// first use and not changed afterwards; its methods may be called by several
// goroutines at once.
type Conn struct {
	// Socket is the absolute path of the server's socket, at most 100 bytes.
	Socket string
	// Command is the tmux program, an absolute path or a name that is looked up
	// on the PATH of Env. Empty: tmux.
	Command string
	// Env holds NAME=value for each client and, through Start, for the server.
	// Only PATH, HOME, USER, LOGNAME, SHELL and LANG are used.
	Env []string
	// Timeout bounds each call; 0 means 5 s. A call returns at most 0.2 s later.
	Timeout time.Duration
	// TimeoutOf, when set, names the timeout instead of Timeout: it may change.
	TimeoutOf func() time.Duration
	// SocketOf, when set, names the socket instead of Socket, as long as it is not
	// empty: that of a live server which was started on another path.
	SocketOf func() string
	// BinaryOf, when set, names the running server's own binary, such as
	// /proc/PID/exe; empty means that Command is used. Clients and servers of
	// different versions do not always understand each other.
	BinaryOf func() string
	// TicksOf, when set, tells the start ticks of a process; 0 when it cannot.
	TicksOf func(pid int) uint64
	// Called, when set, is told of each call that has ended: one of the Call words, one of
	// the Result words, and how long it took. It must not wait.
	Called func(kind, result string, took time.Duration)
}

// Result is what came of one call of the tmux program.
type Result struct {
	// Stdout and Stderr, cut off at 32 MiB and 64 KiB.
	Stdout, Stderr string
	// ExitCode of the program; -1 when it did not exit by itself.
	ExitCode int
	// Err is nil when the program ran to its end, whatever its exit code. It
	// wraps ErrTimeout, ErrTooLong, ErrNoProgram, the context's error, or is
	// what the system said.
	Err error
	// TimedOut says that Err is ErrTimeout.
	TimedOut bool
}

// Run executes tmux with args against the server on the socket and never starts
// one. stdin may be nil. A client that has not ended at the deadline is killed;
// the server may then still carry out what it was told.
func (c *Conn) Run(ctx context.Context, stdin io.Reader, args ...string) Result {
	began := time.Now()
	return c.called(kindOf(args), began, c.ask(ctx, stdin, args))
}

func (c *Conn) ask(ctx context.Context, stdin io.Reader, args []string) Result {
	words := append([]string{"-N", "-u", "-S", c.socket()}, args...)
	if c.BinaryOf != nil {
		if binary := c.BinaryOf(); binary != "" {
			r := c.exec(ctx, binary, stdin, words)
			if !errors.Is(r.Err, ErrNoProgram) {
				return r
			}
			// The server went away together with its binary: nothing was executed.
		}
	}
	return c.run(ctx, stdin, words)
}

// Start executes tmux with args, and starts a server with the configuration file
// conf when none listens on the socket. The caller must have proven that no
// server of ours exists.
func (c *Conn) Start(ctx context.Context, conf string, args ...string) Result {
	began := time.Now()
	return c.called(CallStart, began, c.run(ctx, nil, append([]string{"-u", "-S", c.socket(), "-f", conf}, args...)))
}

func (c *Conn) socket() string {
	if c.SocketOf != nil {
		if path := c.SocketOf(); path != "" {
			return path
		}
	}
	return c.Socket
}

// Program finds the tmux program of Command. The error wraps ErrNoProgram.
func (c *Conn) Program() (string, error) {
	command := c.Command
	if command == "" {
		command = "tmux"
	}
	if filepath.IsAbs(command) {
		return command, nil
	}
	path := c.variable("PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, command)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%w: %s is not in PATH=%s", ErrNoProgram, command, path)
}

func (c *Conn) run(ctx context.Context, stdin io.Reader, words []string) Result {
	program, err := c.Program()
	if err != nil {
		return Result{ExitCode: -1, Err: err}
	}
	return c.exec(ctx, program, stdin, words)
}

// exec runs one tmux client. It has a session of its own: a person's Ctrl-C at
// the daemon is not meant for it.
func (c *Conn) exec(ctx context.Context, program string, stdin io.Reader, words []string) Result {
	bounded, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	stdout, stderr := bounds{limit: maxStdout}, bounds{limit: maxStderr}
	cmd := exec.CommandContext(bounded, program, words...)
	cmd.Args[0] = "tmux"
	cmd.Env = c.environ()
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = drainTime
	err := cmd.Run()
	r := Result{Stdout: stdout.kept.String(), Stderr: stderr.kept.String(), ExitCode: -1}
	if cmd.ProcessState != nil {
		r.ExitCode = cmd.ProcessState.ExitCode()
	}
	r.Err = c.failure(ctx, bounded, program, err)
	r.TimedOut = errors.Is(r.Err, ErrTimeout)
	if r.Err == nil && (stdout.overflowed || stderr.overflowed) {
		r.Err = ErrTooLong
	}
	return r
}

// failure turns the error of a run into the one that callers judge. That tmux
// exited with another code than 0 is an answer, not a failure to get one; so is
// an exit after which somebody still held the pipes.
func (c *Conn) failure(ctx, bounded context.Context, program string, err error) error {
	var exited *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && bounded.Err() == nil:
		return nil
	case errors.As(err, &exited) && exited.Exited():
		return nil
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("asking tmux on %s: %w", c.socket(), ctx.Err())
	case bounded.Err() != nil:
		return fmt.Errorf("asking tmux on %s for %s: %w", c.socket(), c.timeout(), ErrTimeout)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: %w", ErrNoProgram, err)
	}
	return fmt.Errorf("running %s: %w", program, err)
}

func (c *Conn) timeout() time.Duration {
	if c.TimeoutOf != nil {
		return c.TimeoutOf()
	}
	if c.Timeout > 0 {
		return c.Timeout
	}
	return defaultTimeout
}

// environ is the whole environment of a tmux client.
func (c *Conn) environ() []string {
	env := []string{}
	for _, name := range environment {
		if value := c.variable(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (c *Conn) variable(name string) string {
	i := slices.IndexFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if i < 0 {
		return ""
	}
	return c.Env[i][len(name)+1:]
}

// bounds keeps the first limit bytes and takes the rest without keeping it, so
// that the writer neither blocks nor fails.
type bounds struct {
	kept       strings.Builder
	limit      int
	overflowed bool
}

// Write takes all of p.
func (b *bounds) Write(p []byte) (int, error) {
	room := b.limit - b.kept.Len()
	if len(p) > room {
		b.overflowed = true
		b.kept.Write(p[:room])
		return len(p), nil
	}
	return b.kept.Write(p)
}
