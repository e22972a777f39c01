// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/muxlet/muxlet/controller/envtest"
)

func TestMain(m *testing.M) { envtest.Main(m) }
