// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	tmuxconf "github.com/muxlet/muxlet/config/tmux"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

// The keys of muxlet behind the prefix of tmux.
const keyNext, keyPick = tmuxconf.KeyNext, tmuxconf.KeyPick

func newAttachCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "attach NAME",
		Short: "Bring a session up if it is down, and attach this terminal to it",
		Long: "Attaches this terminal to a session. One without a client gets one first, also one that was\n" +
			"terminated, has completed, or has its client on demand (provisioningPolicy: OnDemand); it comes\n" +
			"back with its conversation. One that is suspended is left so: \"muxlet resume\" ends that.\n\n" +
			"A session is a session of tmux, with the keys of tmux. Behind the prefix, which is C-b unless\n" +
			"the settings say another (tmux.prefix), these are muxlet's own:\n\n" +
			"  " + keyNext + "   go to the session that waits longest for you, as \"muxlet next\" does\n" +
			"  " + keyPick + "   pick a session from the list of all, as \"muxlet pick\" does\n" +
			"  d   detach: the session goes on\n\n" +
			"Within a session of muxlet the terminal is switched to the other one.",
		Example: "  muxlet attach checkout-bug\n  muxlet next\n  muxlet pick",
		Args:    named("session", 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := sessionNames(args)
			if err != nil {
				return err
			}
			return g.attach(cmd.Context(), names[0])
		},
	}
}

// attach brings a session up and shows it in this terminal.
func (g *globals) attach(ctx context.Context, name string) error { return g.attachIn(ctx, name, "") }

// attachIn is attach for a client of muxlet's own tmux server, if one is named.
func (g *globals) attachIn(ctx context.Context, name, tmuxClient string) error {
	if tmuxClient == "" && !g.interactive() {
		return fmt.Errorf("session %q cannot be attached here: standard input is not a terminal; \"muxlet logs %s\" prints what it shows", name, name)
	}
	client, err := g.client()
	if err != nil {
		return err
	}
	session, err := g.bringUp(ctx, client, name)
	client.Close()
	if err != nil {
		return err
	}
	program, err := g.tmuxProgram(session.Status.Tmux.Socket)
	if err != nil {
		return err
	}
	return g.enter(ctx, program, session.Status.Tmux, tmuxClient)
}

// bringUp gives the session once it has a pane, and asks for a client if there
// is none.
func (g *globals) bringUp(ctx context.Context, client *server.Client, name string) (*spec.Session, error) {
	session, err := client.Session(ctx, name)
	if err != nil {
		return nil, err
	}
	if session.Spec.Suspend || suspended(session) {
		return nil, server.NewError(server.ReasonSuspended, name,
			fmt.Sprintf("session %q is suspended: run \"muxlet resume %s\" first.", name, name))
	}
	if attachable(session) {
		return session, nil
	}
	if err = client.Attach(ctx, name); err != nil && server.ReasonOf(err) != server.ReasonAlreadyRunning {
		return nil, err
	}
	if session.Spec.ProvisioningPolicy == spec.ProvisioningOnDemand && down(session) {
		g.complain("Session %q has its client on demand: it is being started.", name)
	}
	ctx, cancel := context.WithTimeout(ctx, g.waitLimit)
	defer cancel()
	return g.until(ctx, client, session, intent{
		goal: "a pane",
		judge: func(before *spec.Session, now look) (bool, error) {
			if now.err != nil {
				return false, now.err
			}
			if now.session.UID != before.UID {
				return false, server.NewError(server.ReasonNotFound, name, fmt.Sprintf(
					"session %q was deleted and declared anew meanwhile: attach again if that one is meant.", name))
			}
			if attachable(now.session) {
				return true, nil
			}
			return false, g.refusal(before, now)
		},
	})
}

// attachable says whether there is a pane with a client in it, or with a start
// that a person may want to watch.
func attachable(s *spec.Session) bool {
	switch spec.DisplayStatus(s) {
	case spec.StatusRunning, spec.StatusStarting:
		return s.Status.Tmux != nil && s.Status.Tmux.Pane != ""
	}
	return false
}

// enter becomes the tmux client that shows the pane. Within muxlet's own server
// the present client, or the one that is named, is switched; within another tmux it is nested.
func (g *globals) enter(ctx context.Context, program string, at *spec.TmuxStatus, tmuxClient string) error {
	env, target := g.environ(), g.targetOf(ctx, program, at)
	argv := append([]string{"tmux"}, attachArgs(at.Socket, target)...)
	switch outer := outerSocket(env); {
	case tmuxClient != "":
		argv = []string{"tmux", "-u", "-S", at.Socket, "switch-client", "-c", tmuxClient, "-t", target}
	case outer == "":
	case sameSocket(outer, at.Socket):
		argv = []string{"tmux", "-u", "-S", at.Socket, "switch-client", "-t", target}
	default:
		hint := g.nestedHint(ctx, program, outer, at.Socket)
		g.complain("%s", hint)
		// tmux discards what is not read of a terminal that it takes (3.3a, tcflush): the
		// hint is in its status line as well.
		argv = append(argv, ";", "display-message", "-d", "5000", tmuxText(hint))
		env = slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
			return strings.HasPrefix(variable, "TMUX=") || strings.HasPrefix(variable, "TMUX_PANE=")
		})
	}
	if err := g.exec(program, argv, env); err != nil {
		return fmt.Errorf("execute %s: %w", program, err)
	}
	return nil
}

// attachArgs are the arguments by which tmux attaches to the target.
func attachArgs(socket, target string) []string {
	return []string{"-u", "-S", socket, "attach-session", "-t", target}
}

// targetOf says where the pane is now. A person may have moved it since the daemon
// last looked, and may have linked its window into sessions of theirs: of several
// the one that the status names is meant, since tmux itself would take the one
// that was used last. Where tmux cannot be asked, the pane has to do.
func (g *globals) targetOf(ctx context.Context, program string, at *spec.TmuxStatus) string {
	conn := tmux.Conn{Socket: at.Socket, Command: program, Env: g.environ()}
	r := conn.Run(ctx, nil, "list-panes", "-a", "-f", "#{==:#{pane_id},"+at.Pane+"}", "-F", "#{session_id}")
	holders := strings.Fields(r.Stdout)
	if r.Err != nil || r.ExitCode != 0 || len(holders) == 0 {
		return at.Pane
	}
	session := holders[0]
	if slices.Contains(holders, at.Session) {
		session = at.Session
	}
	return session + ":." + at.Pane
}

// tmuxProgram is the running server's own program, since a tmux of another version
// may not understand it; where that cannot be told, the tmux that the settings
// name.
func (g *globals) tmuxProgram(socket string) (string, error) {
	if servers, err := process.FindServers(socket); err == nil && len(servers) == 1 {
		if program := process.Executable(servers[0]); program != "" {
			return program, nil
		}
	}
	settings, err := g.settings()
	if err != nil {
		return "", err
	}
	path, err := exec.LookPath(settings.Tmux.Command)
	if err != nil {
		return "", fmt.Errorf("find tmux (tmux.command in the settings): %w", err)
	}
	return path, nil
}
