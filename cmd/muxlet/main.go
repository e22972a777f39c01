// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Command muxlet keeps declared terminal sessions alive inside tmux and lets a
// person look at them. This package only wires: one file per verb, each turning
// words on a command line into calls of the daemon's API, and answers into
// text. It never decides what happens to a session.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set when a release is built.
var version = "devel"

func main() {
	// The launcher is in the path of every start: nothing else comes before it.
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		os.Exit(launchMain(os.Args[2:]))
	}
	// A client waits for its hooks.
	if len(os.Args) > 1 && os.Args[1] == "hook" && !asksForHelp(os.Args[2:]) {
		hookMain(os.Args[2:])
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, newGlobals(), os.Args[1:])
	stop()
	os.Exit(code)
}
