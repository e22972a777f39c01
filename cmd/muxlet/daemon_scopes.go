// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"time"

	"github.com/go-logr/logr"

	"github.com/muxlet/muxlet/actuate/scope"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/observe/cgroup"
)

// scopes are the control groups of the clients.
type scopes struct {
	cgroup.Tree
	*cgroup.Watcher
	lookup func(string) (string, bool)
	uid    int
}

// Bus is controller.Scopes'.
func (s scopes) Bus() (address, why string) { return scope.Address(s.lookup, s.uid) }

// newScopes finds the control groups of this system; nil where it has none. What the
// kernel ends in them goes unnoticed where the system gives no notices.
func (g *globals) newScopes(log logr.Logger) (found controller.Scopes, closeAll func()) {
	if runtime.GOOS != "linux" {
		return nil, func() {}
	}
	tree := cgroup.Find(g.uid)
	watcher, err := cgroup.NewWatcher(tree, time.Now)
	if err != nil {
		log.Error(err, "Control groups are not watched, an end for want of memory is told as any other")
	}
	return scopes{tree, watcher, g.lookupEnv, g.uid}, func() { _ = watcher.Close() }
}
