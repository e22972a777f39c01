// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Claude Code tells of one question twice. Whoever has looked at it meanwhile is not asked
// again, and its age is that of the question.
func TestTheSecondReportOfAQuestionIsNoNewOne(t *testing.T) {
	asked := time.Unix(10_000, 0)
	told := &telling{}
	report := func(event string, kind observe.ReportKind, after time.Duration) {
		told.noteState(observe.Report{Event: event, Kind: kind, At: asked.Add(after)})
	}
	report("PermissionRequest", observe.ReportAsked, 0)
	report("Notification", observe.ReportAsked, 6*time.Second)
	assert.Equal(t, observe.LastReport{Kind: observe.ReportAsked, At: asked}, told.report)
	assert.Equal(t, asked.Add(6*time.Second), told.reportedAt)
	report("PermissionRequest", observe.ReportAsked, 8*time.Second)
	assert.Equal(t, asked.Add(8*time.Second), told.report.At, "another one")
	report("PostToolUse", observe.ReportWorking, 9*time.Second)
	report("Notification", observe.ReportAsked, 10*time.Second)
	assert.Equal(t, asked.Add(10*time.Second), told.report.At, "a question that only the notice tells of")
}

// A client whose turn has just begun is not idle for want of a look at its screen: an
// edit would replace it in the middle of the turn.
func TestATurnThatWasReportedCountsBeforeTheNextLook(t *testing.T) {
	now := time.Unix(10_000, 0)
	report := func(kind observe.ReportKind, at time.Duration) observe.LastReport {
		return observe.LastReport{Kind: kind, At: now.Add(at)}
	}
	told := &telling{report: report(observe.ReportDone, 0), sightBy: report(observe.ReportDone, 0)}
	told.sight = observe.Sight{At: now.Add(time.Second), Readiness: observe.Ready, Activity: spec.ActivityIdle}
	assert.Equal(t, told.sight, told.present())
	// Its hook ran before the look, and its report came after.
	told.report = report(observe.ReportPrompted, 900*time.Millisecond)
	assert.Equal(t, spec.ActivityWorking, told.present().Activity)
	told.sightBy = told.report
	assert.Equal(t, spec.ActivityIdle, told.present().Activity, "a look at the screen knows better")
	told.report = report(observe.ReportDone, 2*time.Second)
	assert.Equal(t, spec.ActivityIdle, told.present().Activity)
}
