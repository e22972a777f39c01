// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable/durabletest"
)

func TestTheGoldenReportsAreRead(t *testing.T) {
	durabletest.Golden[observe.Report](t, "report", version)
}
