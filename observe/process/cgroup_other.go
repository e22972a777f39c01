// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

// Cgroup is empty: there are no control groups.
func Cgroup(int) (string, error) { return "", nil }
