// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"fmt"

	"github.com/muxlet/muxlet/spec"
)

// Route is an Actuator that hands each action to the leaf that can perform it.
type Route struct {
	// Tmux performs everything that is asked of a tmux server.
	Tmux Actuator
	// Client performs ActionSignal and ActionQueue.
	Client Actuator
	// Systemd performs ActionStartUnit.
	Systemd Actuator
}

var _ Actuator = Route{}

// Do performs a; ActionNone is Done at once.
func (r Route) Do(ctx context.Context, a Action) Outcome {
	switch a.Kind {
	case ActionNone:
		return Outcome{Result: ResultDone}
	case ActionSignal, ActionQueue:
		return r.Client.Do(ctx, a)
	case ActionStartUnit:
		return r.Systemd.Do(ctx, a)
	case ActionStartServer, ActionConfigure, ActionRestoreSocket, ActionReap, ActionCreate,
		ActionRespawn, ActionRespawnKill, ActionKillPane, ActionRelease, ActionKeepServer, ActionClearBuffers, ActionShowWaiting,
		ActionKeys, ActionPaste, ActionSubmit:
		return r.Tmux.Do(ctx, a)
	}
	return Outcome{
		Result:  ResultFailed,
		Reason:  spec.ReasonUnknown,
		Message: fmt.Sprintf("Nothing performs actions of kind %q.", a.Kind),
	}
}
