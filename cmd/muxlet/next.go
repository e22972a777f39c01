// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/spec"
)

func newNextCommand(g *globals) *cobra.Command {
	var tmuxClient string
	cmd := &cobra.Command{
		Use:   "next",
		Short: "Attach this terminal to the session that waits longest for you",
		Long: "Attaches this terminal to the session that waits longest for a person, and never to the one\n" +
			"that is in front of you already; \"muxlet get --waiting\" lists them. When none waits it says so.\n" +
			"Inside muxlet's tmux the terminal is switched; there the prefix and " + keyNext + " do the same.",
		Example: "  muxlet next",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.forClient(cmd.Context(), tmuxClient, func() error { return g.next(cmd.Context(), tmuxClient) })
		},
	}
	addClientFlag(cmd, &tmuxClient)
	return cmd
}

// addClientFlag is for the keys of muxlet's tmux server.
func addClientFlag(cmd *cobra.Command, tmuxClient *string) {
	cmd.Flags().StringVar(tmuxClient, "client", "", "for a key of muxlet's tmux server: the client of tmux that is switched, such as /dev/pts/3")
}

// forClient tells what goes wrong to the person who has pressed a key.
func (g *globals) forClient(ctx context.Context, tmuxClient string, do func() error) error {
	err := do()
	if err == nil || tmuxClient == "" {
		return err
	}
	g.tellPerson(ctx, tmuxClient, err.Error())
	return &reportedError{exitCode(err)}
}

// tellPerson says a sentence to who has typed the command, or has pressed the key of a client
// of muxlet's tmux server.
func (g *globals) tellPerson(ctx context.Context, tmuxClient, text string) {
	if tmuxClient == "" {
		g.complain("%s", text)
		return
	}
	settings, err := g.settings()
	if err != nil {
		return
	}
	socket := settings.Paths.TmuxSocket()
	if program, err := g.tmuxProgram(socket); err == nil {
		g.tellClient(ctx, program, socket, tmuxClient, text)
	}
}

func (g *globals) next(ctx context.Context, tmuxClient string) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	list, err := client.Sessions(ctx, "")
	client.Close()
	if err != nil {
		return err
	}
	waiting := waitingOf(list.Items)
	if len(waiting) == 0 {
		g.tellPerson(ctx, tmuxClient, "No session waits for you.")
		return nil
	}
	front := g.inFront(ctx, waiting, tmuxClient)
	others := slices.DeleteFunc(slices.Clone(waiting), func(s *spec.Session) bool { return s.Name == front })
	if len(others) == 0 {
		g.tellPerson(ctx, tmuxClient, fmt.Sprintf("No session waits for you but %s, which is in front of you.", front))
		return nil
	}
	if i := slices.IndexFunc(others, attachable); i >= 0 {
		return g.attachIn(ctx, others[i].Name, tmuxClient)
	}
	longest := others[0]
	return fmt.Errorf("session %q waits for you and has no client (%s): see \"muxlet describe %s\"", longest.Name, statusWords(longest), longest.Name)
}

// waitingOf are the sessions that wait for a person, the one that waits longest first.
func waitingOf(sessions []spec.Session) []*spec.Session {
	var waiting []*spec.Session
	for i := range sessions {
		if spec.WaitsForPerson(&sessions[i]) {
			waiting = append(waiting, &sessions[i])
		}
	}
	slices.SortFunc(waiting, spec.CompareWaiting)
	return waiting
}

// inFront is the name of the session that the person has in front of them; empty for none of
// these.
func (g *globals) inFront(ctx context.Context, sessions []*spec.Session, tmuxClient string) string {
	i := slices.IndexFunc(sessions, func(s *spec.Session) bool { return s.Status.Tmux != nil && s.Status.Tmux.Session != "" })
	if i < 0 || tmuxClient == "" && outerSocket(g.environ()) == "" {
		return ""
	}
	socket := sessions[i].Status.Tmux.Socket
	program, err := g.tmuxProgram(socket)
	if err != nil {
		return ""
	}
	at := g.whereIn(ctx, program, socket, tmuxClient)
	for _, s := range sessions {
		if t := s.Status.Tmux; at.session != "" && t != nil && t.Session == at.session {
			return s.Name
		}
	}
	return ""
}
