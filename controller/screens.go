// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/screen"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// screenLines of a client that has ended are shown in its status. The client's
// words may be at the top of a tall pane.
const screenLines = 10

// keptScreen tells a screen that was saved from another one.
type keptScreen struct {
	attempt string
	sum     uint64
}

// screenSeed makes the sums of this process.
var screenSeed = maphash.MakeSeed()

// keepScreen saves what a client showed last, for `logs --previous`. It comes
// out of the very call that overwrites or removes it, or from a look at a dead
// pane; what is lost is lost, and stops nothing. The screen of an attempt without
// a client says nothing that the last client's does not deserve to stay for.
func (c *Controller) keepScreen(s *session, taken *observe.Screen) {
	if taken == nil || taken.Incarnation < 1 || taken.Incarnation != ended(s.rec) || taken.Attempt == s.rec.LastFailed {
		return
	}
	own := taken.Own()
	kept := keptScreen{taken.Attempt, maphash.String(screenSeed, strings.Join(own.Lines, "\n"))}
	if s.kept == kept {
		return
	}
	if err := c.screens.Save(s.rec.UID, screen.Saved{At: c.now(), Screen: own}); err != nil {
		c.Log.V(1).Info("Screen was not saved", "session", s.name, "incarnation", taken.Incarnation, "err", err.Error())
		return
	}
	s.kept = kept
}

// captureScreen keeps what a client that has died shows, once for each death,
// when no other follows at once: the pane stays, but nobody knows for how long.
func (c *Controller) captureScreen(ctx context.Context, s *session, p plan.Plan) {
	last := s.rec.LastTermination
	if last == nil || s.rec.Client != nil || s.rec.Attempt != nil {
		c.showLast(s, nil, time.Time{})
		return
	}
	if s.screenOf.Equal(last.At) || p.RequeueAfter == time.Millisecond {
		return
	}
	snap, _, _ := c.eyes.latest()
	if snap == nil || snap.view.State == observe.ServerUnknown {
		return
	}
	if len(snap.panes[s.rec.UID]) == 0 {
		// It went with its pane, or an earlier daemon has seen it.
		if saved, err := c.screens.Load(s.rec.UID); err == nil && saved.Incarnation == ended(s.rec) {
			c.showLast(s, saved.Lines, last.At)
		}
		return
	}
	taken, err := c.Tmux.Capture(ctx, snap.panes[s.rec.UID][0].PaneID, observe.KeptLines)
	if err != nil {
		c.Log.V(1).Info("Screen was not captured", "session", s.name, "err", err.Error())
		return
	}
	c.showLast(s, taken.Own().Lines, last.At)
	if taken.Dead {
		c.keepScreen(s, &taken)
	}
}

// showLast sets what the status shows of a client that has ended.
func (c *Controller) showLast(s *session, lines []string, of time.Time) {
	lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.TrimSpace(line) == "" })
	c.mu.Lock()
	defer c.mu.Unlock()
	s.screen, s.screenOf = slices.Clone(lines[max(len(lines)-screenLines, 0):]), of
}

// ended is the incarnation that ended last; 0 when none has.
func ended(r record.Record) int64 {
	if r.Client != nil {
		return r.Client.Incarnation - 1
	}
	return r.Incarnation
}

// pruneScreens removes the screens of sessions whose records are gone for good, and
// what is too much of those that were removed.
func (c *Controller) pruneScreens() {
	current := map[string]bool{}
	c.mu.Lock()
	for _, s := range c.sessions {
		current[s.rec.UID] = true
	}
	c.mu.Unlock()
	if err := c.screens.Prune(c.Store.Knows, func(uid string) bool { return current[uid] }, c.settings().ScreenBytes); err != nil {
		c.Log.V(1).Info("Screens were not pruned", "err", err.Error())
	}
}

// Screen is the last lines of the session's pane.
func (c *Controller) Screen(ctx context.Context, name string, lines int) (string, error) {
	taken, err := c.capture(ctx, name, max(lines, observe.KeptLines))
	if err != nil {
		return "", err
	}
	return strings.Join(taken.Closed().Last(lines).Lines, "\n"), nil
}

// PreviousScreen is the last lines of what the incarnation that ended last has
// shown.
func (c *Controller) PreviousScreen(ctx context.Context, name string, lines int) (string, error) {
	r, _, err := c.recordOf(name)
	if err != nil {
		return "", err
	}
	of := ended(r)
	if of < 1 {
		return "", server.NewError(server.ReasonNotFound, name, "no incarnation of it has ended yet, so there is no previous screen")
	}
	saved, err := c.screens.Load(r.UID)
	if err == nil && saved.Incarnation == of {
		return strings.Join(saved.Last(lines).Lines, "\n"), nil
	}
	// It has ended a moment ago.
	snap, _, _ := c.eyes.latest()
	if snap != nil {
		for _, p := range snap.panes[r.UID] {
			if p.Labels.Incarnation != of {
				continue
			}
			if taken, err := c.Tmux.Capture(ctx, p.PaneID, lines); err == nil && taken.Incarnation == of && taken.Dead {
				return strings.Join(taken.Own().Last(lines).Lines, "\n"), nil
			}
		}
	}
	return "", server.NewError(server.ReasonNotFound, name,
		fmt.Sprintf("the screen of incarnation %d was not saved: it went with its pane or its tmux server, or could not be written", of))
}

// capture asks tmux for what the session's pane holds.
func (c *Controller) capture(ctx context.Context, name string, history int) (observe.Screen, error) {
	r, message, err := c.recordOf(name)
	if err != nil {
		return observe.Screen{}, err
	}
	pane, err := c.paneOf(r, message)
	if err != nil {
		return observe.Screen{}, err
	}
	taken, err := c.Tmux.Capture(ctx, pane, history)
	if err != nil {
		return observe.Screen{}, server.NewError(server.ReasonTmuxUnavailable, name, err.Error())
	}
	return taken, nil
}

// recordOf is the session's record, and what the last decision said.
func (c *Controller) recordOf(name string) (r record.Record, message string, err error) {
	<-c.loaded
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[name]
	if s == nil {
		return r, "", server.NewNotFound(name)
	}
	r = s.rec
	r.Name = name
	if ready := meta.FindStatusCondition(s.status.Conditions, spec.ConditionReady); ready != nil {
		message = ready.Message
	}
	return r, message, nil
}

// paneOf finds the session's pane. The error says why there is none, and where
// else to look.
func (c *Controller) paneOf(r record.Record, message string) (string, error) {
	snap, _, _ := c.eyes.latest()
	if snap == nil || snap.view.State == observe.ServerUnknown {
		return "", server.NewError(server.ReasonTmuxUnavailable, r.Name, "tmux does not answer now")
	}
	pane := ""
	if r.Client != nil {
		pane = r.Client.Pane
	}
	for _, p := range snap.panes[r.UID] {
		if pane == "" || p.PaneID == pane {
			return p.PaneID, nil
		}
	}
	why := "it has no pane now, and so no screen"
	if message = strings.TrimSuffix(message, "."); message != "" {
		why += " (" + message + ")"
	}
	if of := ended(r); of < 1 {
		why += "; it has not had a client yet"
	} else if saved, err := c.screens.Load(r.UID); err == nil && saved.Incarnation == of {
		why += fmt.Sprintf("; `muxlet logs %s --previous` prints what incarnation %d showed last", r.Name, of)
	}
	return "", server.NewError(server.ReasonConflict, r.Name, why)
}
