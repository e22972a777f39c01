// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/muxlet/muxlet/controller/notify"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable/durabletest"
)

func TestTheGoldenFilesOfTheStateAreRead(t *testing.T) {
	durabletest.Golden[string](t, "instance", instanceVersion)
	durabletest.Golden[observe.Server](t, "server", serverVersion)
	durabletest.Golden[[]asking](t, "attention", attentionVersion)
	durabletest.Golden[[]notify.Mark](t, "notified", toldVersion)
}
