// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachCallIsToldWithItsKindAndItsResult(t *testing.T) {
	type call struct{ kind, result string }
	var calls []call
	conn := &Conn{Socket: t.TempDir() + "/none", Command: "/nowhere/tmux", Called: func(kind, result string, took time.Duration) {
		assert.Positive(t, took)
		calls = append(calls, call{kind, result})
	}}
	require.Error(t, conn.Run(t.Context(), nil, "if-shell", "-F", "1", "list-panes").Err)
	conn.List(t.Context(), time.Now)
	_, err := conn.Capture(t.Context(), "%1", 3)
	require.Error(t, err)
	conn.Start(t.Context(), "/none", "start-server")
	conn.Run(t.Context(), nil, "kill-server")
	assert.Equal(t, []call{
		{CallAct, ResultNoProgram}, {CallList, ResultNoProgram}, {CallCapture, ResultNoProgram}, {CallStart, ResultNoProgram}, {CallOther, ResultNoProgram},
	}, calls)
}

func TestResultsOfCallsHaveAWordEach(t *testing.T) {
	for want, err := range map[string]error{
		ResultAnswered: nil, ResultTimeout: fmt.Errorf("x: %w", ErrTimeout), ResultNoProgram: fmt.Errorf("x: %w", ErrNoProgram),
		ResultCancelled: fmt.Errorf("x: %w", context.Canceled), ResultFailed: ErrTooLong,
	} {
		assert.Equal(t, want, resultOf(err))
	}
}
