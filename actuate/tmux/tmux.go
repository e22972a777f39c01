// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package tmux performs one action on one tmux server. Every change is one
// command line of tmux that compares who the server and the pane are before it
// acts, so that an action decided upon yesterday's view is refused by the
// server itself. It never acts by a name or a prefix, never repeats a call, and
// never puts into a command line what a person wrote, the workspace directory
// alone excepted: a prompt travels on standard input.
package tmux

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

// Conn is the way to the tmux server; *tmux.Conn of observe/tmux is one.
type Conn interface {
	// Run executes tmux against the running server and never starts one.
	Run(ctx context.Context, stdin io.Reader, args ...string) tmux.Result
	// Start executes tmux and starts a server when none listens.
	Start(ctx context.Context, conf string, args ...string) tmux.Result
}

// Config is what an Actuator needs to know.
type Config struct {
	// Conn to our tmux server.
	Conn Conn
	// Instance is the UUID of the state directory. Panes and servers of another
	// one are refused.
	Instance string
	// Binary is the absolute path of muxlet, which is run in the panes.
	Binary string
	// StateDir and RuntimeDir are absolute; the launcher is told them.
	StateDir, RuntimeDir string
	// Conf is the absolute path of the server's configuration file.
	Conf string
	// Include and Undo are the absolute paths of files that need not be there: what the
	// person's own file asks for, and what takes back what such files have asked for.
	Include, Undo string
	// Shell reaches the launcher for shell modes Interactive and Login.
	Shell Shell
	// LaunchExtra are further arguments of the launcher.
	LaunchExtra []string
}

// Actuator performs the actions that concern a tmux server. Several goroutines
// may use it at once; starts that come at the same time share a call of tmux.
type Actuator struct {
	Config
	starts together
	// buffers are the paste buffers of hand-overs under way.
	buffers buffers
}

// New returns an Actuator.
func New(c Config) *Actuator {
	t := &Actuator{Config: c}
	t.starts.patience = companyPatience
	t.starts.mark = tmux.NewMark()
	t.starts.run = func(ctx context.Context, line []string) tmux.Result { return t.Conn.Run(ctx, nil, line...) }
	return t
}

var _ actuate.Actuator = (*Actuator)(nil)

// Do performs a. The outcome says what the tmux server itself answered.
func (t *Actuator) Do(ctx context.Context, a actuate.Action) actuate.Outcome {
	switch a.Kind {
	case actuate.ActionStartServer:
		return t.startServer(ctx)
	case actuate.ActionConfigure:
		return t.configure(ctx, a)
	case actuate.ActionRestoreSocket:
		return restoreSocket(a.Server)
	case actuate.ActionReap:
		return reap(a.Server)
	case actuate.ActionCreate:
		return t.create(ctx, a)
	case actuate.ActionRespawn, actuate.ActionRespawnKill:
		return t.respawn(ctx, a)
	case actuate.ActionKillPane:
		return t.killPane(ctx, a)
	case actuate.ActionRelease:
		return t.release(ctx, a)
	case actuate.ActionShowWaiting:
		return t.showWaiting(ctx, a)
	case actuate.ActionKeepServer:
		return t.keepServer(ctx, a)
	case actuate.ActionClearBuffers:
		return t.clearBuffers(ctx, a)
	case actuate.ActionKeys, actuate.ActionPaste, actuate.ActionSubmit:
		return t.handOver(ctx, a)
	case actuate.ActionNone, actuate.ActionSignal, actuate.ActionQueue, actuate.ActionStartUnit:
	}
	return failed(spec.ReasonUnknown, fmt.Sprintf("tmux does not perform actions of kind %q.", a.Kind))
}

// handOver performs what gives a client text or keys.
func (t *Actuator) handOver(ctx context.Context, a actuate.Action) actuate.Outcome {
	if a.Kind == actuate.ActionKeys {
		return t.keys(ctx, a)
	}
	if a.Kind == actuate.ActionPaste {
		return t.paste(ctx, a)
	}
	return t.submit(ctx, a)
}

