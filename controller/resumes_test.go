// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/controller/envtest"
)

func TestAKilledAgentIsBackWithItsConversation(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	assert.Equal(t, "turns=1 first=one", a.turn("shop", "one"))
	id := a.begun("shop")
	a.Kill(a.client("shop"))
	a.WaitFor("shop", envtest.Incarnation(2))
	assert.Equal(t, "turns=2 first=one", a.turn("shop", "two"))
	s, _ := a.Session("shop")
	assert.Equal(t, id, s.Status.Conversation.ID)
	assert.Contains(t, lastArgv(a.spoken("shop", "start")), "--resume "+id)
}
