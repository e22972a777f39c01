// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type configured struct {
	*fakeBackend
	config RunningConfig
}

func (c configured) Config() RunningConfig { return c.config }

func TestADaemonTellsTheSettingsThatItRunsWith(t *testing.T) {
	want := RunningConfig{
		File:     "/c.yaml",
		Settings: []RunningSetting{{Name: "stateDir", Value: "/s", Origin: "flag"}},
		Problems: []string{"/c.yaml:3:1: x"},
	}
	c := NewClient(serve(t, Handler(configured{newFake(), want})))
	defer c.Close()
	got, err := c.Config(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, got)

	silent := NewClient(serve(t, Handler(newFake())))
	defer silent.Close()
	_, err = silent.Config(t.Context())
	assert.Equal(t, ReasonNotFound, ReasonOf(err))
}
