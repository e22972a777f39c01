// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package systemd asks systemd to start the unit that owns the tmux server. It never
// stops, kills or changes a unit, never waits for a job, and never asks for a password.
package systemd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/spec"
)

const (
	// timeout of one call: a manager that is busy answers late.
	timeout = 5 * time.Second
	// drainTime is how long it is waited for the last words of a call that was killed.
	drainTime = 200 * time.Millisecond
)

// namePattern keeps an option of systemctl from being taken for a unit.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9:_.@\\][A-Za-z0-9:_.@\\-]*\.service$`)

// Actuator performs actuate.ActionStartUnit.
type Actuator struct {
	// System asks the manager of the system, and not the user's own.
	System bool
	// Environ is the environment of systemctl, which finds the user's manager by it.
	Environ []string
}

var _ actuate.Actuator = Actuator{}

// Do performs a. Done says that the manager has taken the job, and no more.
func (s Actuator) Do(ctx context.Context, a actuate.Action) actuate.Outcome {
	if a.Kind != actuate.ActionStartUnit {
		return failed(fmt.Sprintf("Systemd does not perform actions of kind %q.", a.Kind))
	}
	if !namePattern.MatchString(a.Unit) {
		return failed(fmt.Sprintf("%q is no name of a service.", a.Unit))
	}
	if err := s.start(ctx, a.Unit); err != nil {
		return failed(fmt.Sprintf("systemd did not start %s (%v); start it with: %s", a.Unit, err, s.Command(a.Unit)))
	}
	return actuate.Outcome{Result: actuate.ResultDone}
}

// Command by which a person starts the unit.
func (s Actuator) Command(unit string) string {
	if s.System {
		return "systemctl start " + unit
	}
	return "systemctl --user start " + unit
}

func (s Actuator) start(ctx context.Context, unit string) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	words := []string{"--no-ask-password", "--no-block", "start", unit}
	if !s.System {
		words = append([]string{"--user"}, words...)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(bounded, "systemctl", words...)
	// systemctl would tell the daemon's manager how it ended, in the daemon's name.
	env := slices.DeleteFunc(slices.Clone(s.Environ), func(pair string) bool { return strings.HasPrefix(pair, "NOTIFY_SOCKET=") })
	cmd.Env, cmd.Dir, cmd.Stderr, cmd.WaitDelay = env, "/", &said, drainTime
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case bounded.Err() != nil:
		return fmt.Errorf("it did not answer in %s", timeout)
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("systemctl is not in PATH")
	case said.Len() > 0:
		return errors.New(firstLine(said.String()))
	}
	return err
}

// firstLine is what a program said first, as far as it fits into a sentence.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > 200 {
		line = string(runes[:200])
	}
	return strings.TrimRight(strings.ToValidUTF8(line, "?"), ".")
}

func failed(message string) actuate.Outcome {
	return actuate.Outcome{Result: actuate.ResultFailed, Reason: spec.ReasonTmuxServerFailed, Message: message}
}
