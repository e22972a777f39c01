// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

func newAttachCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "attach NAME",
		Short: "Bring a session up if it is down, and attach this terminal to it",
		Long: "Attaches this terminal to a session. One without a client gets one first, also one that was\n" +
			"terminated, has completed, or has its client on demand (provisioningPolicy: OnDemand); it comes\n" +
			"back with its conversation. One that is suspended is left so: \"muxlet resume\" ends that.",
		Example: "  muxlet attach checkout-bug",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := sessionNames(args)
			if err != nil {
				return err
			}
			return g.attach(cmd.Context(), names[0])
		},
	}
}

func (g *globals) attach(ctx context.Context, name string) error {
	if !g.interactive() {
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
	return g.enter(program, session.Status.Tmux, g.targetOf(ctx, program, session.Status.Tmux))
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
// the present client is switched; within another tmux it is nested.
func (g *globals) enter(program string, at *spec.TmuxStatus, target string) error {
	env := g.environ()
	argv := append([]string{"tmux"}, attachArgs(at.Socket, target)...)
	switch outer := outerSocket(env); {
	case outer == "":
	case sameSocket(outer, at.Socket):
		argv = []string{"tmux", "-u", "-S", at.Socket, "switch-client", "-t", target}
	default:
		g.complain(nestedHint)
		// tmux discards what is not read of a terminal that it takes (3.3a, tcflush): the
		// hint is in its status line as well.
		argv = append(argv, ";", "display-message", "-d", "5000", nestedHint)
		env = slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
			return strings.HasPrefix(variable, "TMUX=") || strings.HasPrefix(variable, "TMUX_PANE=")
		})
	}
	if err := g.exec(program, argv, env); err != nil {
		return fmt.Errorf("execute %s: %w", program, err)
	}
	return nil
}

// nestedHint is for who attaches inside a tmux that is not muxlet's.
const nestedHint = "Attaching inside another tmux: press its prefix twice to reach the inner one."

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
