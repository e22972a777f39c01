// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "github.com/muxlet/muxlet/observe"

// Uses is ErrUseUnknown: this platform tells it through libproc alone, which needs cgo.
func Uses() ([]observe.ProcessUse, error) { return nil, ErrUseUnknown }

// ShareOfMemory is ErrUseUnknown, as Uses is.
func ShareOfMemory(int) (int64, error) { return 0, ErrUseUnknown }

// ResidentMemory is ErrUseUnknown, as Uses is.
func ResidentMemory(int) (int64, error) { return 0, ErrUseUnknown }
