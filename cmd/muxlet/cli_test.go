// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/server"
)

var update = flag.Bool("update", false, "write the golden files")

// cli runs command lines against a fake daemon on a real socket.
type cli struct {
	t       *testing.T
	dir     string
	env     map[string]string
	prepare func(*globals)

	stdin       string
	out, errOut string
}

// newCLI has the daemon f, or none when it is nil.
func newCLI(t *testing.T, f *fakeDaemon) *cli {
	t.Helper()
	dir, err := os.MkdirTemp("", "mx")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &cli{t: t, dir: dir, prepare: func(*globals) {}, env: map[string]string{
		"MUXLET_RUNTIME_DIR": filepath.Join(dir, "run"),
		"MUXLET_STATE_DIR":   filepath.Join(dir, "state"),
		"MUXLET_MANIFESTS":   filepath.Join(dir, "sessions"),
		"XDG_CONFIG_HOME":    filepath.Join(dir, "config"),
	}}
	if f != nil {
		c.serve(f)
	}
	return c
}

func (c *cli) serve(f server.Backend) {
	l, err := server.Listen(filepath.Join(c.dir, "run", "muxlet.sock"))
	require.NoError(c.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, server.Handler(f)) }()
	c.t.Cleanup(func() {
		stop()
		require.NoError(c.t, <-ended)
	})
}

// run executes one command line and returns its exit code.
func (c *cli) run(args ...string) int {
	c.t.Helper()
	return c.runIn(c.t.Context(), args...)
}

func (c *cli) runIn(ctx context.Context, args ...string) int {
	c.t.Helper()
	var out, errOut bytes.Buffer
	g := &globals{
		in: strings.NewReader(c.stdin), out: &out, errOut: &errOut,
		now:         func() time.Time { return noon },
		lookupEnv:   func(name string) (string, bool) { value, ok := c.env[name]; return value, ok },
		environ:     func() []string { return []string{"TERM=xterm", "PATH=" + os.Getenv("PATH")} },
		home:        "/home/me",
		uid:         os.Getuid(),
		interactive: func() bool { return false },
		exec:        func(string, []string, []string) error { return nil },
		pollPeriod:  time.Millisecond,
		patience:    5 * time.Millisecond,
		notice:      time.Minute,
		blindness:   10 * time.Second,
		waitLimit:   20 * time.Second,
		handOver:    20 * time.Second,
	}
	c.prepare(g)
	code := run(ctx, g, args)
	c.out, c.errOut = c.plain(out.String()), c.plain(errOut.String())
	return code
}

// plain has a fixed word for the directory of the test.
func (c *cli) plain(text string) string { return strings.ReplaceAll(text, c.dir, "/tmp/test") }

// golden compares what was printed with a file, which shows a person the whole
// screen.
func (c *cli) golden(name string) {
	c.t.Helper()
	screen := c.out
	if c.errOut != "" {
		screen += "--- stderr\n" + c.errOut
	}
	assert.NotContains(c.t, screen, "<nil>")
	assert.NotContains(c.t, screen, "<invalid>")
	assert.NotContains(c.t, screen, "0x")
	assert.NotContains(c.t, screen, "\x1b", "a client's escape sequences do not reach the terminal")
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(c.t, os.MkdirAll("testdata", 0o755))
		require.NoError(c.t, os.WriteFile(path, []byte(screen), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(c.t, err)
	assert.Equal(c.t, string(want), screen)
}
