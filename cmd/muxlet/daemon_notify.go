// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/spec"
)

const (
	// notifyEarly is the time between two looks at the loop's health before it is ready,
	// notifyPeriod the longest one after that. A third of the watchdog's time is never passed.
	notifyEarly  = 50 * time.Millisecond
	notifyPeriod = time.Second
	// startExtension is asked for, again and again, while the first look at all sessions takes
	// its time: a loaded host, or a tmux that does not answer, is nothing that a start anew
	// would mend.
	startExtension = 30 * time.Second
	// readyAtLast is when a loop that lives is told to be ready although not all sessions were
	// observed: a tmux that does not answer, or a dead mount, must neither hold the boot of a
	// host nor refuse a reload. The status says what is missing.
	readyAtLast = 90 * time.Second
	// statusLength bounds the line that systemctl status shows, in characters.
	statusLength = 300
)

// countedWords are what `systemctl status` counts, in this order.
var countedWords = []struct {
	status spec.Status
	word   string
}{
	{spec.StatusRunning, "running"},
	{spec.StatusStarting, "starting"},
	{spec.StatusStopping, "stopping"},
	{spec.StatusDormant, "dormant"},
	{spec.StatusSuspended, "suspended"},
	{spec.StatusTerminated, "terminated"},
	{spec.StatusCompleted, "completed"},
	{spec.StatusCrashLoopBackOff, "backing off"},
	{spec.StatusBlocked, "blocked"},
	{spec.StatusInvalid, "invalid"},
	{spec.StatusConflict, "in conflict"},
	{spec.StatusUnknown, "unknown"},
}

// managerStatus is the daemon in one line: `37 running, 2 dormant, 1 backing off`, and what is
// wrong.
func managerStatus(h controller.Health) string {
	var parts []string
	for _, w := range countedWords {
		if n := h.Sessions[string(w.status)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, w.word))
		}
	}
	line := strings.Join(parts, ", ")
	if line == "" {
		line = "no sessions"
	}
	for _, reason := range []string{h.LiveReason, h.ReadyReason} {
		if reason != "" {
			line += "; " + reason
			break
		}
	}
	line = strings.Join(strings.Fields(line), " ")
	if letters := []rune(line); len(letters) > statusLength {
		line = string(letters[:statusLength-1]) + "…"
	}
	return line
}

// notifier tells a service manager how the daemon is, by the health of its loop and nothing
// else: a loop that stands still is not alive, whatever else in the process turns.
type notifier struct {
	manager *serviceManager
	health  func() controller.Health
	log     logr.Logger

	status                string
	fedAt, extendedAt     time.Time
	starving, unreachable bool
}

// run tells until ctx ends, and then that the daemon stops.
func (n *notifier) run(ctx context.Context) {
	if n.manager.socket == "" {
		return
	}
	for ctx.Err() == nil {
		h := n.health()
		n.note(n.look(h, time.Now()))
		wait(ctx, n.period(h))
	}
	n.note(n.manager.tell("STOPPING=1", "STATUS=stopping; the sessions go on"))
}

func (n *notifier) period(h controller.Health) time.Duration {
	period := notifyPeriod
	if h.ReadyAt.IsZero() {
		period = notifyEarly
	}
	if n.manager.watchdog > 0 {
		period = min(period, n.manager.watchdog/3)
	}
	return period
}

// look tells what is new.
func (n *notifier) look(h controller.Health, now time.Time) error {
	var lines []string
	if status := managerStatus(h); status != n.status {
		lines, n.status = append(lines, "STATUS="+status), status
	}
	if h.Live {
		lines = append(lines, n.lifeSigns(h, now)...)
	}
	if h.Live == n.starving {
		n.starving = !h.Live
		n.tellStarving(h)
	}
	if n.due(h, now) && !n.manager.ready {
		return n.manager.isReady(lines...)
	}
	if len(lines) == 0 {
		return nil
	}
	return n.manager.tell(lines...)
}

// due says whether the manager is to be told that the daemon is ready.
func (n *notifier) due(h controller.Health, now time.Time) bool {
	return !h.ReadyAt.IsZero() || h.Live && now.Sub(h.StartedAt) >= readyAtLast
}

// lifeSigns are what a manager waits for: before the daemon is ready that it wants more time,
// then that it lives.
func (n *notifier) lifeSigns(h controller.Health, now time.Time) []string {
	var lines []string
	if !n.manager.ready && !n.due(h, now) && now.Sub(n.extendedAt) >= startExtension/3 {
		n.extendedAt = now
		lines = append(lines, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", startExtension.Microseconds()))
	}
	third := n.manager.watchdog / 3
	// Whoever looks a moment before a third is over would feed it after two.
	if third > 0 && (now.Sub(n.fedAt) >= third-third/8 || n.due(h, now) && !n.manager.ready) {
		n.fedAt = now
		lines = append(lines, "WATCHDOG=1")
	}
	return lines
}

func (n *notifier) tellStarving(h controller.Health) {
	if n.starving {
		n.log.Error(fmt.Errorf("%s", h.LiveReason), "Loop stands still, the service manager hears no sign of life any more")
		return
	}
	n.log.Info("Loop goes on, the service manager hears signs of life again")
}

// note logs that the manager could not be told, once until it can.
func (n *notifier) note(err error) {
	if err != nil && !n.unreachable {
		n.log.Error(err, "Service manager was not told how the daemon is")
	}
	n.unreachable = err != nil
	if err != nil {
		n.status, n.fedAt, n.extendedAt = "", time.Time{}, time.Time{}
	}
}
