// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec/manifest"
)

// level says what a finding means.
type level string

// The levels, from good to bad.
const (
	// levelOK is as it should be.
	levelOK level = "OK"
	// levelNote is worth knowing and harms nothing.
	levelNote level = "Note"
	// levelWarning harms something, or will.
	levelWarning level = "Warning"
	// levelError keeps sessions from running.
	levelError level = "Error"
)

// finding is what one look found.
type finding struct {
	Level level `json:"level"`
	// Area is what was looked at.
	Area    string `json:"area"`
	Message string `json:"message"`
	// Fix is what to do; empty for nothing.
	Fix string `json:"fix,omitempty"`
}

// The areas, in the order in which they are printed.
const (
	areaSettings = "settings"
	areaDaemon   = "daemon"
	areaSystemd  = "systemd"
	areaTmux     = "tmux"
	areaSockets  = "sockets and directories"
	areaPrograms = "shell and programs"
	areaLimits   = "limits"
	areaDisk     = "disk and clock"
	areaServers  = "leftovers"
)

// profilePatience is how long a shell may take to read its profile; a person waits as
// long for each new pane.
const profilePatience = 10 * time.Second

// patient is what the doctor looks at.
type patient struct {
	*globals
	settings *config.Effective
	// daemon is what the running one says; nil when none answers.
	daemon *server.DaemonStatus
	// tmuxServer is muxlet's own; zero when none is found.
	tmuxServer observe.Process
	reading    manifest.Reading
	findings   []finding
}

func newDoctorCommand(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps sessions from running, and say how to mend it",
		Long: "Looks at the settings, the daemon, its units of systemd, tmux and its known faults, sockets, permissions,\n" +
			"the PATH that the shell gives and whether each class's program is found there, limits, the disk, the clock, and\n" +
			"servers that were left behind. Changes nothing; needs no daemon.\n\n" +
			"Exit code 1: something keeps sessions from running. Warnings and notes alone are exit code 0.",
		Example: "  muxlet doctor\n  muxlet doctor -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != outputTable && output != outputJSON {
				return usagef("unknown format %q for -o: it must be json", output)
			}
			return (&patient{globals: g}).examine(cmd.Context(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "format: json")
	return cmd
}

// found adds a finding.
func (p *patient) found(l level, area, fix, format string, args ...any) {
	p.findings = append(p.findings, finding{Level: l, Area: area, Message: sentence(fmt.Sprintf(format, args...)), Fix: sentence(fix)})
}

func (p *patient) examine(ctx context.Context, output string) error {
	settings, err := p.globals.settings()
	switch {
	case err != nil:
		for _, problem := range config.Problems(err) {
			p.found(levelError, areaSettings, "correct the settings file; a daemon that runs goes on with its earlier settings", "%s", problem)
		}
		if settings, err = p.settingsWithoutFile(); err != nil {
			return p.tell(output)
		}
	case settings.File == "":
		p.found(levelOK, areaSettings, "", "there is no settings file: the defaults are in force")
	default:
		p.found(levelOK, areaSettings, "", "%s is valid", settings.File)
	}
	p.settings = settings
	reader := manifest.Reader{Defaults: settings.Sessions}
	p.reading = reader.Read(settings.Manifests)
	p.lookAtDaemon(ctx)
	p.lookAtSystemd(ctx)
	p.lookAtTmux(ctx)
	p.lookAtInclude()
	p.lookAtSockets()
	p.lookAtDirectories()
	p.lookAtSecrets()
	p.lookAtPrograms(ctx)
	p.lookAtLimits()
	p.lookAtDisk()
	p.lookAtClock()
	p.lookAtServers()
	return p.tell(output)
}

func (p *patient) settingsWithoutFile() (*config.Effective, error) {
	in, err := p.inputs()
	if err != nil {
		return nil, err
	}
	return config.LoadDespiteFile(in)
}

// remedyOf a problem that the daemon tells of.
func remedyOf(problem, include string) string {
	if include != "" && strings.Contains(problem, include) {
		return "mend that line; the daemon tries the file again when it has changed"
	}
	return "muxlet validate shows what is wrong in files"
}

// lookAtDaemon asks the daemon, and looks for muxlet's tmux server, with it or without.
func (p *patient) lookAtDaemon(ctx context.Context) {
	client := server.NewClient(p.settings.Paths.APISocket())
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		p.found(levelWarning, areaDaemon, "start it: "+p.service().starter(), "no daemon answers on %s: nothing brings a client back", p.settings.Paths.APISocket())
		if servers, err := process.FindServers(p.settings.Paths.TmuxSocket()); err == nil && len(servers) == 1 {
			p.tmuxServer = servers[0]
		}
		return
	}
	p.daemon = &status
	p.tmuxServer, _ = process.Identify(status.Tmux.ServerPID)
	if status.Version == version {
		p.found(levelOK, areaDaemon, "", "muxlet %s runs (pid %d)", status.Version, status.PID)
	} else {
		p.found(levelWarning, areaDaemon, "restart the daemon, the sessions keep their processes", "the daemon is muxlet %s, this program %s", status.Version, version)
	}
	for _, problem := range status.Problems {
		p.found(levelWarning, areaDaemon, remedyOf(problem, p.settings.Tmux.Include), "%s", problem)
	}
	for _, line := range heldLines(status.Held) {
		p.found(levelWarning, areaDaemon, "", "%s", line)
	}
	notes := unusedSettings(ctx, p.settings)
	for _, s := range p.settings.Settings() {
		// Its unit says who executes the tmux server.
		byUnit := s.Name == "tmux.server" || s.Name == "tmux.unit"
		if note, ok := notes[s.Name]; ok && !byUnit {
			p.found(levelWarning, areaSettings, "", "%s: %s", s.Name, note)
		}
	}
}

// tell prints what was found, and ends in an error when something keeps sessions down.
func (p *patient) tell(output string) error {
	number := map[level]int{}
	for _, f := range p.findings {
		number[f.Level]++
	}
	if output == outputJSON {
		data, err := json.MarshalIndent(map[string]any{"findings": p.findings}, "", "    ")
		if err != nil {
			return err
		}
		if err := p.say("%s", data); err != nil {
			return err
		}
	} else if err := p.print(); err != nil {
		return err
	}
	if number[levelError] > 0 {
		return &reportedError{exitError}
	}
	return nil
}

func (p *patient) print() error {
	var out strings.Builder
	for _, area := range []string{areaSettings, areaDaemon, areaSystemd, areaTmux, areaSockets, areaPrograms, areaLimits, areaDisk, areaServers} {
		first := true
		for _, f := range p.findings {
			if f.Area != area {
				continue
			}
			if first {
				fmt.Fprintln(&out, area)
				first = false
			}
			fmt.Fprintf(&out, "  %-9s%s\n", f.Level, f.Message)
			if f.Fix != "" {
				fmt.Fprintf(&out, "  %-9sWhat to do: %s\n", "", f.Fix)
			}
		}
	}
	number := map[level]int{}
	for _, f := range p.findings {
		number[f.Level]++
	}
	fmt.Fprintf(&out, "%s, %s, %s.", count(number[levelError], "error"), count(number[levelWarning], "warning"), count(number[levelNote], "note"))
	return p.say("%s", out.String())
}
