// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/muxlet/muxlet/observe"
)

// terminalFormat is one line of list-clients. What a terminal says of itself comes last:
// nobody else has a say in what stands there.
const terminalFormat = "T\t#{client_control_mode}\t#{client_pid}\t#{client_written}\t#{client_tty}\t#{client_termname}\t#{client_flags}\t#{client_termtype}"

const terminalFields = 8

// Terminals are the terminals that are attached to the server. A client in control mode
// is none, and neither is one that is suspended. Without a server there are none.
func (c *Conn) Terminals(ctx context.Context) ([]observe.Terminal, error) {
	r := c.Run(ctx, nil, "list-clients", "-F", terminalFormat, ";", "display-message", "-p", "E")
	words := strings.TrimSpace(r.Stderr)
	switch kind := classifyWords(words); {
	case r.Err != nil:
		return nil, r.Err
	case kind == observe.AnswerNoSocket, kind == observe.AnswerRefused, words == emptyServer:
		return nil, nil
	case r.ExitCode != 0, words != "":
		return nil, fmt.Errorf("asking tmux for its clients: %s", explain(r))
	}
	return parseTerminals(r.Stdout)
}

func parseTerminals(out string) ([]observe.Terminal, error) {
	lines, ended := strings.CutSuffix(out, "E\n")
	if !ended {
		return nil, errors.New("asking tmux for its clients: the answer breaks off")
	}
	var found []observe.Terminal
	for line := range strings.Lines(lines) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", terminalFields)
		if len(f) != terminalFields || f[0] != "T" {
			return nil, fmt.Errorf("asking tmux for its clients: %q is no line of theirs", line)
		}
		pid, err := strconv.Atoi(f[2])
		written, err2 := strconv.ParseUint(f[3], 10, 64)
		if errors.Join(err, err2) != nil || !strings.HasPrefix(f[4], "/") || f[1] != "0" || strings.Contains(f[6], "suspended") {
			continue
		}
		found = append(found, observe.Terminal{PID: pid, Written: written, TTY: f[4], Name: f[5], Type: f[7]})
	}
	return found, nil
}
