// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

func TestASightTellsSinceWhenItIsWhatItIs(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	class := &spec.ClientClassSpec{Reports: spec.ReportsClaude}
	look := func(second int, before Sight, report LastReport, files Files) Sight {
		in := SightInput{
			Class: class, Now: at(second), StartedAt: start, Report: report, Files: files, Previous: before,
			ReportTTL: 5 * time.Minute, FocusAfter: 5 * time.Second,
		}
		s := in.Timed(JudgeSight(in))
		in.Previous = s
		require.Equal(t, s, in.Timed(JudgeSight(in)), "the same evidence again says the same")
		return s
	}
	idle := look(10, Sight{}, LastReport{}, Files{Activity: spec.ActivityIdle, ActivityAt: at(2)})
	require.Equal(t, at(2), idle.Since, "its files tell when it became idle")
	require.Zero(t, idle.WorkingAt)
	require.Zero(t, idle.WorkingSince)

	works := look(20, idle, LastReport{Kind: ReportPrompted, At: at(15)}, Files{Activity: spec.ActivityWorking, ActivityAt: at(16)})
	require.Equal(t, at(16), works.Since)
	require.Equal(t, at(16), works.WorkingSince)
	require.Equal(t, at(20), works.WorkingAt)

	still := look(30, works, LastReport{Kind: ReportWorking, At: at(29)}, Files{Activity: spec.ActivityWorking, ActivityAt: at(16)})
	require.Equal(t, at(16), still.Since, "a tool that is used is no new beginning")
	require.Equal(t, at(30), still.WorkingAt)

	done := look(40, still, LastReport{Kind: ReportDone, At: at(38)}, Files{Activity: spec.ActivityIdle, ActivityAt: at(39), TurnAt: at(37)})
	require.Equal(t, at(39), done.Since)
	require.Equal(t, at(37), done.TurnAt)
	require.Equal(t, at(30), done.WorkingAt, "when it was last seen to work is remembered")
	require.Zero(t, done.WorkingSince)

	again := look(60, done, LastReport{Kind: ReportDone, At: at(55)}, Files{})
	require.Equal(t, at(55), again.Since, "it has worked between two looks")
	require.Equal(t, at(37), again.TurnAt)
}
