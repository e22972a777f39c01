// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"time"

	"github.com/muxlet/muxlet/spec"
)

// defaultReadyTimeout is how long a client may take to be ready.
const defaultReadyTimeout = 30 * time.Second

// LastReport is the last report of a client's incarnation. Its kind is empty when
// there was none.
type LastReport struct {
	Kind ReportKind
	At   time.Time
	// Failure is the client's word for why the turn has failed.
	Failure string
}

// SightInput is what JudgeSight goes by. None of it says whether the client lives.
type SightInput struct {
	Class *spec.ClientClassSpec
	Now   time.Time
	// StartedAt is when the client was executed. What its files tell of the time before
	// is its predecessor's.
	StartedAt time.Time
	// WasReady: this incarnation has been ready.
	WasReady bool
	// Report is its last one.
	Report LastReport
	// Files as just read; the zero value when they were not.
	Files Files
	// Shown is the screen as just judged; nil when it was not looked at.
	Shown *Shown
	// Previous is the last Sight of the incarnation; zero when there was none.
	Previous Sight
	// ReportTTL is how long a report that says Working is believed, FocusAfter how long
	// a report stands against what files and screen show.
	ReportTTL, FocusAfter time.Duration
}

// JudgeSight takes together what a client has reported, what its files tell and what
// its screen shows. Called again with its own result and the same evidence it comes
// to the same result.
func JudgeSight(in SightInput) Sight {
	in.Files = in.currentFiles()
	if in.Shown != nil && in.Shown.Blank {
		// A client that redraws its screen has not changed its mind.
		in.Shown = nil
	}
	s := Sight{At: in.Previous.At, Conversation: in.Files.Conversation}
	if in.Shown != nil || in.Files.Activity != spec.ActivityUnknown {
		s.At = in.Now
	}
	s.Activity = in.activity()
	s.Attention = in.attention(s.Activity)
	s.Failure = in.failure(s.Activity)
	switch {
	case s.Attention != nil:
		s.Activity, s.Readiness, s.Screen = spec.ActivityAwaitingInput, NotReady, in.screen()
	case in.ready():
		s.Readiness = Ready
	case in.Shown != nil:
		s.Readiness = NotReady
	default:
		s.Readiness = in.Previous.Readiness
	}
	return s
}

// currentFiles leaves out what is older than the client: a turn that its predecessor
// was killed in is never ended in the rollout, and what failed then may go well now.
func (in SightInput) currentFiles() Files {
	f := in.Files
	if f.Activity == "" || !f.ActivityAt.IsZero() && f.ActivityAt.Before(in.StartedAt) {
		f.Activity, f.ActivityAt = spec.ActivityUnknown, time.Time{}
	}
	if f.TurnAt.Before(in.StartedAt) {
		f.TurnAt, f.Failure = time.Time{}, nil
	}
	return f
}

// statement is what one witness says of the activity.
type statement struct {
	activity spec.Activity
	at       time.Time
}

// activity weighs the witnesses: a question on the screen, what it shows to be worked
// on, files and reports by their age, and at last the composer with nothing that is
// being worked on.
func (in SightInput) activity() spec.Activity {
	reported := in.reported()
	shown := in.Shown
	if shown == nil {
		shown = &Shown{}
	}
	composer := shown.Ready && !shown.Working && in.Class.Working.Pattern != ""
	switch {
	case shown.Attention != nil:
		return spec.ActivityAwaitingInput
	case shown.Working && !in.justIdle(reported):
		return spec.ActivityWorking
	case in.filesPrevail(reported):
		return in.Files.Activity
	case composer && !in.fresh(reported.at):
		return spec.ActivityIdle
	case reported.activity != "":
		return in.stillReported(reported)
	case in.Shown == nil && in.Now.Sub(in.Previous.At) <= in.ReportTTL && in.Previous.Activity != "":
		return in.Previous.Activity
	}
	return spec.ActivityUnknown
}

