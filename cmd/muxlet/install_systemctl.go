// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// systemctl speaks to one manager of systemd.
type systemctl struct {
	// system is the system's manager, and not the user's own.
	system  bool
	callEnv []string
}

// words are those of a command line, for a person too.
func (m systemctl) words(words ...string) []string {
	if m.system {
		return append([]string{"systemctl"}, words...)
	}
	return append([]string{"systemctl", "--user"}, words...)
}

// run runs systemctl. The error has the first line of what it said.
func (m systemctl) run(ctx context.Context, words ...string) (string, error) {
	return runProgram(ctx, m.callEnv, m.words(words...)...)
}

func runProgram(ctx context.Context, environ []string, argv ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, &out, &said
	err := cmd.Run()
	switch first, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n"); {
	case err == nil:
		return out.String(), nil
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not in PATH: %w", argv[0], exec.ErrNotFound)
	case first != "":
		return out.String(), fmt.Errorf("%s: %s", strings.Join(argv, " "), first)
	}
	return out.String(), fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
}

// unitState is what systemd says of a unit.
type unitState struct {
	active, enabled, result string
	loaded, reload          bool
	mainPID, restarts       int
}

// state asks for a unit in one call: what comes from two may never have been true at once.
func (m systemctl) state(ctx context.Context, unit string) (unitState, error) {
	out, err := m.run(ctx, "show", unit, "-p", "LoadState,ActiveState,UnitFileState,Result,NeedDaemonReload,MainPID,NRestarts")
	if err != nil {
		return unitState{}, err
	}
	values := assignments(out)
	s := unitState{
		active: values["ActiveState"], enabled: values["UnitFileState"], result: values["Result"],
		loaded: values["LoadState"] == "loaded", reload: values["NeedDaemonReload"] == "yes",
	}
	s.mainPID, _ = strconv.Atoi(values["MainPID"])
	s.restarts, _ = strconv.Atoi(values["NRestarts"])
	return s, nil
}

// environment of the manager, which its units get; empty when it does not tell.
func (m systemctl) environment(ctx context.Context) map[string]string {
	out, err := m.run(ctx, "show-environment")
	if err != nil {
		return nil
	}
	return assignments(out)
}

// assignments reads lines of NAME=value.
func assignments(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok {
			values[name] = value
		}
	}
	return values
}
