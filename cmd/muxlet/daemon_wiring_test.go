// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	actuatetmux "github.com/muxlet/muxlet/actuate/tmux"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/spec"
)

func TestAShellThatStandsInForAnotherIsToldInAnEvent(t *testing.T) {
	recorder, err := status.OpenRecorder(t.TempDir(), 10)
	require.NoError(t, err)
	defer func() { require.NoError(t, recorder.Close()) }()
	tellShell(recorder, actuatetmux.Shell{Path: "/bin/sh", Account: "/bin/tcsh"}, time.Now())
	events := recorder.List("")
	require.Len(t, events, 1)
	assert.Equal(t, spec.ReasonShellUnsupported, events[0].Reason)
	assert.Contains(t, events[0].Message, "/bin/tcsh")
	assert.Contains(t, events[0].Message, "/bin/sh")
}