// stillReported: a client that works reports now and then. One that has fallen silent
// may have been interrupted, of which no hook tells; one that is idle or asks has
// nothing to report.
func (in SightInput) stillReported(s statement) spec.Activity {
	if s.activity == spec.ActivityWorking && in.Now.Sub(s.at) > in.ReportTTL {
		return spec.ActivityUnknown
	}
	return s.activity
}

// reported is what the last report says of the activity.
func (in SightInput) reported() statement {
	said := statement{at: in.Report.At}
	switch in.Report.Kind {
	case ReportStarted, ReportDone, ReportFailed:
		said.activity = spec.ActivityIdle
	case ReportPrompted, ReportWorking:
		said.activity = spec.ActivityWorking
	case ReportAsked:
		said.activity = spec.ActivityAwaitingInput
	case ReportEnded, ReportOther:
	}
	return said
}

// fresh: so short a time ago that screen and files may not have followed yet.
func (in SightInput) fresh(at time.Time) bool {
	return in.Now.Sub(at) <= in.FocusAfter
}

// justIdle: the turn has ended a moment ago, and the screen may still show it.
func (in SightInput) justIdle(reported statement) bool {
	return reported.activity == spec.ActivityIdle && in.fresh(reported.at) ||
		in.Files.Activity == spec.ActivityIdle && in.fresh(in.Files.ActivityAt)
}

// filesPrevail: files say how it is now, but are written a moment after the hook has
// run. A report of the last seconds stands against an older entry.
func (in SightInput) filesPrevail(reported statement) bool {
	switch {
	case in.Files.Activity == spec.ActivityUnknown:
		return false
	case reported.activity == "" || !in.fresh(reported.at):
		return true
	}
	return !in.Files.ActivityAt.Before(reported.at)
}

// attention is the question that waits, given the activity.
func (in SightInput) attention(activity spec.Activity) *Attention {
	switch {
	case in.Shown != nil && in.Shown.Attention != nil:
		return in.Shown.Attention
	case activity == spec.ActivityAwaitingInput && in.Previous.Attention != nil:
		return in.Previous.Attention
	case activity == spec.ActivityAwaitingInput:
		return AttentionFor(in.waitingReason())
	case in.Shown == nil && in.Previous.Attention != nil && !in.toldSince(in.Previous.At):
		return in.Previous.Attention
	case in.Shown != nil && !in.ready() && in.Now.Sub(in.StartedAt) >= in.readyTimeout():
		return AttentionFor(spec.ReasonQuestion)
	}
	return nil
}

// waitingReason is for a question that only a report or the files tell of.
func (in SightInput) waitingReason() string {
	asked := in.Report.Kind == ReportAsked && in.Files.Activity != spec.ActivityAwaitingInput
	if asked || strings.Contains(in.Files.Waiting, "permission") {
		return spec.ReasonPermissionRequired
	}
	return spec.ReasonQuestion
}

// toldSince: something has been heard of the client since then.
func (in SightInput) toldSince(at time.Time) bool {
	return in.reported().activity != "" && in.Report.At.After(at) ||
		in.Files.Activity != spec.ActivityUnknown && in.Files.ActivityAt.After(at)
}

func (in SightInput) readyTimeout() time.Duration {
	if s := in.Class.Ready.TimeoutSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return defaultReadyTimeout
}

// ready: it has been, or something proves that it can take a turn. A client that
// works on a turn was ready for it.
func (in SightInput) ready() bool {
	class, shown := in.Class, in.Shown
	mute := class.Reports == spec.ReportsNone || class.Reports == ""
	switch {
	case in.WasReady, in.Previous.Readiness == Ready:
		return true
	case in.Report.Kind != "" && in.Report.Kind != ReportEnded:
		return true
	case in.Files.Activity == spec.ActivityIdle, in.Files.Activity == spec.ActivityWorking:
		return true
	case mute && class.Ready.Pattern == "":
		return true
	}
	return shown != nil && (shown.Ready || shown.Working)
}

// screen is what a person sees of the question.
func (in SightInput) screen() []string {
	if in.Shown == nil {
		return in.Previous.Screen
	}
	return in.Shown.Lines
}
