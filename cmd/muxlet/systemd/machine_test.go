// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemd && linux

package systemd

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/hack/sysdbox"
)

const (
	// patience is how long a thing that must happen may take on a busy machine.
	patience = 45 * time.Second
	// tick is the time between two looks: most cost a process.
	tick = 40 * time.Millisecond
)

// machine is a box with nothing but muxlet, tmux and the agents.
type machine struct {
	*testing.T
	box *sysdbox.Box
}

// newMachine is off.
func newMachine(t *testing.T, users ...sysdbox.User) *machine {
	t.Helper()
	if err := sysdbox.Missing(); err != nil {
		if os.Getenv("CI") != "" {
			require.NoError(t, err)
		}
		t.Skip("no box can be booted here: " + err.Error())
	}
	box, err := sysdbox.New(users...)
	require.NoError(t, err)
	m := &machine{T: t, box: box}
	t.Cleanup(func() { assert.NoError(t, box.Close()) })
	require.NoError(t, box.CopyFile(binary, "/usr/local/bin/muxlet"))
	require.NoError(t, box.CopyFile(fakeAgent, "/opt/fakeagent"))
	// What the machine below has of these is not of the box.
	for _, name := range []string{"claude", "codex"} {
		_ = os.Remove(box.Path("/usr/local/bin/" + name))
		require.NoError(t, os.Symlink("/opt/agents/bin/"+name, box.Path("/usr/local/bin/"+name)))
	}
	return m
}

func (m *machine) boot() {
	m.Helper()
	require.NoError(m, m.box.Boot())
	m.does("root", "sh", "-c", "test -e /opt/agents || { /opt/fakeagent install /opt/agents && chmod -R a+rwX /opt/agents; }")
}

// answer of one command.
type answer struct {
	out, errOut string
	code        int
}

// text is everything that a person sees.
func (a answer) text() string { return a.out + a.errOut }

// tries runs a command in the box as the user.
func (m *machine) tries(user string, argv ...string) answer {
	m.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience) // also while the test is cleaned up
	defer cancel()
	cmd := m.box.Command(ctx, user, argv...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	require.NoError(m, ctx.Err(), "%s does not end: %s%s", strings.Join(argv, " "), &out, &errOut)
	if cmd.ProcessState == nil {
		require.NoError(m, err)
	}
	return answer{out: out.String(), errOut: errOut.String(), code: cmd.ProcessState.ExitCode()}
}

// does runs a command that must go well, and returns what it prints, without the last
// line's end.
func (m *machine) does(user string, argv ...string) string {
	m.Helper()
	a := m.tries(user, argv...)
	require.Equal(m, 0, a.code, "%s: %s", strings.Join(argv, " "), a.text())
	return strings.TrimSuffix(a.out, "\n")
}

// eventually polls until the condition holds.
func (m *machine) eventually(what string, condition func() bool) {
	m.Helper()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for end := time.Now().Add(patience); !condition(); <-ticker.C {
		if time.Now().After(end) {
			require.FailNow(m, "This did not happen within "+patience.String()+": "+what)
		}
	}
}

// in runs a part of a test under a name of its own, with the same machine, and ends the
// test when that has failed: what follows builds on it.
func (s *service) in(name string, part func(s *service)) {
	s.Helper()
	began := time.Now()
	ok := s.Run(name, func(t *testing.T) {
		sub := *s
		m := *s.machine
		m.T, sub.machine = t, &m
		part(&sub)
		t.Logf("It took %s.", time.Since(began).Round(10*time.Millisecond))
	})
	if !ok {
		s.FailNow()
	}
}
