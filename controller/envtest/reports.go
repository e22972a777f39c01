// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/client/report"
)

func reportsSocket(runtimeDir string) string { return filepath.Join(runtimeDir, "reports.sock") }

// Spool is where reports wait that no controller has taken.
func (e *Env) Spool() string { return filepath.Join(e.State, "reports") }

// reports takes those of clients' hooks, as the daemon does.
type reports struct {
	*report.Listener
	spool string
}

func (e *Env) listen() (reports, error) {
	listener, err := report.Listen(reportsSocket(e.Runtime), e.Spool())
	return reports{listener, e.Spool()}, err
}

// Spooled is Reports'.
func (r reports) Spooled() ([]observe.Report, error) {
	waiting, err := report.ReadSpool(r.spool)
	found := make([]observe.Report, 0, len(waiting))
	for _, w := range waiting {
		found = append(found, w.Report)
	}
	return found, err
}

// Serve is Reports'.
func (r reports) Serve(ctx context.Context, take func(context.Context, observe.Report) error) error {
	return r.Listener.Serve(ctx, take)
}

// hookMain is the product's hook with more patience: CLASS.
func hookMain(args []string) int {
	patience := report.Patience{Payload: Patience, Answer: Patience, Whole: Patience}
	_ = report.Hook{Class: args[0], Stdin: os.Stdin, Getenv: os.Getenv, PID: os.Getpid(), Now: time.Now(), Patience: patience}.Run()
	return 0
}
