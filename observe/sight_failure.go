// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/muxlet/muxlet/spec"
)

// failure is that of the last turn. It ends when a turn goes well, not when another
// begins.
func (in SightInput) failure(activity spec.Activity) *Failure {
	failed, at := in.lastTurn()
	previous := in.Previous.Failure
	switch {
	case failed != nil:
		if previous != nil && previous.At.Equal(failed.At) {
			// What the screen has added to it stays when it has scrolled off.
			failed = previous
		}
		return in.refine(failed)
	case !at.IsZero() && (previous == nil || !previous.At.After(at)):
		return nil
	case in.screenTells(activity):
		return in.shownFailure(activity)
	}
	return previous
}

// lastTurn is how the last turn ended, and when, by reports and files; zero when they
// do not tell.
func (in SightInput) lastTurn() (failed *Failure, at time.Time) {
	if !in.Files.TurnAt.IsZero() {
		failed, at = in.Files.Failure, in.Files.TurnAt
	}
	if in.Report.At.Before(at) {
		return failed, at
	}
	switch in.Report.Kind {
	case ReportDone:
		return nil, in.Report.At
	case ReportFailed:
		reason, retry := FailureOf(in.Report.Failure)
		return &Failure{Reason: reason, Retry: retry, At: in.Report.At}, in.Report.At
	case ReportStarted, ReportPrompted, ReportWorking, ReportAsked, ReportEnded, ReportOther:
	}
	return failed, at
}

// refine adds what only the screen says: Claude Code reports rate_limit for a plan
// that is used up, and its screen says until when.
func (in SightInput) refine(f *Failure) *Failure {
	if in.Shown == nil || in.Shown.Failure == nil {
		return f
	}
	seen := in.Shown.Failure
	same := seen.Reason == f.Reason
	vague := f.Retry != spec.RetryHold && (seen.Retry == spec.RetryHold || f.Reason == spec.ReasonTurnFailed)
	if !same && !vague || same && !f.Until.IsZero() {
		return f
	}
	return &Failure{Reason: seen.Reason, Retry: seen.Retry, Until: ParseUntil(in.Shown.until, f.At.In(in.Now.Location())), At: f.At}
}

// screenTells: nothing else has told how the turn ended. A client that resumes its
// conversation shows the failure of its predecessor's last turn: where hooks or files
// tell of turns, one must have been begun.
func (in SightInput) screenTells(activity spec.Activity) bool {
	if in.Shown == nil {
		return false
	}
	switch in.Class.Reports {
	case spec.ReportsClaude:
	case spec.ReportsCodex:
		if in.Files.Activity != spec.ActivityUnknown {
			return false
		}
	case spec.ReportsNone, "":
		return true
	}
	switch in.Report.Kind {
	case ReportPrompted, ReportWorking, ReportAsked:
		return true
	case "":
		ended := in.Previous.Activity == spec.ActivityWorking && activity != spec.ActivityWorking
		return ended || in.Previous.Failure != nil || in.idleAfterATurn()
	case ReportStarted, ReportDone, ReportFailed, ReportEnded, ReportOther:
	}
	return false
}

// settles is how long after its start a client may still become idle for the first
// time.
const settles = 30 * time.Second

// idleAfterATurn: nothing was reported to this daemon, and the client's files say that
// it has become idle long after its start: what stands on its screen is of a turn of
// its own, not of its predecessor's.
func (in SightInput) idleAfterATurn() bool {
	return in.Files.Activity == spec.ActivityIdle && in.Files.ActivityAt.Sub(in.StartedAt) >= settles
}

// shownFailure is the failure by the screen alone.
func (in SightInput) shownFailure(activity spec.Activity) *Failure {
	seen, previous := in.Shown.Failure, in.Previous.Failure
	switch {
	case seen == nil && (activity != spec.ActivityIdle || in.Report.Kind != ""):
		// Hooks that work tell when a turn goes well.
		return previous
	case seen == nil:
		return nil
	case previous != nil && previous.Reason == seen.Reason && in.Previous.Activity != spec.ActivityWorking:
		// It is the same text still: its time was read when it was new.
		return previous
	case in.Report.Kind == "" && in.idleAfterATurn():
		found := *seen
		found.At = in.Files.ActivityAt
		found.Until = ParseUntil(in.Shown.until, found.At.In(in.Now.Location()))
		return &found
	}
	return seen
}
