// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"

	actuateprocess "github.com/muxlet/muxlet/actuate/process"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec/durable"
)

const (
	// endGrace is how long clients have until they are killed, endLimit until it is said
	// that they do not end.
	endGrace = 5 * time.Second
	endLimit = 15 * time.Second
	// instanceVersion of the file with the instance.
	instanceVersion = 1
)

// endRest ends what is left of the user's sessions once the unit of the tmux server is down:
// a server that was started before there was one, clients in scopes of their own, and those
// that did not end with their terminal. Each is proven to be of this instance.
func (s *setup) endRest(ctx context.Context) error {
	if s.system {
		return nil
	}
	var instance string
	err := durable.Read(filepath.Join(s.settings.StateDir, "instance"), instanceVersion, &instance)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = uuid.Validate(instance)
	}
	if err != nil {
		return fmt.Errorf("find out which sessions are of %s: %w", s.settings.StateDir, err)
	}
	if s.dryRun {
		return s.say("Would end the clients of instance %s", instance)
	}
	if err := s.endOwnServer(ctx, instance); err != nil {
		return err
	}
	// Nothing is wrong when there is none.
	_, _ = s.run(ctx, "stop", "muxlet-"+instance+"-*.scope")
	return s.endClients(ctx, instance)
}

// endOwnServer ends a tmux server that is no unit's.
func (s *setup) endOwnServer(ctx context.Context, instance string) error {
	socket := s.settings.Paths.TmuxSocket()
	servers, err := process.FindServers(socket)
	if err != nil || len(servers) == 0 {
		return err
	}
	conn := &tmux.Conn{Socket: socket, Command: s.settings.Tmux.Command, Env: s.baseEnvironment("/bin/sh"), TicksOf: ticksOf}
	answer := conn.List(ctx, time.Now)
	switch {
	case answer.Kind != observe.AnswerListed:
		return fmt.Errorf("the tmux server (pid %d) does not answer: end it with: kill %d", servers[0].PID, servers[0].PID)
	case answer.Listing.Server.Instance != instance:
		return s.say("The tmux server on %s is not of this muxlet, and is left.", socket)
	}
	if r := conn.Run(ctx, nil, "kill-server"); r.Err != nil {
		return fmt.Errorf("end the tmux server (pid %d): %w", servers[0].PID, r.Err)
	}
	return s.say("The tmux server (pid %d) and its sessions were ended", servers[0].PID)
}

// endClients ends each process that carries the mark of a client of the instance: SIGTERM
// first, SIGKILL for those that stay.
func (s *setup) endClients(ctx context.Context, instance string) error {
	told := map[observe.Process]bool{}
	for waited := time.Duration(0); ; waited += s.pollPeriod {
		marked, err := process.Scan(instance)
		switch {
		case err != nil:
			return fmt.Errorf("look for clients: %w", err)
		case len(marked) == 0:
			return nil
		case waited > endLimit:
			return fmt.Errorf("%s did not end, the first with pid %d: end it with: kill -9 %d", count(len(marked), "client"), marked[0].Process.PID, marked[0].Process.PID)
		}
		for _, m := range marked {
			sig := syscall.SIGTERM
			if waited > endGrace {
				sig = syscall.SIGKILL
			}
			if sig == syscall.SIGKILL || !told[m.Process] {
				_ = actuateprocess.Signal(m.Process.PID, sig, actuateprocess.Itself(m.Process))
			}
			told[m.Process] = true
		}
		wait(ctx, max(s.pollPeriod, time.Millisecond))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
