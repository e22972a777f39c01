// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "github.com/muxlet/muxlet/observe"

// Limits tells nothing: this system has no figures that are cheap to ask for.
func Limits(observe.Process) observe.Limits { return observe.Limits{} }

// Files tells nothing, as Limits.
func Files(int) observe.Use { return observe.Use{} }
