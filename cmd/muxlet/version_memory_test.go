// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/muxlet/muxlet/spec/durable/durabletest"
)

func TestTheGoldenMemoryOfTheSettingsIsRead(t *testing.T) {
	durabletest.Golden[settingsMemory](t, "session-defaults", settingsMemoryVersion)
}
