// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller/export"
	"github.com/muxlet/muxlet/spec/durable"
)

func newStateCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Export the state into one file, or import such a file",
		Long: "Export the state into one file, or import such a file. The state is what muxlet remembers of the\n" +
			"sessions: their conversations, turns, events and last screens. Manifests and settings are files of\n" +
			"your own; take them along too.",
		Example: "  muxlet state export backup.tar.gz\n  muxlet state import backup.tar.gz",
	}
	cmd.AddCommand(newStateExportCommand(g), newStateImportCommand(g))
	return cmd
}

func newStateExportCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "export [FILE|-]",
		Short: "Write the state into one file; the daemon may run",
		Long: "Write the state into one file (default muxlet-state-<time>.tar.gz here; - is standard output), which\n" +
			"only you can read: prompts and screens are in it. The daemon may run meanwhile: each file is taken\n" +
			"whole. A file that is there is replaced once the new one is complete.",
		Example: "  muxlet state export\n  muxlet state export backup.tar.gz\n  muxlet state export - | ssh elsewhere muxlet state import -",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := g.settings()
			if err != nil {
				return err
			}
			file := "muxlet-state-" + g.now().UTC().Format("20060102T150405Z") + ".tar.gz"
			if len(args) > 0 {
				file = args[0]
			}
			return g.exportState(cmd.Context(), settings, file)
		},
	}
}

func (g *globals) exportState(ctx context.Context, settings *config.Effective, file string) error {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	header := export.Header{Muxlet: version, CreatedAt: g.now().UTC().Round(0), Host: host, StateDir: settings.StateDir}
	pack := func(w io.Writer) (export.Summary, error) {
		summary, err := export.Pack(ctx, w, settings.StateDir, stateKinds(), header)
		if errors.Is(err, export.ErrNoState) || errors.Is(err, fs.ErrNotExist) {
			return summary, fmt.Errorf("there is no state in %s: name the directory with --state-dir", settings.StateDir)
		}
		return summary, err
	}
	if file == stdinArgument {
		if g.screen != nil && g.screen() {
			return errors.New("an export is nothing for a terminal: name a file, or let a program read it")
		}
		summary, err := pack(g.out)
		if err == nil {
			g.warnOfExport(summary)
		}
		return err
	}
	summary, err := writeExport(file, pack)
	if err != nil {
		return err
	}
	g.warnOfExport(summary)
	return g.say("exported %s to %s", contentsOf(summary), file)
}

// writeExport writes a file of mode 0600 that is complete or not there.
func writeExport(file string, pack func(io.Writer) (export.Summary, error)) (summary export.Summary, err error) {
	// A device or a pipe would be replaced: for root /dev/null of the whole machine.
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return summary, fmt.Errorf("export to %s: it is no regular file: name another one, or - for standard output", file)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), durable.TempPrefix+"export-*")
	if err != nil {
		return summary, fmt.Errorf("export to %s: %w: name a file in a directory that can be written", file, cause(err))
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	summary, err = pack(tmp)
	if err == nil {
		err = tmp.Sync()
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(file))
	}
	return summary, err
}

func (g *globals) warnOfExport(s export.Summary) {
	for _, path := range s.Damaged {
		g.complain("Warning: %s is damaged; it is taken along as it is.", path)
	}
}

// contentsOf says what is in an export.
func contentsOf(s export.Summary) string {
	var parts []string
	for _, kind := range stateKinds() {
		if kind.Name == "session" || kind.Name != "" && s.Count[kind.Name] > 0 {
			parts = append(parts, count(s.Count[kind.Name], kind.Name))
		}
	}
	size := resource.NewQuantity(s.Bytes, resource.BinarySI)
	if s.Bytes >= 1<<20 {
		size = resource.NewQuantity(s.Bytes>>20<<20, resource.BinarySI)
	}
	return fmt.Sprintf("%s (%s, %sB)", strings.Join(parts, ", "), count(s.Files, "file"), size)
}
