// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Scope is the control group of one client, a transient unit of the user's systemd
// manager.
type Scope struct {
	// Name of the unit; see ScopeName.
	Name string `json:"name"`
	// ControlGroup is its path below the root of the control groups, as /proc/PID/cgroup
	// has it; empty where that is not known.
	ControlGroup string `json:"controlGroup,omitempty"`
}

// scopePrefix and scopeSuffix are those of every scope of muxlet.
const (
	scopePrefix = "muxlet-"
	scopeSuffix = ".scope"
)

// ScopeName is the name of the scope of one incarnation of a session. Nothing in it is
// cut off: it names this instance, this session and this incarnation, and no other.
func ScopeName(instance, uid string, incarnation int64) string {
	return fmt.Sprintf("%s%s-%s-%d%s", scopePrefix, instance, uid, incarnation, scopeSuffix)
}

// ParseScopeName gives the session and the incarnation of a scope of the instance. ok is
// false for every other name.
func ParseScopeName(instance, name string) (uid string, incarnation int64, ok bool) {
	rest, ours := strings.CutPrefix(name, scopePrefix+instance+"-")
	rest, isScope := strings.CutSuffix(rest, scopeSuffix)
	cut := strings.LastIndexByte(rest, '-')
	if instance == "" || !ours || !isScope || cut <= 0 {
		return "", 0, false
	}
	uid = rest[:cut]
	incarnation, err := strconv.ParseInt(rest[cut+1:], 10, 64)
	if err != nil || ScopeName(instance, uid, incarnation) != name {
		return "", 0, false
	}
	return uid, incarnation, true
}

// OOM is what the kernel has ended in a scope for want of memory.
type OOM struct {
	// Kills are the processes that were ended since the scope was made, as the kernel counts
	// them: a daemon that comes later knows by it of which was told.
	Kills int
	// At is when the last of them was noticed; zero when none was since the scope is watched.
	At time.Time
}
