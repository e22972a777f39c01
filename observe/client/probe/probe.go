// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package probe asks running clients whether they are alive, by a program of the
// person's. Each run ends with all that is in its process group. It never takes what
// gave no answer for one: a program that hangs, is missing, cannot be executed or is
// killed says nothing of the client. It touches nothing of the client's, and tells
// nothing of what is in an environment.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// drain is how long is waited for the standard error of what the probe has left behind
// outside its process group.
const drain = 100 * time.Millisecond

// The statuses by which a shell, and env(1), say that they could not run a program.
const (
	cannotExecute = 126
	notFound      = 127
)

// Runner runs probes.
type Runner struct{}

// Probe runs one to its end, or until its timeout or ctx is over. It may take longer
// when a file system does not answer.
func (Runner) Probe(ctx context.Context, p observe.Probe) observe.ProbeResult {
	cmd, err := command(p)
	if err != nil {
		return unknown("%v", err)
	}
	name, said := p.Command[0], &firstLine{}
	cmd.Stderr, cmd.WaitDelay, cmd.SysProcAttr = said, drain, attributes()
	// The system ends the program with the thread that has started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return unknown("%s could not be executed: %v", name, reasonOf(err))
	}
	overdue := await(ctx, cmd, p.Timeout)
	switch {
	case ctx.Err() != nil:
		return unknown("%s was ended with the daemon", name)
	case overdue:
		return unknown("%s gave no answer within %s and was ended", name, p.Timeout)
	}
	return judge(name, cmd.ProcessState, said.String())
}

// command is the program that p asks, with the client's directory and environment.
func command(p observe.Probe) (*exec.Cmd, error) {
	if len(p.Command) == 0 {
		return nil, errors.New("there is no program to ask")
	}
	environment, err := environmentOf(p.Client)
	if err != nil {
		return nil, err
	}
	// Looked at before the fork: on a file system that does not answer, the fork would
	// hold up every other one of this process.
	if _, err := os.Stat(p.Directory); err != nil {
		return nil, fmt.Errorf("the directory %s cannot be used: %w", p.Directory, reasonOf(err))
	}
	program, err := process.LookPath(p.Command[0], p.Directory, environment)
	switch {
	case err != nil && strings.Contains(p.Command[0], "/"):
		return nil, fmt.Errorf("%s cannot be executed: %w", p.Command[0], reasonOf(err))
	case err != nil:
		return nil, fmt.Errorf("%s is not in the client's PATH", p.Command[0])
	}
	environment = append(environment, "PWD="+p.Directory)
	return &exec.Cmd{Path: program, Args: p.Command, Env: environment, Dir: p.Directory}, nil
}

// notForProbes are the variables by which a client and its hooks are known.
var notForProbes = []string{observe.EnvClient, observe.EnvReports, "PWD"}

// environmentOf is that of a client that runs. Without the client's own mark it is one
// that the client has overwritten, and nobody knows what is left of it.
func environmentOf(client observe.Process) ([]string, error) {
	all, err := process.Environment(client)
	if err != nil {
		return nil, err
	}
	var kept []string
	own := false
	for _, pair := range all {
		name, value, isPair := strings.Cut(pair, "=")
		if name == observe.EnvClient {
			mark, err := observe.ParseMark(value)
			own = own || err == nil && mark.Process == client
		}
		if isPair && !slices.Contains(notForProbes, name) {
			kept = append(kept, pair)
		}
	}
	if !own {
		return nil, fmt.Errorf("the environment of pid %d is not known: the client has replaced or overwritten it", client.PID)
	}
	return kept, nil
}

// await waits for the end of cmd, and ends what is left of its process group: at the
// end, so that no probe leaves anything behind, or when it is overdue. Until the program
// is waited for, nobody else can have its number.
func await(ctx context.Context, cmd *exec.Cmd, timeout time.Duration) (overdue bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		awaitEnd(cmd.Process.Pid)
	}()
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-limit.C:
		overdue = true
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	// What there is to know is in its state: an error may be about what it left behind.
	_ = cmd.Wait()
	return overdue
}

func judge(name string, state *os.ProcessState, said string) observe.ProbeResult {
	if state == nil {
		return unknown("how %s ended is not known", name)
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	switch code := status.ExitStatus(); {
	case state.Success():
		return observe.ProbeResult{Outcome: observe.ProbeSucceeded}
	case status.Signaled():
		return unknown("%s was ended by %s", name, unix.SignalName(status.Signal()))
	case code == cannotExecute || code == notFound:
		return unknown("%s", saying(fmt.Sprintf("%s ended with status %d: a program could not be run", name, code), said))
	default:
		return observe.ProbeResult{Outcome: observe.ProbeFailed, Message: saying(fmt.Sprintf("%s ended with status %d", name, code), said)}
	}
}

func saying(what, said string) string {
	if said == "" {
		return what
	}
	return what + ": " + said
}

func unknown(format string, args ...any) observe.ProbeResult {
	return observe.ProbeResult{Message: fmt.Sprintf(format, args...)}
}

// reasonOf is what the system said, without the words of the call.
func reasonOf(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var program *exec.Error
	if errors.As(err, &program) {
		return program.Err
	}
	return err
}
