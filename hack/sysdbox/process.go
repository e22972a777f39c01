// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sysdbox

import (
	"os/exec"
	"runtime"
	"syscall"
)

// process is one that dies with this one, and is waited for.
type process struct {
	cmd *exec.Cmd
	// over is closed when it has ended.
	over chan struct{}
}

// spawn starts a process on a thread of its own, which lives as long as the process
// does: the kernel sends a death signal when the thread that started it ends, not when the process does.
func spawn(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p := &process{cmd: cmd, over: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in cmd
		}
		close(p.over)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// end kills the process, and waits until it is gone.
func (p *process) end() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.over
}
