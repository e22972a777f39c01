// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package envtest

import "errors"

const environmentBounds = 0

func closeInherited() {}

func rename(string) error { return errors.ErrUnsupported }

func overwrite(int, string) error { return errors.ErrUnsupported }
