// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package export

import "errors"

// exchange of two directories in one step is not asked for here.
func exchange(string, string) error { return errors.ErrUnsupported }
