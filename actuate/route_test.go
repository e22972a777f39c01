// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

type leaf string

func (l leaf) Do(context.Context, Action) Outcome { return Outcome{Message: string(l)} }

func TestEachActionReachesTheLeafThatPerformsIt(t *testing.T) {
	route := Route{Tmux: leaf("tmux"), Client: leaf("client")}
	for kind, want := range map[Kind]string{
		ActionStartServer: "tmux", ActionRestoreSocket: "tmux", ActionReap: "tmux",
		ActionCreate: "tmux", ActionRespawn: "tmux", ActionRespawnKill: "tmux",
		ActionKillPane: "tmux", ActionSignal: "client",
		ActionKeys: "tmux", ActionPaste: "tmux", ActionClearBuffers: "tmux", ActionSubmit: "tmux", ActionQueue: "client",
	} {
		assert.Equal(t, want, route.Do(t.Context(), Action{Kind: kind}).Message, kind)
	}
}

func TestDoingNothingIsDoneAndAnUnheardOfActionFails(t *testing.T) {
	route := Route{Tmux: leaf("tmux"), Client: leaf("client")}
	assert.Equal(t, Outcome{Result: ResultDone}, route.Do(t.Context(), Action{}))
	unknown := route.Do(t.Context(), Action{Kind: "Paint"})
	assert.Equal(t, ResultFailed, unknown.Result)
	assert.Contains(t, unknown.Message, `"Paint"`)
}

func TestAFenceThatNobodyReadIsNotOpen(t *testing.T) {
	var fence Fence
	assert.NotEqual(t, FenceOpen, fence)
	assert.Equal(t, "Unknown", fence.String())
	assert.Equal(t, "Open", FenceOpen.String())
	assert.Equal(t, "Closed", FenceClosed.String())
	assert.Equal(t, "Fence(7)", Fence(7).String())
}
