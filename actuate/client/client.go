// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package client ends clients by signals, puts prompts into their own queues by the
// command that their class names, and wires their hooks to muxlet by files of muxlet's
// own. It never signals a process that is not proven to be the one that was meant,
// never starts a client, and never changes a file of a person's.
package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/process"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Actuator performs ActionSignal and ActionQueue.
type Actuator struct{}

var _ actuate.Actuator = Actuator{}

// Do sends the action's signal to each of its processes that still is itself; a
// process that has ended needs none. Every process is tried, whatever became of
// the ones before it. ActionQueue is about the action's turn: see queue.
func (Actuator) Do(ctx context.Context, a actuate.Action) actuate.Outcome {
	if a.Kind == actuate.ActionQueue {
		return queue(ctx, a.Turn)
	}
	sig, known := numbers[a.Signal]
	if a.Kind != actuate.ActionSignal || !known {
		return failed(spec.ReasonUnknown, fmt.Sprintf("Clients get no action of kind %q with signal %q.", a.Kind, a.Signal))
	}
	var missed []string
	for _, p := range a.Processes {
		if err := signal(p, sig); err != nil {
			missed = append(missed, err.Error())
		}
	}
	if len(missed) > 0 {
		return failed(spec.ReasonProcessUnknown, fmt.Sprintf("%s could not be sent (%s); it is tried again.", a.Signal, strings.Join(missed, "; ")))
	}
	return actuate.Outcome{Result: actuate.ResultDone}
}

func signal(p observe.Process, sig syscall.Signal) error {
	err := process.Signal(p.PID, sig, process.Itself(p))
	if errors.Is(err, process.ErrGone) {
		return nil
	}
	return err
}

// numbers are the signals that muxlet sends.
var numbers = map[actuate.Signal]syscall.Signal{
	actuate.SignalTerm:      syscall.SIGTERM,
	actuate.SignalKill:      syscall.SIGKILL,
	actuate.SignalInterrupt: syscall.SIGINT,
	actuate.SignalHangup:    syscall.SIGHUP,
	actuate.SignalQuit:      syscall.SIGQUIT,
}

func failed(reason, message string) actuate.Outcome {
	return actuate.Outcome{Result: actuate.ResultFailed, Reason: reason, Message: message}
}
