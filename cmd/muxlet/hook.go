// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/observe/client/report"
)

// hookMain tells the daemon what a client's hook says. A client shows what its
// hooks print to a person or to a model, and takes a failure for a veto: so it is
// silent and succeeds, whatever happens.
func hookMain(args []string) {
	// What ends the client, or its terminal, may reach its hooks: they have more to say
	// then than ever, and are soon done.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	var class string
	if len(args) > 0 {
		class = args[0]
	}
	_ = report.Hook{
		Class: class, Stdin: os.Stdin, Getenv: os.Getenv, PID: os.Getpid(), Now: time.Now(), Patience: report.DefaultPatience,
	}.Run()
}

func asksForHelp(args []string) bool {
	return len(args) > 0 && (args[0] == "-h" || args[0] == "--help")
}

func newHookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook CLASS",
		Short: "Report to the daemon what a client's hook says",
		Long: "Report to the daemon what a client's hook says. muxlet gives this command to the\n" +
			"clients that it starts; it reads the client's JSON on standard input and tells the\n" +
			"daemon the event, the conversation's id and its file, and no text of it. While the\n" +
			"daemon is away the report waits on disk. It prints nothing and always exits 0,\n" +
			"within 200 ms, and outside of a client of muxlet it does nothing.",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		Run:    func(_ *cobra.Command, args []string) { hookMain(args) },
	}
}
