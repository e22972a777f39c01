// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func newDeleteCommand(g *globals) *cobra.Command {
	cmd := g.intentCommand(&cobra.Command{
		Use:   "delete (NAME... | -l SELECTOR | --all | clientclass NAME... | turn NAME...)",
		Short: "Remove the document that declares a session, and stop its client; or that of a client class; or a turn",
		Long: "Removes the document from its YAML file and waits until the session is gone.\n" +
			"What happens to a running client is spec.deletionPolicy's to say.\n\n" +
			"A client class may be written clientclass NAME or cc/NAME. Sessions that have it go on with\n" +
			"the class as it was; where one of its name is built in, that one is in force again.\n\n" +
			"A turn, turn NAME or turn/NAME, is forgotten with its prompt, once it is over; muxlet cancel\n" +
			"takes one back that is not.",
		Example: "  muxlet delete checkout-bug\n  muxlet delete -l repo=shop\n  muxlet delete clientclass gemini\n  muxlet delete turn checkout-bug-7",
	}, intent{
		goal: "the removal",
		send: func(ctx context.Context, client *server.Client, name string) error {
			return client.Delete(ctx, name)
		},
		judge: deleted,
		done:  func(_, _ *spec.Session) string { return "deleted" },
	})
	deleteSessions := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		turns, args, err := splitTurns(args)
		if err != nil {
			return err
		}
		refs, err := documentRefs(args)
		if err != nil {
			return err
		}
		var sessions, classes []string
		for _, r := range refs {
			if r.Kind == spec.KindClientClass {
				classes = append(classes, r.Name)
			} else {
				sessions = append(sessions, r.Name)
			}
		}
		if len(classes)+len(turns) == 0 {
			return deleteSessions(cmd, args)
		}
		if cmd.Flags().Changed("selector") || cmd.Flags().Changed("all") {
			return usagef("names cannot be given together with -l or --all, which are about sessions")
		}
		failed := worse(g.deleteTurns(cmd.Context(), turns), g.deleteClasses(cmd.Context(), classes))
		if len(sessions) == 0 {
			return failed
		}
		return worse(failed, deleteSessions(cmd, sessions))
	}
	return cmd
}

// deleteTurns forgets turns that are over.
func (g *globals) deleteTurns(ctx context.Context, names []string) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	return g.each(names, func(name string) error {
		if err := client.DeleteTurn(ctx, name); err != nil {
			return err
		}
		return g.say("turn/%s deleted", name)
	})
}

// deleteClasses removes the documents of client classes, and says who goes on with
// what was in them.
func (g *globals) deleteClasses(ctx context.Context, names []string) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	defer client.Close()
	return g.each(names, func(name string) error {
		before, err := client.Class(ctx, name)
		if err != nil {
			return err
		}
		if err := client.DeleteClass(ctx, name); err != nil {
			return err
		}
		switch n := int(before.Status.Sessions); {
		case spec.IsBuiltInClass(name):
			g.complain("Warning: clientclass/%s is the built-in one again, for %s.", name, count(n, "session"))
		case n > 0:
			g.complain("Warning: clientclass/%s has %s; what has run goes on with the class as it was.", name, count(n, "session"))
		}
		return g.say("clientclass/%s deleted", name)
	})
}

// deleted says whether the session is gone. One of the same name with another
// uid is another session.
func deleted(before *spec.Session, now look) (bool, error) {
	if server.ReasonOf(now.err) == server.ReasonNotFound {
		return true, nil
	}
	return now.err == nil && now.session.UID != before.UID, now.err
}
