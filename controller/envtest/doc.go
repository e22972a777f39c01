// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package envtest starts the real controller on a real private tmux server, for
// tests: real files, real processes, real launchers, and clients whose behaviour
// is scripted. Everything lives below one temporary directory, and nothing that
// was started outlives its test. It simulates nothing and decides nothing; what
// it tells of a client is taken from the client's own log, never from the code
// that is being tested.
package envtest

import (
	"flag"
	"os"
	"testing"

	"github.com/muxlet/muxlet/actuate"
)

// The first argument makes the test binary another program.
const (
	roleLaunch = "launch"
	roleClient = "fake-client"
	roleChild  = "fake-child"
	roleTwin   = "fake-twin"
	roleHook   = "hook"
)

// Main is what TestMain of a package calls that uses this one: the test binary is
// the launcher and the fake client as well. It does not return.
func Main(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case roleLaunch:
			os.Exit(launchMain(os.Args[2:]))
		case roleClient:
			os.Exit(clientMain(os.Args[2:]))
		case roleChild:
			os.Exit(childMain(os.Args[2:]))
		case roleTwin:
			os.Exit(twinMain(os.Args[2:]))
		case roleHook:
			os.Exit(hookMain(os.Args[2:]))
		}
	}
	waitTogether()
	os.Exit(m.Run())
}

// waitTogether lets more tests run at once than there are processors, unless the
// command line says how many: they wait far more than they compute.
func waitTogether() {
	const flagName, together = "test.parallel", "6"
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == flagName })
	if !given {
		_ = flag.Set(flagName, together)
	}
}

var _ actuate.Actuator = hooked{}
