// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
)

// logsOptions are what is asked for, and how much of it.
type logsOptions struct {
	*globals
	follow, previous, conversation bool
	tail                           int
	output                         string
}

const logsHelp = `Print what the session's terminal shows, with its history before it: the text as
a person would read it there, without colours, with wrapped lines joined. When the
client has ended, its last screen stays until the next one starts in the pane.

The history is that of the terminal: of a client that draws on the whole screen
there is the picture and not what was in it before. At most the last 20,000 lines
are read.

With --previous it is what the incarnation that ended last has shown at its end, at
most 1,000 lines. That is kept in a file of the state directory.

With --follow it goes on, over restarts of the client and of muxlet, until Ctrl-C or
until the session is deleted. The terminal is looked at four times a second. A line
is printed once it has scrolled off the screen or was found the same twice; so what
is drawn over and over, such as a spinner or a clock, appears when it stands still,
of a screen that is drawn anew the lines that are new appear, and a prompt appears
though its line has no end. What incarnation the lines are of, and whether lines
were missed in a flood, is said on standard error.

With --conversation it is the transcript of the session's conversation, for agents
whose transcripts are understood (Claude Code, Codex): who said what and when, with a
line for each use of a tool, and with --tail the last messages. It is there while no
client runs, too. With --follow it goes on from one conversation to the next. With
-o json the lines are those of the client's own file.`

func newLogsCommand(g *globals) *cobra.Command {
	o := &logsOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print what the session's terminal shows, and its history",
		Long:  logsHelp,
		Example: "  muxlet logs web\n" +
			"  muxlet logs web --follow --tail 20\n" +
			"  muxlet logs web --previous    # why did it end?\n" +
			"  muxlet logs checkout-bug --conversation --tail 5\n" +
			"  muxlet logs checkout-bug --conversation -o json",
		Args: named("session", 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := sessionNames(args)
			if err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return o.logs(cmd.Context(), names[0])
		},
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on with what is new")
	cmd.Flags().BoolVarP(&o.previous, "previous", "p", false, "what the incarnation that ended last has shown")
	cmd.Flags().BoolVar(&o.conversation, "conversation", false, "the transcript of the agent's conversation")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "with --conversation, json: the lines of the client's own file")
	cmd.Flags().IntVar(&o.tail, "tail", -1, "number of lines, or with --conversation of messages, from the end; -1: all")
	// An error says that somebody else completes the flag.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{outputJSON}, noFiles))
	return cmd
}

func (o *logsOptions) check() error {
	if o.tail < -1 || o.tail > server.MaxLogLines {
		return usagef("--tail is %d: it must be from 0 to %d, or -1 for all", o.tail, server.MaxLogLines)
	}
	switch {
	case o.conversation && o.previous:
		return usagef("--conversation and --previous exclude each other: a conversation goes on from one client to the next")
	case o.output != "" && o.output != outputJSON:
		return usagef("unknown format %q for -o: it must be json", o.output)
	case o.output != "" && !o.conversation:
		return usagef("-o is about --conversation: a screen has one format")
	}
	if o.follow && o.previous {
		return usagef("--follow and --previous exclude each other: what has ended does not go on")
	}
	if o.tail == -1 && !o.conversation {
		o.tail = server.MaxLogLines
	}
	return nil
}

func (o *logsOptions) logs(ctx context.Context, name string) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	defer client.Close()
	if o.conversation {
		return o.conversationOf(ctx, client, name)
	}
	if o.follow {
		return o.followLogs(ctx, client, name)
	}
	read := client.Screen
	if o.previous {
		read = client.PreviousScreen
	}
	text, err := read(ctx, name, o.tail)
	if err != nil || text == "" {
		return err
	}
	return o.print(strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
}

// print writes lines of a client.
func (g *globals) print(lines []string) error {
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(harmless(line))
		text.WriteByte('\n')
	}
	if _, err := io.WriteString(g.out, text.String()); err != nil {
		return fmt.Errorf("write the screen: %w", err)
	}
	return nil
}

// harmless is a client's line for a person's terminal, which would obey the
// control characters in it: those are written as `cat -v` does. tmux keeps most of
// them out of a screen, but not those of eight bits, which some terminals obey.
func harmless(line string) string {
	if !strings.ContainsFunc(line, unicode.IsControl) {
		return strings.ToValidUTF8(line, "\ufffd")
	}
	var out strings.Builder
	for _, r := range line {
		switch {
		case r == '\t' || !unicode.IsControl(r):
			out.WriteRune(r)
		case r >= 0x80:
			out.WriteString("M-^" + string(r-0x80+0x40))
		default:
			out.WriteString("^" + string(r^0x40))
		}
	}
	return out.String()
}
