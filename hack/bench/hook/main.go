// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Command hook measures `muxlet hook` against `true`, both started by a shell as a
// client starts its hooks. The cases take turns, so that what else runs on the
// machine falls on all of them alike. See hack/bench/hook.sh.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/client/report"
	"github.com/muxlet/muxlet/observe/process"
)

const payload = `{"session_id":"0d8f4e5c-6b1c-4b6e-9a55-0b6c1f5f7a11","transcript_path":"/t/0d8f4e5c.jsonl","cwd":"/w","hook_event_name":"Stop","last_assistant_message":"done"}`

func main() {
	muxlet := flag.String("muxlet", "bin/muxlet", "the program to measure")
	rounds := flag.Int("rounds", 200, "how often each case is measured")
	flag.Parse()
	if err := measure(*muxlet, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bench is one case: a shell command in an environment.
type bench struct {
	name, command string
	env           []string
	took          []time.Duration
}

func measure(muxlet string, rounds int) (err error) {
	dir, err := os.MkdirTemp("", "mxbench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	present, away := filepath.Join(dir, "a", "reports.sock"), filepath.Join(dir, "b", "reports.sock")
	answering, err := report.Listen(present, filepath.Join(dir, "spool-a"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var handled atomic.Int32
	ended := make(chan error, 1)
	go func() {
		ended <- answering.Serve(ctx, func(context.Context, observe.Report) error { handled.Add(1); return nil })
	}()
	gone, err := report.Listen(away, filepath.Join(dir, "spool-b"))
	if err != nil {
		return err
	}
	if err := gone.Close(); err != nil {
		return err
	}
	hook := fmt.Sprintf("'%s' hook claude; exit $?", muxlet)
	cases := []*bench{
		{name: "true", command: "/bin/true; exit $?"},
		{name: "muxlet hook, outside of a client", command: hook},
		{name: "muxlet hook, answered", command: hook, env: variables(present)},
		{name: "muxlet hook, spooled", command: hook, env: variables(away)},
	}
	for range rounds {
		for _, c := range cases {
			if err := c.once(); err != nil {
				return err
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	return tell(cases, rounds, handled.Load(), filepath.Join(dir, "spool-b"))
}

// variables are those of a client whose hooks report to a socket.
func variables(socket string) []string {
	p, _ := process.Identify(os.Getpid())
	mark := observe.Mark{Instance: "i", UID: "u", Incarnation: 1, Attempt: "a", Process: p}
	return []string{observe.EnvReports + "=" + socket, observe.EnvClient + "=" + mark.String()}
}

func (b *bench) once() error {
	cmd := exec.Command("/bin/sh", "-c", b.command)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, b.env...)
	cmd.Stdin = strings.NewReader(payload)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	b.took = append(b.took, time.Since(began))
	if err != nil || len(out) > 0 {
		return fmt.Errorf("%s: %w: %s", b.name, err, out)
	}
	return nil
}

// tell prints a table, after it has checked that no report is missing.
func tell(cases []*bench, rounds int, handled int32, spool string) error {
	spooled, err := report.ReadSpool(spool)
	if err != nil {
		return err
	}
	base := percentile(cases[0].took, 50)
	for _, c := range cases {
		p50, p99 := percentile(c.took, 50), percentile(c.took, 99)
		if _, err := fmt.Fprintf(os.Stdout, "%-34s p50 %6.2f ms  p99 %6.2f ms  %5.1f x true\n", c.name, ms(p50), ms(p99), ms(p50)/ms(base)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(os.Stdout, "%d rounds, %d answered, %d spooled\n", rounds, handled, len(spooled))
	return err
}

func percentile(took []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[(len(sorted)-1)*p/100]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
