// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"testing"

	"github.com/muxlet/muxlet/spec/durable/durabletest"
)

func TestTheGoldenScreensAreRead(t *testing.T) {
	durabletest.Golden[Saved](t, "screen", Version)
}
