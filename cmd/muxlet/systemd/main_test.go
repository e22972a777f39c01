// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemd && linux

// Package systemd tests muxlet as people run it for weeks: the built binary, installed by
// `muxlet install`, under a real systemd that is booted in a box (hack/sysdbox), with
// agents that are scripted. It needs root. The machine's own systemd, its users and
// their files are not touched.
package systemd

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/muxlet/muxlet/hack/sysdbox"
)

// The programs under test, and the scripted agents.
var binary, fakeAgent string

// parallelTests is the number of boxes at the same time: they wait most of the time.
const parallelTests = "3"

func TestMain(m *testing.M) {
	sysdbox.Main()
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mxs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fakeAgent = filepath.Join(dir, "fakeagent")
	build := map[string]string{fakeAgent: "hack/fakeagent"}
	if binary = os.Getenv("MUXLET_BIN"); binary == "" {
		binary = filepath.Join(dir, "muxlet")
		build[binary] = "cmd/muxlet"
	}
	for to, from := range build {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", to, "github.com/muxlet/muxlet/"+from)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building %s: %v\n%s", from, err, out)
			return 1
		}
	}
	return m.Run()
}
