// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/user"
	"runtime"
	"strconv"
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
	user   scope.User
}

// Bus is controller.Scopes'.
func (s scopes) Bus() (address, why string) { return scope.Address(s.lookup, s.user) }

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
	who := scope.User{UID: g.uid}
	if u, err := user.LookupId(strconv.Itoa(g.uid)); err == nil {
		who.Name = u.Username
	}
	return scopes{tree, watcher, g.lookupEnv, who}, func() { _ = watcher.Close() }
}
