// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

// Command boot boots a box with systemd, on Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "Error: a box with systemd needs Linux.")
	os.Exit(1)
}
