// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/launch"
	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe/cgroup"
	"github.com/muxlet/muxlet/observe/client"
)

// launchMain runs inside a pane and becomes the client. It returns only when it
// could not.
func launchMain(args []string) int {
	o := launch.Options{Environ: os.Environ(), Evidence: new(client.Eyes).Evidence, ControlGroup: cgroup.Own, Now: time.Now}
	flags := flag.NewFlagSet("launch", flag.ContinueOnError)
	flags.StringVar(&o.StateDir, "state", "", "state directory")
	flags.StringVar(&o.RuntimeDir, "runtime", "", "runtime directory")
	flags.StringVar(&o.UID, "uid", "", "uid of the session")
	flags.StringVar(&o.Attempt, "attempt", "", "the attempt to run")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	o.Reports = config.Paths{StateDir: o.StateDir, RuntimeDir: o.RuntimeDir, UID: os.Getuid()}.ReportsSocket()
	o.ReadOrder = orderFrom(record.NewStore(o.StateDir), o.Attempt)
	if err := launch.Run(o); err != nil {
		fmt.Fprintln(os.Stderr, "muxlet: "+err.Error())
	}
	return exitError
}

// orderFrom reads the pending attempt's order from the session's record. A
// record that cannot be read says nothing about the fence.
func orderFrom(store *record.Store, attempt string) func(uid string) (actuate.Order, actuate.Fence, error) {
	return func(uid string) (actuate.Order, actuate.Fence, error) {
		r, err := store.Read(uid)
		switch {
		case err != nil:
			return actuate.Order{}, actuate.FenceUnknown, err
		case r.Attempt == nil || r.Attempt.ID != attempt || r.Attempt.Fence != record.FenceOpen:
			return actuate.Order{}, actuate.FenceClosed, nil
		}
		return r.Attempt.Order, actuate.FenceOpen, nil
	}
}
