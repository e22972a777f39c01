// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"slices"
	"sync"

	"github.com/muxlet/muxlet/actuate"
)

// Act stands in the way of an action: it is called instead of it, and do
// performs it.
type Act func(ctx context.Context, a actuate.Action, do func() actuate.Outcome) actuate.Outcome

// acts are the actions of a world, and who stands in their way.
type acts struct {
	mu   sync.Mutex
	done []actuate.Action
	act  Act
}

// hooked is an actuator that writes down what it is asked for.
type hooked struct {
	inner actuate.Actuator
	acts  *acts
}

// Do is Actuator's.
func (h hooked) Do(ctx context.Context, a actuate.Action) actuate.Outcome {
	h.acts.mu.Lock()
	h.acts.done = append(h.acts.done, a)
	act := h.acts.act
	h.acts.mu.Unlock()
	do := func() actuate.Outcome { return h.inner.Do(ctx, a) }
	if act != nil {
		return act(ctx, a, do)
	}
	return do()
}

// OnAct puts act in the way of every action from now on; nil ends that.
func (e *Env) OnAct(act Act) {
	e.acts.mu.Lock()
	defer e.acts.mu.Unlock()
	e.acts.act = act
}

// Actions are those that the controllers of this world asked for, in order:
// those of the given kinds, or all of them.
func (e *Env) Actions(kinds ...actuate.Kind) []actuate.Action {
	e.acts.mu.Lock()
	defer e.acts.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.acts.done), func(a actuate.Action) bool {
		return len(kinds) > 0 && !slices.Contains(kinds, a.Kind)
	})
}