// create makes a tmux session whose one pane runs the launcher. The labels are
// set in the same command line: a listing shows the pane with all of them or
// not at all.
func (t *Actuator) create(ctx context.Context, a actuate.Action) actuate.Outcome {
	if err := t.checkLaunch(a.Launch); err != nil {
		return untouched(err)
	}
	if problem := t.shellProblem(a.Launch); problem != "" {
		return failed(spec.ReasonShellUnsupported, problem)
	}
	guard, err := serverGuard(a.Server)
	if err != nil {
		return untouched(err)
	}
	script := t.newSession(a.Launch)
	if a.Launch.Into != "" {
		script = t.newWindow(a.Launch)
	}
	r := t.starts.do(ctx, guard.line(script))
	return t.settle(ctx, a, r)
}

// ranFormat reports a new pane.
const ranFormat = tokenRan + " #{pane_id} #{pane_pid}"

// newSession makes a tmux session and says in its own options whose it is.
func (t *Actuator) newSession(l actuate.Launch) string {
	session := "=" + l.Labels.Name + ":"
	// The first pane of the first window: a hook of the person's may already have
	// split the window or opened another one.
	pane := session + "^.{top-left}"
	return sequence(
		// The first pane takes the limit from the global option: the session does not
		// exist yet. Every creation sets it; a person's own sessions get the default.
		command("set-option", "-g", "history-limit", number(l.HistoryLimit)),
		noManualSize(),
		command(slices.Concat(
			[]string{"new-session", "-d", "-P", "-F", ranFormat, "-s", l.Labels.Name, "-n", l.Labels.Name},
			[]string{"-x", number(l.Columns), "-y", number(l.Rows)},
			directory(l.Directory), []string{"--"}, t.launcher(l))...),
		command("set-option", "-g", "history-limit", number(spec.DefaultHistoryLimit)),
		labels(pane, l.Labels),
		keepDead(pane),
		realSize(pane, l, ""),
		command("set-option", "-t", session, "history-limit", number(l.HistoryLimit)),
		// A person who sets it for all sessions means theirs: ours would be gone with
		// its panes at once, for nobody is attached yet.
		command("set-option", "-t", session, "destroy-unattached", "off"),
		command("set-option", "-t", session, observe.OptionSession, observe.SessionLabel(l.Labels.Instance, l.Labels.UID)),
		report(tokenDone, pane),
	)
}

// newWindow opens a window behind the others of a tmux session of ours, in which
// a person has panes left. It does not come to the front.
func (t *Actuator) newWindow(l actuate.Launch) string {
	pane := l.Into + ":{end}.{top-left}"
	return sequence(
		noManualSize(),
		command("set-option", "-t", l.Into+":", "history-limit", number(l.HistoryLimit)),
		command(slices.Concat(
			[]string{"new-window", "-d", "-a", "-P", "-F", ranFormat, "-t", l.Into + ":{end}", "-n", l.Labels.Name},
			directory(l.Directory), []string{"--"}, t.launcher(l))...),
		labels(pane, l.Labels),
		keepDead(pane),
		realSize(pane, l, "#{==:#{session_attached},0}"),
		report(tokenDone, pane),
	)
}

// respawn runs the launcher in a pane of ours. Without -k tmux itself refuses
// a pane whose process it holds to be alive.
func (t *Actuator) respawn(ctx context.Context, a actuate.Action) actuate.Outcome {
	if err := t.checkLaunch(a.Launch); err != nil {
		return untouched(err)
	}
	if problem := t.shellProblem(a.Launch); problem != "" {
		return failed(spec.ReasonShellUnsupported, problem)
	}
	guard, err := t.paneGuard(a)
	if err != nil {
		return untouched(err)
	}
	if a.Kind == actuate.ActionRespawn {
		guard.require("pane_dead", "1")
	}
	mark := tmux.NewMark()
	r := t.starts.do(ctx, guard.line(withScreen(mark, a.Pane.PaneID, t.respawnScript(a))))
	screen := cutScreen(&r, mark)
	out := t.settle(ctx, a, r)
	out.Screen = screen
	return out
}

