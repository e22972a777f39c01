// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what DESIGN.md's budget speaks of, each figure beside its
// floors (what people use instead, or tmux alone) in the same run, and prints a
// Markdown table. Where it can, muxlet and the floors take turns, so that what else
// runs on the machine falls on all of them alike. It works in a directory of its own
// and touches no session of the person's. See hack/bench.sh.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// bench is one run of the whole.
type bench struct {
	// dir has all files of the run; client is the program of every session.
	dir, muxlet, tmux, client string
	quick                     bool
	// sizes are given by whoever wants others: sessions and rounds.
	sizes [][2]int
	table table
	// worlds counts the directories that were made.
	worlds int
}

// measurements in the order in which they are made, by name.
var measurements = []struct {
	name    string
	measure func(context.Context, *bench) error
}{
	{"programs", measurePrograms},
	{"api", measureAPI},
	{"bringup", measureBringUp},
	{"edit", measureEdit},
	{"restart", measureRestarts},
}

func run(ctx context.Context, out io.Writer) error {
	muxlet := flag.String("muxlet", "bin/muxlet", "the program to measure")
	quick := flag.Bool("quick", false, "small sizes and few rounds: shows that it runs, measures little")
	only := flag.String("only", "", "the measurements to make, between commas; empty for all")
	sizes := flag.String("sizes", "", "SESSIONS:ROUNDS,… of restart and bringup, without the minute at rest; empty for the usual ones")
	readme := flag.String("readme", "", "a Markdown file whose lines between the markers become the table")
	flag.Parse()
	b := &bench{quick: *quick}
	if err := errors.Join(b.setSizes(*sizes), b.prepare(*muxlet)); err != nil {
		return err
	}
	err := b.measure(ctx, *only)
	// A directory that a client still writes into costs room only.
	if err = errors.Join(err, os.RemoveAll(b.dir)); err != nil {
		return err
	}
	text := b.table.markdown(b.machine(ctx))
	if *readme != "" {
		err = rewrite(*readme, text)
	}
	_, printed := fmt.Fprint(out, "\n", text, b.table.missed())
	return errors.Join(err, printed)
}

func (b *bench) measure(ctx context.Context, only string) error {
	wanted := strings.Split(only, ",")
	for _, m := range measurements {
		if only != "" && !slices.Contains(wanted, m.name) {
			continue
		}
		began := time.Now()
		if err := m.measure(ctx, b); err != nil {
			return fmt.Errorf("measure %s: %w", m.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s took %s\n", m.name, time.Since(began).Round(time.Second))
	}
	return nil
}

// clientScript tells a pipe who runs as soon as it runs, and stays as a program that
// costs next to nothing.
const clientScript = "#!/bin/sh\necho \"$1 $$\" >\"$2\"\nexec sleep 1000000\n"

func (b *bench) prepare(muxlet string) (err error) {
	if b.muxlet, err = filepath.Abs(muxlet); err != nil {
		return err
	}
	for _, program := range []struct {
		name string
		path *string
	}{{b.muxlet, &b.muxlet}, {"tmux", &b.tmux}} {
		if *program.path, err = exec.LookPath(program.name); err != nil {
			return err
		}
	}
	if b.dir, err = os.MkdirTemp("", "mxb"); err != nil {
		return err
	}
	b.client = filepath.Join(b.dir, "client")
	return os.WriteFile(b.client, []byte(clientScript), 0o700) //nolint:gosec // it is a program
}

// pick is the size of a measurement: the first in a quick run.
func pick[T any](b *bench, quick, full T) T {
	if b.quick {
		return quick
	}
	return full
}

// sized is what is measured of a kind: sessions and rounds.
func (b *bench) sized(quick, full [][2]int) [][2]int {
	if len(b.sizes) > 0 {
		return b.sizes
	}
	return pick(b, quick, full)
}

func (b *bench) setSizes(given string) error {
	for size := range strings.SplitSeq(given, ",") {
		var pair [2]int
		if given == "" {
			continue
		}
		if _, err := fmt.Sscanf(size, "%d:%d", &pair[0], &pair[1]); err != nil {
			return fmt.Errorf("read -sizes %q: %w", size, err)
		}
		b.sizes = append(b.sizes, pair)
	}
	return nil
}

// sleep returns early, with its error, when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
