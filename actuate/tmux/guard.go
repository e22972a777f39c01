// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

var (
	// idPattern matches tmux's id of a pane.
	idPattern = lazyregexp.New(`^%[0-9]+$`)
	// sessionPattern matches tmux's id of a session.
	sessionPattern = lazyregexp.New(`^\$[0-9]+$`)
	// safePattern matches values that a format can compare without being misread:
	// a comma, a brace or a # would end or change the comparison.
	safePattern = lazyregexp.New(`^[A-Za-z0-9_.%-]*$`)
)

// guard is what has to be true, in the server and at the moment of acting, for
// an action to happen.
type guard struct {
	// target is the pane whose formats are compared; empty for none.
	target string
	// names of format variables and the values that they must have, whole.
	names, values []string
}

func (g *guard) require(name, value string) {
	g.names = append(g.names, "#{"+name+"}")
	g.values = append(g.values, value)
}

// pane makes id the target. For a pane that is no more tmux expands the formats
// of another one, or of none; pane_id then differs.
func (g *guard) pane(id string) {
	g.target = id
	g.require("pane_id", id)
}

// condition is a format that expands to 1 when everything holds. It is a single
// comparison: tmux 3.2 gives up on formats that are nested ten deep.
func (g *guard) condition() string {
	return fmt.Sprintf("#{==:%s,%s}", strings.Join(g.names, " "), strings.Join(g.values, " "))
}

// line is the tmux command that runs script if the guard holds.
func (g *guard) line(script string) []string {
	return branch(g.target, g.condition(), script)
}

// branch runs script if the condition expands to 1. Both branches print a
// token: tmux answers 0 to either.
func branch(target, condition, script string) []string {
	return either(target, condition, script, command("display-message", "-p", tokenRefused))
}

// either runs then if the condition expands to 1, and otherwise if it does not.
func either(target, condition, then, otherwise string) []string {
	words := []string{"if-shell", "-F"}
	if target != "" {
		words = append(words, "-t", target)
	}
	return append(words, condition, then, otherwise)
}

// serverGuard requires the same run of the tmux server: ids of sessions, windows
// and panes are re-used by the next one.
func serverGuard(s observe.Server) (*guard, error) {
	if s.Process.PID <= 0 || s.StartTime <= 0 {
		return nil, errors.New("the action names no tmux server")
	}
	g := &guard{}
	g.require("pid", strconv.Itoa(s.Process.PID))
	g.require("start_time", strconv.FormatInt(s.StartTime, 10))
	return g, nil
}

// paneGuard requires that the pane is ours, and that nobody ran anything else
// in it since it was looked at.
func (t *Actuator) paneGuard(a actuate.Action) (*guard, error) {
	g, err := serverGuard(a.Server)
	if err != nil {
		return nil, err
	}
	p := a.Pane
	switch {
	case !idPattern.MatchString(p.PaneID) || p.PID <= 0 && (a.Kind != actuate.ActionKillPane || !p.Husk()):
		return nil, fmt.Errorf("the action names no pane (%q, pid %d)", p.PaneID, p.PID)
	case p.Labels.Instance != t.Instance || p.Labels.UID == "" || p.Labels.Attempt == "":
		return nil, fmt.Errorf("pane %s does not carry the labels of this muxlet", p.PaneID)
	case !safePattern.MatchString(p.Labels.Instance + p.Labels.UID + p.Labels.Attempt):
		return nil, fmt.Errorf("pane %s carries labels that muxlet does not write", p.PaneID)
	}
	g.pane(p.PaneID)
	g.require("pane_pid", strconv.Itoa(p.PID))
	g.require(observe.OptionInstance, p.Labels.Instance)
	g.require(observe.OptionUID, p.Labels.UID)
	g.require(observe.OptionAttempt, p.Labels.Attempt)
	return g, nil
}

// typingGuard requires a live program in the pane: tmux 3.3a crashes when it pastes
// into a dead one, with all that runs in it.
func (t *Actuator) typingGuard(a actuate.Action) (*guard, error) {
	g, err := t.paneGuard(a)
	if err != nil {
		return nil, err
	}
	g.require("?pane_dead,dead,live", "live")
	return g, nil
}

// checkLaunch refuses a launch that would make a pane which nobody recognises.
func (t *Actuator) checkLaunch(l actuate.Launch) error {
	labels := l.Labels
	switch {
	case len(validation.IsDNS1123Label(labels.Name)) > 0:
		return fmt.Errorf("%q cannot be the name of a tmux session", labels.Name)
	case l.Into != "" && !sessionPattern.MatchString(l.Into):
		return fmt.Errorf("%q is no id of a tmux session", l.Into)
	case labels.Instance != t.Instance:
		return fmt.Errorf("the start of %s belongs to another muxlet", labels.Name)
	case labels.Instance == "" || labels.UID == "" || labels.Attempt == "" || labels.Incarnation < 1:
		return fmt.Errorf("the start of %s lacks a label", labels.Name)
	case !safePattern.MatchString(labels.Instance + labels.UID + labels.Attempt + labels.Role):
		return fmt.Errorf("the labels of %s have characters that tmux would read as its own", labels.Name)
	}
	return nil
}
