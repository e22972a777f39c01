// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/observe/process"
)

// freePatience bounds the connection to a server whose queue is full.
const freePatience = 3 * time.Second

// newTmuxFreeCommand is the condition of the tmux server's unit: `tmux -D` takes the path
// away from a server that lives there, and every session in it would be out of reach.
func newTmuxFreeCommand(*globals) *cobra.Command {
	return &cobra.Command{
		Use:    "tmux-free SOCKET",
		Short:  "Exit with 0 when it is proven that no tmux server lives on a socket",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return tmuxFree(args[0])
		},
	}
}

// tmuxFree is nil only when nobody listens on the socket and no process was started as the
// tmux server of that path: one that has lost its socket can make it anew.
func tmuxFree(socket string) error {
	conn, err := net.DialTimeout("unix", socket, freePatience)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("a tmux server lives on %s already: its sessions go on in it, and the unit is started once it has ended", socket)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
	default:
		return fmt.Errorf("whether a tmux server lives on %s is not known: %w", socket, err)
	}
	servers, err := process.FindServers(socket)
	if err != nil {
		return fmt.Errorf("whether a tmux server lives on %s is not known: %w", socket, err)
	}
	if len(servers) > 0 {
		return fmt.Errorf("the tmux server of %s (pid %d) lives and has lost its socket: the muxlet daemon has it made anew", socket, servers[0].PID)
	}
	return nil
}
