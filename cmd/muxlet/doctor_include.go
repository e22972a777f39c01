// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// restoring are the plugins of tmux that start again what ran before. muxlet runs a
// person's file on a server that is thrown away: what they restore is started there, for
// a moment, beside the sessions that have it already.
var restoring = regexp.MustCompile(`tmux-resurrect|tmux-continuum|@continuum-restore\s+['"]?on|@resurrect-`)

// judgeInclude says which lines of a person's tmux configuration restore sessions.
func judgeInclude(file, text string) []finding {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || !restoring.MatchString(line) {
			continue
		}
		return []finding{{
			Level: levelWarning, Area: areaTmux,
			Message: fmt.Sprintf("%s:%d: %q is about a plugin that restores sessions; muxlet brings back its own, and what the plugin starts runs beside them for a moment.", file, number, restoring.FindString(line)),
			Fix:     "Put your options and keys into a file of their own, name that by tmux.include, and source it from your tmux.conf.",
		}}
	}
	return []finding{{Level: levelOK, Area: areaTmux, Message: fmt.Sprintf("tmux.include is %s.", file)}}
}

func (p *patient) lookAtInclude() {
	file := p.settings.Tmux.Include
	if file == "" {
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		p.found(levelWarning, areaTmux, "write it, or name another one in the settings", "tmux.include %s cannot be read: %v", file, cause(err))
		return
	}
	p.findings = append(p.findings, judgeInclude(file, string(text))...)
}
