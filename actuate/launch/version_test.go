// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"testing"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable/durabletest"
)

func TestTheGoldenReceiptsAreRead(t *testing.T) {
	durabletest.Golden[observe.Receipt](t, "receipt", ReceiptVersion)
}
