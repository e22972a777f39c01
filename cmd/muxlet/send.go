// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// What send can wait for.
const (
	waitDelivered = "delivered"
	waitCompleted = "completed"
	waitNone      = "none"
)

var waitWords = []string{waitDelivered, waitCompleted, waitNone}

// sendOutputs are the formats of send.
var sendOutputs = []string{outputJSON, outputYAML, outputName}

// sendOptions are the flags of send.
type sendOptions struct {
	*globals
	which   chosen
	wait    string
	timeout time.Duration
	output  string
	// prompt is what is sent.
	prompt string
}

func newSendCommand(g *globals) *cobra.Command {
	o := &sendOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "send (NAME... | -l SELECTOR | --all) [TEXT | -]",
		Short: "Send a prompt to sessions, and say what became of it",
		Long: "Puts a turn into the queue of each session. A session without a client gets one. The text is\n" +
			"the last argument, or comes from standard input: with -, or without a text when that is no\n" +
			"terminal. Newlines at its end are dropped.\n\n" +
			"It is waited for until each client has the turn; with --wait=completed, until it has ended it\n" +
			"(the last lines of its answer follow where the client's class gives them); with --wait=none,\n" +
			"until the turn is in the queue. A turn whose hand-over has not begun within --timeout fails, and\n" +
			"is never handed over later. An interrupt ends the wait and not the turn: \"muxlet cancel\" does.\n\n" +
			"Exit codes: 0 as waited for; 1 it cannot be, or nobody knows whether the client has it; 2 usage;\n" +
			"3 no such session; 4 suspended, or its directory is missing; 5 not in time; 6 sending it again\n" +
			"can help.",
		Example: "  muxlet send checkout-bug 'Run the tests and mend what fails.'\n" +
			"  git diff | muxlet send reviewer --wait=completed\n" +
			"  muxlet send -l repo=shop - <prompt.md\n" +
			"  muxlet send checkout-bug docs 'Pull and rebase.' --timeout 10m -o name",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.which.selector, "selector", "l", "", "label selector, such as repo=shop, instead of names")
	flags.BoolVar(&o.which.all, "all", false, "all sessions, instead of names")
	flags.StringVar(&o.wait, "wait", waitDelivered, "what is waited for: delivered, completed or none")
	flags.DurationVar(&o.timeout, "timeout", spec.DefaultTurnDeadline, "deadline of the turn: how long its hand-over may take to begin")
	flags.StringVarP(&o.output, "output", "o", "", "format: json, yaml or name")
	return cmd
}

func (o *sendOptions) run(cmd *cobra.Command, args []string) error {
	text, given, err := o.divide(cmd, args)
	if err != nil {
		return err
	}
	if err := o.validate(cmd); err != nil {
		return err
	}
	if o.prompt, err = o.read(text, given); err != nil {
		return err
	}
	return o.send(cmd.Context())
}

// divide reads NAME... [TEXT]: the last of several words is the text, and the only word
// beside -l or --all. given is false without one.
func (o *sendOptions) divide(cmd *cobra.Command, args []string) (text string, given bool, err error) {
	selected := cmd.Flags().Changed("selector") || o.which.all
	switch {
	case selected && len(args) > 1:
		return "", false, usagef("beside -l or --all there is one argument, the text: put it in quotes; names cannot be given with them")
	case selected && len(args) == 1, len(args) > 1:
		text, given = args[len(args)-1], true
		args = args[:len(args)-1]
	case len(args) == 1 && args[0] == "-":
		return "", false, usagef("which sessions? Give at least one name before -, or -l SELECTOR or --all")
	}
	o.which.names, err = sessionNames(args)
	return text, given, err
}

func (o *sendOptions) validate(cmd *cobra.Command) error {
	switch {
	case !slices.Contains(waitWords, o.wait):
		return usagef("unknown word %q for --wait: it must be delivered, completed or none", o.wait)
	case o.timeout <= 0 || o.timeout > spec.MaxTurnDeadline-time.Second:
		return usagef("--timeout is %s: it must be longer than 0 and shorter than %s", o.timeout, spec.MaxTurnDeadline)
	case o.output != "" && !slices.Contains(sendOutputs, o.output):
		return usagef("unknown format %q for -o: it must be json, yaml or name", o.output)
	}
	return o.which.validate(cmd)
}

// maxStandardInput ends the reading of what is too long, or has no end.
const maxStandardInput = 2 * spec.MaxPromptBytes