// respawnScript runs the launcher and then sets the labels: when tmux refuses to
// run it, the pane keeps the labels of the attempt that did run in it.
//
// A respawn throws away what is on the screen, which are the last words of the
// client that died. A reset scrolls them into the history first.
func (t *Actuator) respawnScript(a actuate.Action) string {
	pane := a.Pane.PaneID
	words := []string{"respawn-pane", "-t", pane}
	if a.Kind == actuate.ActionRespawnKill {
		words = append(words, "-k")
	}
	return sequence(
		command("send-keys", "-R", "-t", pane),
		command(slices.Concat(words, directory(a.Launch.Directory), []string{"--"}, t.launcher(a.Launch))...),
		report(tokenRan, pane),
		// What is above is not this incarnation's.
		command("set-option", "-p", "-F", "-t", pane, observe.OptionBase, "#{history_size}"),
		labels(pane, a.Launch.Labels),
		keepDead(pane),
		report(tokenDone, pane),
	)
}

// killPane removes exactly one pane.
func (t *Actuator) killPane(ctx context.Context, a actuate.Action) actuate.Outcome {
	guard, err := t.paneGuard(a)
	if err != nil {
		return untouched(err)
	}
	script := sequence(
		command("kill-pane", "-t", a.Pane.PaneID),
		// Without a target: the pane is no more.
		command("display-message", "-p", tokenDone),
	)
	if a.Pane.Husk() {
		// Its screen was cleared when the client's was taken.
		return outcome(t.Conn.Run(ctx, nil, guard.line(script)...))
	}
	mark := tmux.NewMark()
	r := t.Conn.Run(ctx, nil, guard.line(withScreen(mark, a.Pane.PaneID, script))...)
	screen := cutScreen(&r, mark)
	out := outcome(r)
	out.Screen = screen
	return out
}

// release hands a pane over to the person who runs something else in it. What was
// launched in it by us is refused: a respawn without a command runs our own
// launcher anew, which ends at once, and then the pane is ours still.
func (t *Actuator) release(ctx context.Context, a actuate.Action) actuate.Outcome {
	guard, err := t.paneGuard(a)
	if err != nil {
		return untouched(err)
	}
	guard.require(fmt.Sprintf("m:*%s*,#{pane_start_command}", a.Pane.Labels.Attempt), "0")
	script := sequence(noLabels(a.Pane.PaneID), command("display-message", "-p", tokenDone))
	return outcome(t.Conn.Run(ctx, nil, guard.line(script)...))
}

// settle reads the answer to a creation or a respawn, and removes a pane that
// runs the launcher without all of its labels.
//
// Setting a label fails, or hits another pane, only when its target is not what
// it was one command earlier, which only a hook of the person's can bring about:
// it renamed, moved or removed the session or the pane, or opened another pane
// before it. The pane would then be nobody's, and would run a client. When this
// process dies before the removal, the lease and the client's mark still tell
// whose it is.
func (t *Actuator) settle(ctx context.Context, a actuate.Action, r tmux.Result) actuate.Outcome {
	ran, done := find(r.Stdout, tokenRan), find(r.Stdout, tokenDone)
	// After a timeout the server may still set the labels.
	if len(ran) != 2 || slices.Equal(ran, done) || r.Err != nil {
		return outcome(r)
	}
	kill := t.onExactly(ctx, a.Server, ran[0], "pane_pid", ran[1], command("kill-pane", "-t", ran[0]))
	if len(done) == 2 {
		attempt := a.Launch.Labels.Attempt
		t.onExactly(ctx, a.Server, done[0], observe.OptionAttempt, attempt, noLabels(done[0]))
	}
	if kill.Result == actuate.ResultDone || kill.Result == actuate.ResultRefused {
		return failed(spec.ReasonTmuxFailed, fmt.Sprintf(
			"tmux could not label the pane of %s (%s), so it was removed; a hook of the tmux configuration that renames, moves or removes new sessions has to go.",
			a.Launch.Labels.Name, words(r.Stderr)))
	}
	return unclear(r)
}

// onExactly runs script while pane is what the rest says.
func (t *Actuator) onExactly(ctx context.Context, s observe.Server, pane, name, value, script string) actuate.Outcome {
	guard, err := serverGuard(s)
	if err != nil {
		return untouched(err)
	}
	if !idPattern.MatchString(pane) || !safePattern.MatchString(value) {
		return failed(spec.ReasonTmuxFailed, fmt.Sprintf("tmux named a pane %q %q that cannot be.", pane, value))
	}
	guard.pane(pane)
	guard.require(name, value)
	// The token has no target: the pane may be no more by then.
	done := command("display-message", "-p", tokenDone)
	return outcome(t.Conn.Run(ctx, nil, guard.line(sequence(script, done))...))
}
