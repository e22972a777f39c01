// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strings"

	"github.com/muxlet/muxlet/observe"
)

// FindServers returns the tmux servers of our own uid on exactly that socket, by
// what the process table shows. It is for the case that the record of the server
// and its socket are both lost; tmux itself cannot be asked then. Clients of tmux
// are never among them.
//
// Measured with tmux 3.3a on Linux. The server is forked from the client that
// starts it and keeps that client's argv (tmux -u -S SOCKET -f CONF new-session …),
// so argv alone does not tell them apart; but each names itself by prctl: comm is
// "tmux: server" in one and "tmux: client" in the other, whatever it was called
// by. When the server starts a pane or a helper, the forked child has the server's
// name and argv until it executes. While the server lives, its parent tells it;
// when the server has just been killed, its session does: a server leads one of its
// own without a terminal, a child is still in the server's or has its pane's
// terminal. A tmux that was told to run another program on our socket (tmux -S
// OTHER new -- tmux -S SOCKET) has that in its argv too: only the options before
// tmux's first command count.
//
// Where a process cannot name itself (macOS) nothing is found: a guess could hit a
// client.
func FindServers(socket string) ([]observe.Process, error) {
	own, err := readOwn()
	if err != nil {
		return nil, fmt.Errorf("looking for tmux servers on %s: %w", socket, err)
	}
	servers := map[int]entry{}
	for _, e := range own {
		if e.ended || !e.detached || !strings.HasSuffix(e.command, ": server") {
			continue
		}
		arguments, err := argumentsOf(e.pid)
		if err == nil && socketOption(arguments) == socket {
			servers[e.pid] = e
		}
	}
	var found []observe.Process
	for _, e := range servers {
		if _, forked := servers[e.parent]; !forked {
			found = append(found, e.identity())
		}
	}
	return found, nil
}

// socketOption returns the socket that a tmux command line names by -S; empty when it
// names none. The options are those of tmux 3.2 to 3.7; c, f, L and T take a
// value as well.
func socketOption(arguments [][]byte) string {
	const withValue = "cfLST"
	socket := ""
	for i := 1; i < len(arguments); i++ {
		word := string(arguments[i])
		if len(word) < 2 || word[0] != '-' || word == "--" {
			return socket
		}
		at := strings.IndexAny(word[1:], withValue)
		if at < 0 {
			continue
		}
		option, value := word[1+at], word[2+at:]
		if value == "" {
			i++
			if i == len(arguments) {
				return ""
			}
			value = string(arguments[i])
		}
		if option == 'S' {
			socket = value
		}
	}
	return socket
}
