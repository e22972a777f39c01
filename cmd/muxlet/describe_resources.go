// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/muxlet/muxlet/observe/cgroup"
	"github.com/muxlet/muxlet/spec"
)

// memoryUse is what a scope uses and may use, in bytes; limit is -1 without one. known is
// false where the system does not tell, or there is no scope.
type memoryUse struct {
	now, limit int64
	known      bool
}

// memoryOf reads the memory of a client's scope.
func (g *globals) memoryOf(s *spec.ScopeStatus) memoryUse {
	if s == nil {
		return memoryUse{}
	}
	now, limit, ok := cgroup.Find(g.uid).Memory(s.ControlGroup)
	return memoryUse{now, limit, ok}
}

// resources tells what the client may use and what it uses.
func (d *description) resources() {
	limits, scope := limitWords(&d.Spec.Resources.Limits), d.Status.Client.Scope
	if limits == "" && scope == nil {
		return
	}
	d.section("Resources")
	d.sub("Limits", "%s", cmp.Or(limits, "none"))
	if limits != "" && d.Spec.Resources.OnUnsupported == spec.UnsupportedIgnore {
		d.sub("Unsupported", "limits that cannot be put in force are left out")
	}
	switch {
	case scope != nil:
		d.sub("Scope", "%s", scope.Name)
	case d.Status.Client.Pid > 0:
		d.sub("Scope", "none: the client runs without its limits")
	}
	if !d.memory.known {
		return
	}
	line := mebi(d.memory.now)
	if d.memory.limit > 0 {
		line += fmt.Sprintf(" of %s (%d%%)", mebi(d.memory.limit), d.memory.now*100/d.memory.limit)
	}
	d.sub("Memory", "%s", line)
}

func mebi(bytes int64) string { return fmt.Sprintf("%dMi", bytes>>20) }

// limitWords are the limits as a person writes them; empty for none.
func limitWords(l *spec.ResourceLimits) string {
	var words []string
	if l.Memory != nil {
		words = append(words, "memory "+l.Memory.String())
	}
	if l.CPU != nil {
		words = append(words, "cpu "+l.CPU.String())
	}
	if l.Tasks != nil {
		words = append(words, fmt.Sprintf("tasks %d", *l.Tasks))
	}
	return strings.Join(words, ", ")
}
