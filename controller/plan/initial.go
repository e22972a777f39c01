// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
)

// askInitially makes the first turn of a conversation that muxlet has begun, once its
// client can take one. A client that was started when there was none is asked nothing
// after an edit; and one that was not handed over before an earlier client has ended
// still waits for its turn.
func (p *pass) askInitially(c *record.Client) {
	if !c.InitialDue || p.rec.Spec == nil || p.rec.Spec.InitialPrompt == "" {
		return
	}
	c.InitialDue = false
	if slices.ContainsFunc(p.turns, func(t turn.Turn) bool { return t.Initial && t.Phase == turn.Pending }) {
		return
	}
	// A block of YAML ends with a newline, which is no part of a prompt.
	prompt, err := spec.CheckPrompt(p.rec.Spec.InitialPrompt)
	if err != nil {
		// Only a document that no longer would be accepted has such a one.
		return
	}
	p.plan.Initial = &InitialTurn{Request: "initial/" + c.Attempt, Prompt: prompt}
}
