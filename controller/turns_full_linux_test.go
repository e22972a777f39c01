// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// M3: a turn that cannot be written is not taken, and whoever sent it learns why.
func TestAFullDiskTakesNoTurn(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		require.Empty(t, os.Getenv("CI"), "CI must run this test as root: it mounts a file system")
		t.Skip("mounting needs root")
	}
	e := envtest.Make(t, envtest.Config{})
	require.NoError(t, unix.Mount("tmpfs", e.State, "tmpfs", 0, "size=2m"), "mount a small tmpfs: this test needs CAP_SYS_ADMIN")
	t.Cleanup(func() { require.NoError(t, unix.Unmount(e.State, unix.MNT_DETACH)) })
	e.Write("class-agent.yaml", e.Class(classAgent, true))
	e.Boot()
	c := chats{e}
	c.runs(classAgent, "a")
	filler := filepath.Join(e.State, "filler")
	f, err := os.Create(filler)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(bytes.Repeat([]byte("x"), 4096))
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, f.Close())

	_, err = c.try("a", "hello", 0)
	require.Equal(t, server.ReasonProvisioningFailed, server.ReasonOf(err), "%v", err)
	require.ErrorContains(t, err, "no space left")
	require.Empty(t, c.Controller().Turns().Items)
	require.Empty(t, c.prompts())
	require.NoError(t, os.Remove(filler))
	name := ""
	// A process that is just being forked may hold the file.
	c.Eventually("there is room again", func() bool {
		made, err := c.try("a", "hello", 0)
		name = made.Name
		return err == nil
	})
	c.waitTurn(name, spec.TurnCompleted)
	require.Equal(t, []string{"hello"}, c.ReceivedTexts("a"))
}
