// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"slices"
	"strings"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/spec"
)

// paneVariables are what a client without a shell gets from its pane.
var paneVariables = []string{"TERM", "TMUX", "TMUX_PANE", "COLORTERM"}

// scrubbed are variables that speak of the process which started tmux or muxlet,
// and mislead or silence a client that believes them. A name with * at its end
// stands for all that begin with it.
var scrubbed = []string{
	"NOTIFY_SOCKET", "WATCHDOG_*", "INVOCATION_ID", "JOURNAL_STREAM", "LISTEN_*",
	"MUXLET_*", "CLAUDECODE", "CLAUDE_CODE_*",
}

// env is an environment: names in order, each once.
type env struct {
	names  []string
	values map[string]string
}

func (e *env) set(name, value string) {
	if _, known := e.values[name]; !known {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *env) lookup(name string) (string, bool) {
	value, set := e.values[name]
	return value, set
}

func (e *env) list() []string {
	out := make([]string, len(e.names))
	for i, name := range e.names {
		out[i] = name + "=" + e.values[name]
	}
	return out
}

// environment makes what the client sees: what the profile made of it, or for
// ShellNone the order's base and the pane's own variables; without what was
// inherited by mistake; then envFrom, then env.
func environment(order actuate.Order, environ []string) (*env, *fault) {
	e := &env{values: map[string]string{}}
	if order.ShellMode == spec.ShellNone {
		e.add(order.Base, func(string) bool { return true })
		e.add(environ, func(name string) bool { return slices.Contains(paneVariables, name) })
	} else {
		e.add(environ, func(string) bool { return true })
	}
	for _, source := range order.EnvFrom {
		if fault := e.addFile(source.FileRef); fault != nil {
			return nil, fault
		}
	}
	for _, v := range order.Env {
		if fault := e.addVariable(v); fault != nil {
			return nil, fault
		}
	}
	return e, nil
}

// add takes the NAME=value pairs whose name is wanted and not scrubbed.
func (e *env) add(pairs []string, wanted func(name string) bool) {
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if ok && name != "" && wanted(name) && !isScrubbed(name) {
			e.set(name, value)
		}
	}
}

func isScrubbed(name string) bool {
	return slices.ContainsFunc(scrubbed, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || (open && strings.HasPrefix(name, prefix))
	})
}

// addFile adds the variables of an envFrom file.
func (e *env) addFile(ref *spec.FileRef) *fault {
	path, content, fault := e.read(ref)
	if fault != nil || content == nil {
		return fault
	}
	pairs, line, why := parseEnvFile(string(content))
	if why != "" {
		return invalidLine(path, line, why)
	}
	for _, p := range pairs {
		e.set(p.name, p.value)
	}
	return nil
}

// addVariable adds one variable of env. A variable whose optional file does not
// exist is left as it is.
func (e *env) addVariable(v spec.EnvVar) *fault {
	if v.ValueFrom == nil {
		e.set(v.Name, v.Value)
		return nil
	}
	path, content, fault := e.read(v.ValueFrom.FileRef)
	if fault != nil || content == nil {
		return fault
	}
	value, ended := strings.CutSuffix(string(content), "\n")
	if ended {
		value = strings.TrimSuffix(value, "\r")
	}
	if why := unfit(v.Name, value); why != "" {
		return invalidFile(path, why)
	}
	e.set(v.Name, value)
	return nil
}
