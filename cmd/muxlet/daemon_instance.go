// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// instanceLock makes sure that one daemon acts for an instance, wherever its
// directories are: a copy of a state directory has the same instance, and two
// daemons would take each other's clients for orphans. It is a socket in Linux's
// abstract namespace, which has no file and ends with the process; the name is
// known only to who can read the state directory. Elsewhere there is none, and
// the locks of the directories must do.
type instanceLock struct{ listener net.Listener }

// claim takes the lock; the error names the holder. The socket of a daemon that
// was killed may be held a moment longer by a child that it was just forking.
func (l *instanceLock) claim(instance string) error {
	if runtime.GOOS != "linux" || l.listener != nil {
		return nil
	}
	name := "@muxlet-instance-" + instance
	for waited := time.Duration(0); ; waited += lockPoll {
		listener, err := net.Listen("unix", name)
		if err == nil {
			l.listener = listener
			return nil
		}
		holder := holderOn(name)
		_, live := process.Identify(holder)
		if live == observe.Running || waited >= lockWait {
			return fmt.Errorf("another muxlet daemon (pid %d) acts for the same instance %s, so that the state directory is a copy of its own: stop that daemon, or remove the file \"instance\" and the directory \"records\" of the copy", holder, instance)
		}
		time.Sleep(lockPoll)
	}
}

// holderOn is the pid of the process that listens on a socket; 0 when nobody
// does.
func holderOn(name string) (pid int) {
	conn, err := net.Dial("unix", name)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return 0
	}
	if raw.Control(func(fd uintptr) { pid = peer(int(fd)) }) != nil {
		return 0
	}
	return pid
}

func (l *instanceLock) release() {
	if l.listener != nil {
		_ = l.listener.Close()
	}
}
