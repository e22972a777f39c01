// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// hold locks the file as Codex does, and waits until the input ends.
func hold(name string) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, "held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = f.Close()
}
