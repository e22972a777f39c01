// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import "time"

// control says how the model behaves, in the words of hack/mockmodel and
// hack/fakeagent.
type control struct {
	Mode       string     `json:"mode"`
	Command    string     `json:"command,omitempty"`
	Escalate   bool       `json:"escalate,omitempty"`
	Count      int        `json:"count,omitempty"`
	Message    string     `json:"message,omitempty"`
	UsageLimit bool       `json:"usageLimit,omitempty"`
	ResetAt    *time.Time `json:"resetAt,omitempty"`
}

// model is whatever answers the agents of a world.
type model interface {
	// behaves as said from now on.
	behaves(control)
}
