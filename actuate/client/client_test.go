// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

// start runs a process and tells which signal ended it.
func start(t *testing.T) (observe.Process, <-chan syscall.Signal) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, cmd.Start())
	p, alive := process.Identify(cmd.Process.Pid)
	require.Equal(t, observe.Running, alive)
	ended := make(chan syscall.Signal, 1)
	go func() {
		_ = cmd.Wait()
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		ended <- status.Signal()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return p, ended
}

func do(t *testing.T, sig actuate.Signal, processes ...observe.Process) actuate.Outcome {
	t.Helper()
	return Actuator{}.Do(t.Context(), actuate.Action{Kind: actuate.ActionSignal, Signal: sig, Processes: processes})
}

func TestEachProcessGetsTheSignal(t *testing.T) {
	a, endA := start(t)
	b, endB := start(t)
	assert.Equal(t, actuate.Outcome{Result: actuate.ResultDone}, do(t, actuate.SignalTerm, a, b))
	assert.Equal(t, syscall.SIGTERM, <-endA)
	assert.Equal(t, syscall.SIGTERM, <-endB)
	assert.Equal(t, actuate.ResultDone, do(t, actuate.SignalKill, a, b).Result, "a process that is gone needs none")
}

func TestAProcessThatIsAnotherOneNowIsLeftAlone(t *testing.T) {
	p, ended := start(t)
	reused := observe.Process{PID: p.PID, Ticks: p.Ticks + 7}
	assert.Equal(t, actuate.ResultDone, do(t, actuate.SignalKill, reused).Result)
	assert.Equal(t, observe.Running, process.State(p))
	assert.Equal(t, actuate.ResultDone, do(t, actuate.SignalKill, p).Result)
	assert.Equal(t, syscall.SIGKILL, <-ended)
}

func TestAProcessThatCannotBeIdentifiedFailsAndTheOthersAreSignalled(t *testing.T) {
	unknown, _ := start(t)
	p, ended := start(t)
	outcome := do(t, actuate.SignalTerm, observe.Process{PID: unknown.PID}, p)
	assert.Equal(t, actuate.ResultFailed, outcome.Result)
	assert.Equal(t, spec.ReasonProcessUnknown, outcome.Reason)
	assert.Equal(t, syscall.SIGTERM, <-ended)
	assert.Equal(t, observe.Running, process.State(unknown))
}

func TestEachPoliteSignalIsSent(t *testing.T) {
	for sig, want := range map[actuate.Signal]syscall.Signal{
		actuate.SignalInterrupt: syscall.SIGINT, actuate.SignalHangup: syscall.SIGHUP, actuate.SignalQuit: syscall.SIGQUIT,
	} {
		p, ended := start(t)
		assert.Equal(t, actuate.ResultDone, do(t, sig, p).Result)
		assert.Equal(t, want, <-ended)
	}
}

func TestOnlyTheKnownSignalsAreSent(t *testing.T) {
	p, _ := start(t)
	for _, sig := range []actuate.Signal{"", "SIGSTOP", "9"} {
		assert.Equal(t, actuate.ResultFailed, do(t, sig, p).Result)
	}
	assert.Equal(t, observe.Running, process.State(p))
	assert.Equal(t, actuate.ResultFailed, Actuator{}.Do(t.Context(), actuate.Action{Kind: actuate.ActionCreate}).Result)
}
