// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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
	if !s.system {
		instance, err := instanceOf(s.settings.StateDir)
		if err != nil || instance == "" {
			return err
		}
		if s.dryRun {
			return s.say("Would end the clients of instance %s", instance)
		}
		if err := s.endOwnServer(ctx, instance); err != nil {
			return err
		}
		return s.endClients(ctx, os.Geteuid(), instance, "systemctl", "--user")
	}
	for _, name := range s.users {
		if err := s.endRestOf(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// endRestOf is endRest for a user of the system's units: the unit of the tmux server holds
// none of the clients that have scopes of her own manager.
func (s *setup) endRestOf(ctx context.Context, name string) error {
	u, err := s.lookupUser(name)
	if err != nil {
		return fmt.Errorf("user %s is not known here: %w", name, err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("user %s has no uid: %w", name, err)
	}
	instance, err := instanceOf(filepath.Join(u.HomeDir, ".local/state/muxlet"))
	if err != nil || instance == "" {
		return err
	}
	if s.dryRun {
		return s.say("Would end the clients of instance %s of %s", instance, name)
	}
	var manager []string
	// Who does not linger has no scopes, and asking her manager would be a login.
	if s.lingers(name) {
		manager = []string{"systemctl", "--user", "--machine=" + name + "@.host"}
	}
	return s.endClients(ctx, uid, instance, manager...)
}

// instanceOf is the instance whose state is in a directory; empty when none is.
func instanceOf(stateDir string) (string, error) {
	path := filepath.Join(stateDir, "instance")
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return "", nil
	}
	var instance string
	err := durable.Read(path, instanceVersion, &instance)
	if err == nil {
		err = uuid.Validate(instance)
	}
	if err != nil {
		return "", fmt.Errorf("find out which sessions are of %s: %w", stateDir, err)
	}
	return instance, nil
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

// endClients ends what is in the scopes of the user's manager, and each process of the user that
// carries the mark of a client of the instance: SIGTERM first, SIGKILL for those that stay.
func (s *setup) endClients(ctx context.Context, uid int, instance string, manager ...string) error {
	if len(manager) > 0 {
		// Nothing is wrong when there is no scope.
		_, _ = runProgram(ctx, s.callEnv, append(manager, "stop", "muxlet-"+instance+"-*.scope")...)
	}
	told := map[observe.Process]bool{}
	for waited := time.Duration(0); ; waited += s.pollPeriod {
		marked, err := process.ScanOf(uid, instance)
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
