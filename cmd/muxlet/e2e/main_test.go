// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e drives the built binary as a person does: real YAML files, a real
// tmux, real programs, kill -9. Every test has a world of its own below /tmp and
// leaves no process behind. It never uses the configuration, the state or the
// tmux server of the account that runs it.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the muxlet under test.
var binary string

// built is the folder of the programs that the tests build for themselves.
var built string

// parallelTests is the number of tests that run at the same time: they wait most
// of the time.
var parallelTests = "4"

func TestMain(m *testing.M) {
	// The test binary is a client of the worlds as well.
	if received := os.Getenv(receiverVariable); received != "" {
		fmt.Fprintln(os.Stderr, receive(received))
		os.Exit(1)
	}
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if _, err := exec.LookPath("tmux"); err != nil {
		fmt.Fprintln(os.Stderr, "These tests need tmux:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "mxb")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built = dir
	if binary = os.Getenv("MUXLET_BIN"); binary == "" {
		binary = filepath.Join(dir, "muxlet")
		build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "github.com/muxlet/muxlet/cmd/muxlet")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building muxlet: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}