// read gives the text, from standard input where it is not an argument.
func (o *sendOptions) read(text string, given bool) (string, error) {
	if given && text != "-" {
		return text, o.empty(text, "the text is empty")
	}
	if !given && o.interactive() {
		return "", usagef("what is to be sent? Give the text as the last argument, in quotes, or - for standard input")
	}
	data, err := io.ReadAll(io.LimitReader(o.in, maxStandardInput))
	if err != nil {
		return "", fmt.Errorf("read the text from standard input: %w", err)
	}
	// The newlines at its end do not count.
	if len(data) == maxStandardInput || len(bytes.TrimRight(data, "\n")) > spec.MaxPromptBytes {
		return "", server.NewTurnError(server.ReasonInvalid, "", fmt.Sprintf(
			"Standard input has more than %d bytes, the most that a prompt can have: put the text into a file and send its name.", spec.MaxPromptBytes))
	}
	return string(data), o.empty(string(data), "standard input is empty")
}

func (o *sendOptions) empty(text, words string) error {
	if strings.TrimSpace(text) != "" {
		return nil
	}
	return server.NewTurnError(server.ReasonInvalid, "", "Nothing to send: "+words+".")
}

// sent is what became of the turn to one session.
type sent struct {
	turn *spec.Turn
	// answer has the last lines of the client's.
	answer string
	err    error
}

// send sends it to every session, and waits for each. They do not wait for one another,
// and one that fails does not keep the others. Each has its own line, in the order of the
// names, as soon as it and those before it are done.
func (o *sendOptions) send(ctx context.Context) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	defer client.Close()
	names, err := o.find(ctx, client, o.which)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return o.printAll(nil)
	}
	watch, err := o.watchTurns(ctx, client, names)
	if err != nil {
		return err
	}
	defer watch.stop()
	ends := o.start(ctx, client, watch, names)
	var done []*spec.Turn
	var missing bool
	failed := o.each(names, func(name string) error {
		end := <-ends[name]
		missing = missing || server.ReasonOf(end.err) == server.ReasonNotFound
		if end.err != nil {
			return end.err
		}
		done = append(done, end.turn)
		return o.tell(end)
	})
	if missing && len(names) > 1 && len(o.which.names) > 1 {
		o.complain("All arguments but the last are names of sessions: a text of several words is put in quotes.")
	}
	if err := o.printAll(done); err != nil {
		return err
	}
	return failed
}

func (o *sendOptions) start(ctx context.Context, client *server.Client, watch *turnWatch, names []string) map[string]chan sent {
	asks := make(chan struct{}, asksAtOnce)
	ends := map[string]chan sent{}
	for _, name := range names {
		end := make(chan sent, 1)
		ends[name] = end
		go func() { end <- o.sendOne(ctx, client, watch, name, asks) }()
	}
	return ends
}

func (o *sendOptions) sendOne(ctx context.Context, client *server.Client, watch *turnWatch, name string, asks chan struct{}) sent {
	made, err := o.create(ctx, client, name, asks)
	if err != nil || o.wait == waitNone {
		return sent{turn: made, err: err}
	}
	turn, err := o.await(ctx, watch, made)
	if err != nil {
		return sent{err: err}
	}
	if err := turnError(turn, o.wait); err != nil {
		return sent{err: err}
	}
	end := sent{turn: turn}
	if o.wait == waitCompleted && o.output == "" {
		end.answer = o.answerTo(ctx, client, turn)
	}
	return end
}

// tell says to a person what became of one turn.
func (o *sendOptions) tell(s sent) error {
	if o.output == outputJSON || o.output == outputYAML {
		return nil
	}
	if o.output == outputName {
		return o.say("turn.%s/%s", spec.GroupVersion.Group, s.turn.Name)
	}
	words := map[string]string{waitDelivered: "delivered to", waitCompleted: "completed by", waitNone: "sent to"}[o.wait]
	if err := o.say("turn/%s %s session %q", s.turn.Name, words, s.turn.Spec.SessionName); err != nil || s.answer == "" {
		return err
	}
	return o.say("%s", s.answer)
}

// printAll shows the turns to a program: one that was sent to a session of a name as it
// is, else all as a List.
func (o *sendOptions) printAll(turns []*spec.Turn) error {
	one := len(o.which.names) == 1
	if o.output != outputJSON && o.output != outputYAML || one && len(turns) == 0 {
		return nil
	}
	all := make([]spec.Turn, 0, len(turns))
	for _, t := range turns {
		all = append(all, *t)
	}
	return (&getOptions{globals: o.globals, output: o.output}).print(turnObjects(all), !one)
}

// answerLines is how much of an answer a person is shown.
const answerLines = 10

// answerTo is the end of the client's answer. That there is none is nothing to tell.
func (o *sendOptions) answerTo(ctx context.Context, client *server.Client, t *spec.Turn) string {
	text, err := client.Answer(ctx, t.Name, answerLines)
	if err != nil && server.ReasonOf(err) != server.ReasonNotFound {
		o.complain("Warning: the answer to turn %q could not be read: %v", t.Name, err)
	}
	return strings.TrimRight(text, "\n")
}
