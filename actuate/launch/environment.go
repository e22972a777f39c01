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
// stands for all that begin with it. Of Claude Code they are what 2.1.332 leaves to
// the programs that it runs: a person's own, such as CLAUDE_CODE_USE_BEDROCK, stay.
var scrubbed = []string{
	"NOTIFY_SOCKET", "WATCHDOG_*", "INVOCATION_ID", "JOURNAL_STREAM", "LISTEN_*", "MUXLET_*",
	"MANAGERPID", "SYSTEMD_EXEC_PID", "RUNTIME_DIRECTORY", "CREDENTIALS_DIRECTORY",
	"AI_AGENT", "CLAUDECODE", "CLAUDE_PID", "CLAUDE_EFFORT",
	"CLAUDE_CODE_CHILD_*", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_MESSAGING_*",
	"CLAUDE_CODE_SESSION_*", "CLAUDE_CODE_SSE_PORT",
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
// inherited by mistake or is not for its class; then what its class sets, then
// envFrom, then env. The directories are those of a class.
func environment(order actuate.Order, environ []string) (*env, directories, *fault) {
	e := inherited(order, environ)
	if order.Class == nil {
		return e, directories{}, e.addOwn(order)
	}
	// What the class sets may hang on the home and the config directory, and those on
	// what the session sets: then all of it is done once more.
	dirs := directoriesOf(order, e)
	for range 2 {
		e = inherited(order, environ)
		if fault := e.addClass(order, dirs); fault != nil {
			return nil, dirs, fault
		}
		if fault := e.addOwn(order); fault != nil {
			return nil, dirs, fault
		}
		before := dirs
		if dirs = directoriesOf(order, e); dirs == before {
			break
		}
	}
	return e, dirs, nil
}

// inherited is what the pane and the profile, or the order's base, have that the
// client is to have.
func inherited(order actuate.Order, environ []string) *env {
	e := &env{values: map[string]string{}}
	unwanted := scrubbed
	if order.Class != nil {
		unwanted = slices.Concat(scrubbed, order.Class.UnsetEnv)
	}
	every := func(string) bool { return true }
	if order.ShellMode == spec.ShellNone {
		e.add(order.Base, unwanted, every)
		e.add(environ, unwanted, func(name string) bool { return slices.Contains(paneVariables, name) })
		return e
	}
	e.add(environ, unwanted, every)
	return e
}

// add takes the NAME=value pairs whose name is wanted and matches no pattern of
// unwanted.
func (e *env) add(pairs, unwanted []string, wanted func(name string) bool) {
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if ok && name != "" && wanted(name) && !matchesAny(unwanted, name) {
			e.set(name, value)
		}
	}
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || (open && strings.HasPrefix(name, prefix))
	})
}

// addOwn adds what the session's own spec sets.
func (e *env) addOwn(order actuate.Order) *fault {
	for _, source := range order.EnvFrom {
		if fault := e.addFile(source.FileRef); fault != nil {
			return fault
		}
	}
	for _, v := range order.Env {
		if fault := e.addVariable(v); fault != nil {
			return fault
		}
	}
	return nil
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
