// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// What must be left for a start. A pane needs one pseudo-terminal and one
// descriptor of the tmux server; people who attach, and the calls of muxlet, need
// some of both. The daemon needs a few for each call of tmux, several at a time.
const (
	spareTerminals   = 16
	spareServerFiles = 32
	spareOwnFiles    = 64
)

// waitForLimits: a server that runs out of descriptors or terminals fails in ways
// that look like a fault of the client, and people cannot attach any more. So no
// start is made shortly before; what runs is left alone.
func (p *pass) waitForLimits() bool {
	l, server := p.Limits, p.Seen.Server.Process.PID
	switch {
	case scarce(l.Terminals, spareTerminals):
		return p.say(spec.ReasonTooManyTerminals, fmt.Sprintf(
			"%d of %d pseudo-terminals of the system are in use: end what uses them, or raise kernel.pty.max (sysctl -w kernel.pty.max=%d); starts go on by themselves",
			l.Terminals.Used, l.Terminals.Limit, 2*l.Terminals.Limit), pollLimits)
	case scarce(l.ServerFiles, spareServerFiles):
		return p.say(spec.ReasonTooManyOpenFiles, fmt.Sprintf(
			"the tmux server (pid %d) has %d of its %d file descriptors in use: %s; starts go on by themselves",
			server, l.ServerFiles.Used, l.ServerFiles.Limit, raiseServer(server, l)), pollLimits)
	case scarce(l.OwnFiles, spareOwnFiles):
		return p.say(spec.ReasonTooManyOpenFiles, fmt.Sprintf(
			"the daemon has %d of its %d file descriptors in use: raise the limit (LimitNOFILE= of its unit, or ulimit -Hn) and start the daemon again; no session ends by that",
			l.OwnFiles.Used, l.OwnFiles.Limit), pollLimits)
	}
	return false
}

func scarce(u observe.Use, spare int) bool {
	left, ok := u.Left()
	return ok && left <= spare
}

// raiseServer says how a running server gets more descriptors.
func raiseServer(pid int, l observe.Limits) string {
	if l.ServerHardLimit > l.ServerFiles.Limit {
		return fmt.Sprintf("raise its limit (prlimit --pid %d --nofile=%d:%d)", pid, l.ServerHardLimit, l.ServerHardLimit)
	}
	more := 2 * l.ServerFiles.Limit
	return fmt.Sprintf("raise its limit (as root: prlimit --pid %d --nofile=%d:%d; for later ones: LimitNOFILE=%d in the unit)", pid, more, more, more)
}
