// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// down says whether the session is proven to have no client, and none on its
// way.
func down(s *spec.Session) bool {
	switch spec.DisplayStatus(s) {
	case spec.StatusStarting, spec.StatusStopping, spec.StatusUnknown, spec.StatusRunning:
		return false
	}
	return s.Status.Client.Pid == 0 && meta.IsStatusConditionFalse(s.Status.Conditions, spec.ConditionClientAlive)
}

// idle says whether the session is down and nothing is about to start it: not
// even the world, as with one that is blocked.
func idle(s *spec.Session) bool {
	switch spec.DisplayStatus(s) {
	case spec.StatusSuspended, spec.StatusTerminated, spec.StatusCompleted, spec.StatusDormant:
		return down(s)
	}
	return false
}

// resting says whether the session is down and does not start by itself at some
// time.
func resting(s *spec.Session) bool {
	return down(s) && spec.DisplayStatus(s) != spec.StatusCrashLoopBackOff
}

func suspended(s *spec.Session) bool {
	return meta.IsStatusConditionTrue(s.Status.Conditions, spec.ConditionSuspended)
}

// running says whether a client runs.
func running(s *spec.Session) bool {
	return spec.DisplayStatus(s) == spec.StatusRunning && s.Status.Client.Pid != 0
}

// completedSince says whether a client ran since before and ended as it should.
func completedSince(before, now *spec.Session) bool {
	return completed(now) && now.Status.Client.Incarnation > before.Status.Client.Incarnation
}

// completed says whether the last client has ended as it should. One that is there at a
// demand alone is not missed whatever ended it.
func completed(s *spec.Session) bool {
	switch end := s.Status.Client.LastTermination; spec.DisplayStatus(s) {
	case spec.StatusCompleted:
		return true
	case spec.StatusDormant:
		return end != nil && end.Incarnation == s.Status.Client.Incarnation && end.ExitCode != nil && *end.ExitCode == 0
	}
	return false
}

// demandPatience is how far off the next attempt may be to be waited for:
// demands are granted at most once in 10 seconds.
const demandPatience = 15 * time.Second

// refusal is why a session that was asked to run does not come up. For a moment
// (patience) what is seen may still be from before it was asked; an end of a
// client that is new since then is an answer at once.
func (g *globals) refusal(before *spec.Session, now look) error {
	s := now.session
	status := spec.DisplayStatus(s)
	died := s.Status.Client.Incarnation > before.Status.Client.Incarnation
	failed := s.Status.ConsecutiveDeaths > before.Status.ConsecutiveDeaths
	switch status {
	case spec.StatusUnknown:
		if now.waited < g.blindness {
			return nil
		}
	case spec.StatusCrashLoopBackOff:
		if !died && (now.waited < g.patience || !failed && g.soon(s)) {
			return nil
		}
	case spec.StatusDormant:
		if !died {
			return nil
		}
	case spec.StatusBlocked, spec.StatusInvalid, spec.StatusConflict, spec.StatusSuspended:
		if now.waited < g.patience {
			return nil
		}
	default:
		return nil
	}
	return refused(s, status)
}

// soon says whether the next attempt is near enough to be waited for.
func (g *globals) soon(s *spec.Session) bool {
	at := s.Status.NextAttemptTime
	return at != nil && at.Sub(g.now()) < demandPatience
}

// refused is the error with the stable reason that fits the status best.
func refused(s *spec.Session, status spec.Status) error {
	reason, message := primaryReason(s)
	code := map[spec.Status]metav1.StatusReason{
		spec.StatusUnknown:   server.ReasonTmuxUnavailable,
		spec.StatusInvalid:   server.ReasonInvalid,
		spec.StatusConflict:  server.ReasonConflict,
		spec.StatusSuspended: server.ReasonSuspended,
	}[status]
	switch {
	case reason == spec.ReasonWorkspaceMissing:
		code = server.ReasonWorkspaceMissing
	case code == "":
		code = server.ReasonProvisioningFailed
	}
	text := fmt.Sprintf("session %q does not come up (%s): %s", s.Name, reason, sentence(message))
	advice := strings.ReplaceAll(whatToDo(s, status, reason), "\n", " ")
	switch {
	case status == spec.StatusDormant:
		advice = fmt.Sprintf("It came up and has ended: muxlet logs %s", s.Name)
	case status == spec.StatusBlocked || status == spec.StatusUnknown || advice == "":
		// The message of what blocks a start says already what is missing.
		advice = fmt.Sprintf("See \"muxlet describe %s\".", s.Name)
	}
	if status == spec.StatusUnknown {
		advice = "What was asked for is written down and done when tmux answers. " + advice
	}
	text += " " + advice
	return server.NewError(code, s.Name, text)
}

// incarnationWords name a client that runs now.
func incarnationWords(verb string, s *spec.Session) string {
	if completed(s) {
		return fmt.Sprintf("%s and completed (incarnation %d)", verb, s.Status.Client.Incarnation)
	}
	return fmt.Sprintf("%s (incarnation %d, pid %d)", verb, s.Status.Client.Incarnation, s.Status.Client.Pid)
}
