// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/observe/tmux"
)

// askPatience is how long a tmux server is asked for what only helps a person.
const askPatience = time.Second

// askTmux is what a tmux server prints; empty when it does not answer.
func (g *globals) askTmux(ctx context.Context, program, socket string, args ...string) string {
	conn := tmux.Conn{Socket: socket, Command: program, Env: g.environ(), Timeout: askPatience}
	r := conn.Run(ctx, nil, args...)
	if r.Err != nil || r.ExitCode != 0 {
		return ""
	}
	return strings.TrimRight(r.Stdout, "\n")
}

// nestedHint is for who attaches inside a tmux that is not muxlet's: which keys lead to which
// of the two.
func (g *globals) nestedHint(ctx context.Context, program, outer, inner string) string {
	const begin = "Attaching inside another tmux: "
	ofOuter := g.askTmux(ctx, program, outer, "display-message", "-p", "#{prefix}")
	ofInner := g.askTmux(ctx, program, inner, "show-options", "-gv", "prefix")
	switch {
	case ofOuter == "" || ofInner == "":
		return begin + "press its prefix twice to reach the inner one."
	case ofOuter == ofInner:
		return fmt.Sprintf("%spress %s twice to reach the inner one, or set tmux.prefix in muxlet's settings to another key.", begin, ofInner)
	}
	return fmt.Sprintf("%sits prefix is %s, the inner one's is %s.", begin, ofOuter, ofInner)
}

// atTmux is where a person is who is inside a tmux server.
type atTmux struct {
	// client of tmux that a key was pressed in; empty for none.
	client string
	// session is the id of the one in front of them; empty when that is not known.
	session string
}

// whereIn says where the person is in the tmux server on the socket: by the client whose
// key was pressed, or by the pane that this runs in.
func (g *globals) whereIn(ctx context.Context, program, socket, client string) atTmux {
	at := atTmux{client: client}
	if client != "" {
		for line := range strings.Lines(g.askTmux(ctx, program, socket, "list-clients", "-F", "#{session_id} #{client_name}")) {
			if session, name, _ := strings.Cut(strings.TrimRight(line, "\n"), " "); name == client {
				at.session = session
			}
		}
		return at
	}
	if outer := outerSocket(g.environ()); outer == "" || !sameSocket(outer, socket) {
		return at
	}
	i := slices.IndexFunc(g.environ(), func(v string) bool { return strings.HasPrefix(v, "TMUX_PANE=") })
	if i >= 0 {
		pane := strings.TrimPrefix(g.environ()[i], "TMUX_PANE=")
		at.session = g.askTmux(ctx, program, socket, "list-panes", "-a", "-f", "#{==:#{pane_id},"+pane+"}", "-F", "#{session_id}")
		at.session, _, _ = strings.Cut(at.session, "\n")
	}
	return at
}

// tellClient shows a sentence in the status line of a client of tmux, where nothing that is
// printed can be seen.
func (g *globals) tellClient(ctx context.Context, program, socket, client, text string) {
	g.askTmux(ctx, program, socket, "display-message", "-c", client, "-d", "4000", tmuxText(text))
}

// tmuxText keeps tmux from expanding a text, as a format or as a time, and from taking its end
// for that of a command.
func tmuxText(text string) string {
	text = strings.NewReplacer("#", "##", "%", "%%", "\n", " ").Replace(visibleLines(text))
	if strings.HasSuffix(text, ";") {
		text = strings.TrimSuffix(text, ";") + `\;`
	}
	return text
}

// sameSocket says whether two paths lead to one tmux server.
func sameSocket(a, b string) bool {
	if a == b {
		return true
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// outerSocket is the socket of the tmux that this runs in: the first field of
// TMUX, which is socket,pid,session.
func outerSocket(env []string) string {
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, "TMUX="); ok {
			socket, _, _ := strings.Cut(value, ",")
			return socket
		}
	}
	return ""
}
