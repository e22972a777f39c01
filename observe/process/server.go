// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
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
	return FindServersOf(os.Geteuid(), socket)
}

// FindServersOf finds those of another uid, as root can.
func FindServersOf(uid int, socket string) ([]observe.Process, error) {
	all, err := serversOf(uid)
	if err != nil {
		return nil, fmt.Errorf("looking for tmux servers on %s: %w", socket, err)
	}
	var found []observe.Process
	for _, s := range all {
		if s.Socket == socket {
			found = append(found, s.Process)
		}
	}
	return found, nil
}

// TmuxServer is a tmux server as the process table shows it.
type TmuxServer struct {
	observe.Process
	// Socket is the path that it was given by -S, Conf the last one by -f; empty when it
	// was given none.
	Socket, Conf string
}

// AllServers returns the tmux servers of our own uid, as FindServers finds them.
func AllServers() ([]TmuxServer, error) { return serversOf(os.Geteuid()) }

func serversOf(uid int) ([]TmuxServer, error) {
	own, err := readOf(uid)
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	servers, options := map[int]entry{}, map[int][2]string{}
	for _, e := range own {
		if e.ended || !e.detached || !strings.HasSuffix(e.command, ": server") {
			continue
		}
		if arguments, err := argumentsOf(e.pid); err == nil && len(arguments) > 0 {
			servers[e.pid], options[e.pid] = e, optionsOf(arguments)
		}
	}
	var found []TmuxServer
	for pid, e := range servers {
		// A fork of a server for a pane of it has the same socket.
		if _, forked := servers[e.parent]; !forked || options[e.parent] != options[pid] {
			found = append(found, TmuxServer{e.identity(), options[pid][0], options[pid][1]})
		}
	}
	return found, nil
}

// optionsOf returns the socket that a tmux command line names by -S and the file that it
// names by -f; empty when it names none. The options are those of tmux 3.2 to 3.7; c, L
// and T take a value as well.
func optionsOf(arguments [][]byte) (named [2]string) {
	const withValue = "cfLST"
	for i := 1; i < len(arguments); i++ {
		word := string(arguments[i])
		if len(word) < 2 || word[0] != '-' || word == "--" {
			return named
		}
		at := strings.IndexAny(word[1:], withValue)
		if at < 0 {
			continue
		}
		option, value := word[1+at], word[2+at:]
		if value == "" {
			i++
			if i == len(arguments) {
				return [2]string{}
			}
			value = string(arguments[i])
		}
		switch option {
		case 'S':
			named[0] = value
		case 'f':
			named[1] = value
		}
	}
	return named
}
