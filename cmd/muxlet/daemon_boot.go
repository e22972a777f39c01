// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/muxlet/muxlet/observe/boot"

// compareBoot compares the stored boot id with the system's, for one line in the
// log. The current one is empty when it could not be read.
func compareBoot(storedPath, systemPath string) (change, current string) {
	stored, storedErr := boot.Read(storedPath)
	current, currentErr := boot.Read(systemPath)
	return boot.Compare(stored, current, storedErr, currentErr).String(), current
}
