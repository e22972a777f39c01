// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

const (
	// pickRefresh is the time between two looks at the sessions while the list is open.
	pickRefresh = time.Second
	// keyPatience is how long the rest of a sequence may be on its way.
	keyPatience = 50 * time.Millisecond
)

func newPickCommand(g *globals) *cobra.Command {
	var tmuxClient string
	cmd := &cobra.Command{
		Use:   "pick",
		Short: "Pick a session from the list of all, and attach this terminal to it",
		Long: "Shows the sessions, those that wait for a person first, and attaches this terminal to the one\n" +
			"that is picked; it gets a client if it has none. What is typed filters the list; the arrow keys\n" +
			"choose, Enter goes there and Escape leaves.\n" +
			"Inside muxlet's tmux the terminal is switched; there the prefix and " + keyPick + " open the list.",
		Example: "  muxlet pick",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.forClient(cmd.Context(), tmuxClient, func() error { return g.pick(cmd.Context(), tmuxClient) })
		},
	}
	addClientFlag(cmd, &tmuxClient)
	return cmd
}

func (g *globals) pick(ctx context.Context, tmuxClient string) error {
	if !g.interactive() {
		return errors.New("a session cannot be picked here: standard input is not a terminal; \"muxlet get\" prints the list")
	}
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.Sessions(ctx, "")
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		g.tellPerson(ctx, tmuxClient, "There are no sessions to pick from.")
		return nil
	}
	p := &picker{colour: g.colour != nil && g.colour()}
	all := make([]*spec.Session, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	p.front = g.inFront(ctx, all, tmuxClient)
	p.show(list.Items, g.now())
	name, err := g.pickFrom(ctx, client, p)
	if name == "" || err != nil {
		return err
	}
	return g.attachIn(ctx, name, tmuxClient)
}

// pickFrom shows the list until a person has picked a session; empty when they leave.
func (g *globals) pickFrom(ctx context.Context, client *server.Client, p *picker) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("read keys from the terminal: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, _ = fmt.Fprint(g.out, "\x1b[?1049h")
	defer func() {
		_, _ = fmt.Fprint(g.out, "\x1b[?1049l")
		_ = term.Restore(fd, before)
	}()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	keys, lists := readKeys(ctx), watchSessions(ctx, client)
	for {
		g.draw(p)
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-resized:
		case l := <-lists:
			if l.err != nil {
				p.problem = l.err.Error()
			} else {
				p.show(l.sessions, g.now())
			}
		case key, open := <-keys:
			if !open {
				return "", nil
			}
			if end := p.press(key); end != pickGoesOn {
				return map[pickResult]string{pickDone: p.selection()}[end], nil
			}
		}
	}
}

// draw shows the list. Each line is written over the one before, so that nothing flickers.
func (g *globals) draw(p *picker) {
	columns, rows, err := term.GetSize(int(os.Stdin.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		columns, rows = 80, 24
	}
	lines := p.lines(columns, rows)
	var b strings.Builder
	b.WriteString("\x1b[?25l\x1b[H")
	for i, line := range lines[:min(len(lines), rows)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	fmt.Fprintf(&b, "\x1b[J\x1b[1;%dH\x1b[?25h", min(width(lines[0])+1, columns))
	_, _ = fmt.Fprint(g.out, b.String())
}

// readKeys gives each key that is pressed. Its last read ends with this process.
func readKeys(ctx context.Context) <-chan string {
	chunks, keys := make(chan string), make(chan string)
	go readChunks(ctx, chunks)
	go func() {
		defer close(keys)
		for sent := ""; ; {
			var late <-chan time.Time
			if sent != "" {
				late = time.After(keyPatience)
			}
			complete := false
			select {
			case <-ctx.Done():
				return
			case chunk, open := <-chunks:
				if !open {
					return
				}
				sent += chunk
			case <-late:
				complete = true
			}
			for key := "-"; key != ""; {
				if key, sent = nextKey(sent, complete); key != "" && !give(ctx, keys, key) {
					return
				}
			}
		}
	}()
	return keys
}

// readChunks gives what is typed as it comes, until there is no more.
func readChunks(ctx context.Context, chunks chan<- string) {
	defer close(chunks)
	buffer := make([]byte, 1024)
	for {
		n, err := os.Stdin.Read(buffer)
		if n > 0 && !give(ctx, chunks, string(buffer[:n])) || err != nil {
			return
		}
	}
}

// give is false when nobody takes it any more.
func give(ctx context.Context, to chan<- string, what string) bool {
	select {
	case to <- what:
		return true
	case <-ctx.Done():
		return false
	}
}

// sessionsNow is one look at the sessions.
type sessionsNow struct {
	sessions []spec.Session
	err      error
}

// watchSessions looks at the sessions again and again.
func watchSessions(ctx context.Context, client *server.Client) <-chan sessionsNow {
	lists := make(chan sessionsNow)
	go func() {
		for pause(ctx, pickRefresh) {
			list, err := client.Sessions(ctx, "")
			select {
			case lists <- sessionsNow{list.Items, err}:
			case <-ctx.Done():
			}
		}
	}()
	return lists
}

func metaTime(t time.Time) metav1.Time { return metav1.NewTime(t) }
