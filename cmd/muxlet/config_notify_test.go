// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// notifyingDaemon notifies its person as a try.
type notifyingDaemon struct {
	*fakeDaemon
	out   actuate.NotificationOutcome
	err   error
	event spec.NotificationEvent
}

func (d *notifyingDaemon) TestNotification(_ context.Context, event spec.NotificationEvent) (actuate.NotificationOutcome, error) {
	d.event = event
	return d.out, d.err
}

func TestATriedNotificationTellsWhatCameOfIt(t *testing.T) {
	const second = time.Second
	failed := errors.New("the command tell ended with exit status 3: no bus")
	for name, c := range map[string]struct {
		out    actuate.NotificationOutcome
		err    error
		code   int
		stdout string
		stderr string
	}{
		"the command has worked":    {out: actuate.NotificationOutcome{Took: 1200 * time.Microsecond}, stdout: "The command exited with 0 after 1ms.\n"},
		"and the terminals too":     {out: actuate.NotificationOutcome{Took: second, Terminals: 2}, stdout: "The command exited with 0 after 1s.\nTerminals that were told: 2.\n"},
		"the command has failed":    {out: actuate.NotificationOutcome{Took: second, CommandErr: failed}, code: exitError, stderr: "Error: the command tell ended with exit status 3: no bus\n"},
		"the terminals alone":       {out: actuate.NotificationOutcome{Terminals: 1}, stdout: "Terminals that were told: 1.\n"},
		"the terminals have failed": {out: actuate.NotificationOutcome{TerminalErr: errors.New("the terminal /dev/pts/1 was not told: it does not read")}, code: exitError, stderr: "Error: the terminal /dev/pts/1 was not told: it does not read\n"},
		"nobody is there":           {code: exitError, stderr: "Error: nobody was told, since no terminal is attached to muxlet's tmux server: attach one (muxlet attach NAME) and try again\n"},
		"nothing is set":            {err: server.NewError(server.ReasonInvalid, "", "nobody is notified: set it"), code: exitError, stderr: "Error: nobody is notified: set it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			daemon := &notifyingDaemon{fakeDaemon: newFakeDaemon(), out: c.out, err: c.err}
			cli := newCLI(t, nil)
			cli.serve(daemon)
			assert.Equal(t, c.code, cli.run("config", "test-notification", "--event", "Stalled"))
			assert.Equal(t, c.stdout, cli.out)
			assert.Equal(t, c.stderr, cli.errOut)
			assert.Equal(t, spec.NotifyStalled, daemon.event)
		})
	}
}

func TestATriedNotificationIsOfAKnownEvent(t *testing.T) {
	daemon := &notifyingDaemon{fakeDaemon: newFakeDaemon(), out: actuate.NotificationOutcome{Terminals: 1}}
	cli := newCLI(t, nil)
	cli.serve(daemon)
	assert.Equal(t, exitUsage, cli.run("config", "test-notification", "--event", "Idle"))
	assert.Contains(t, cli.errOut, "must be one of InputRequired, Stalled, TurnCompleted")
	assert.Empty(t, daemon.event)
	assert.Equal(t, exitOK, cli.run("config", "test-notification"))
	assert.Equal(t, spec.NotifyInputRequired, daemon.event)

	old := newCLI(t, newFakeDaemon())
	assert.Equal(t, exitNotFound, old.run("config", "test-notification"))
	assert.Contains(t, old.errOut, "this daemon notifies nobody")
}
