// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/spec"
)

func TestAClientAsksOnceForEachQuestionAndEachEndOfWork(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	trust, permission := AttentionFor(spec.ReasonTrustRequired), AttentionFor(spec.ReasonPermissionRequired)
	sight := func(activity spec.Activity, seconds int, attention *Attention) Sight {
		return Sight{Activity: activity, At: at(seconds), Attention: attention}
	}
	idle, working, asking := spec.ActivityIdle, spec.ActivityWorking, spec.ActivityAwaitingInput
	turned := func(s Sight, seconds int) Sight { s.TurnAt = at(seconds); return s }
	report := func(kind ReportKind, seconds int) LastReport { return LastReport{Kind: kind, At: at(seconds)} }
	for name, r := range map[string]struct {
		before  time.Time
		was, is Sight
		told    LastReport
		want    time.Time
	}{
		"the first look at an idle client":               {is: sight(idle, 9, nil)},
		"the first look at one with an old turn":         {is: turned(sight(idle, 9, nil), 3)},
		"it goes on to be idle":                          {was: sight(idle, 1, nil), is: sight(idle, 9, nil)},
		"it begins to work":                              {before: at(1), was: sight(idle, 1, nil), is: sight(working, 9, nil)},
		"it has worked":                                  {was: sight(working, 1, nil), is: sight(idle, 9, nil), want: at(9)},
		"it has worked and is idle since":                {before: at(9), was: sight(idle, 9, nil), is: sight(idle, 12, nil), want: at(9)},
		"a turn between two looks, by a report":          {was: sight(idle, 1, nil), is: sight(idle, 9, nil), told: report(ReportDone, 8), want: at(9)},
		"a turn that failed between two looks":           {was: sight(idle, 1, nil), is: sight(idle, 9, nil), told: report(ReportFailed, 8), want: at(9)},
		"a turn between two looks, by its files":         {was: turned(sight(idle, 1, nil), 1), is: turned(sight(idle, 9, nil), 8), want: at(9)},
		"a report that says nothing of an end":           {was: sight(idle, 1, nil), is: sight(idle, 9, nil), told: report(ReportStarted, 8)},
		"it is not known any more what it does":          {was: sight(working, 1, nil), is: sight(spec.ActivityUnknown, 9, nil)},
		"a question":                                     {was: sight(working, 1, nil), is: sight(asking, 9, trust), want: at(9)},
		"a question at the first look":                   {is: sight(asking, 9, trust), want: at(9)},
		"the question is still there":                    {before: at(1), was: sight(asking, 1, trust), is: sight(asking, 9, trust), want: at(1)},
		"another question":                               {before: at(1), was: sight(asking, 1, trust), is: sight(asking, 9, permission), want: at(9)},
		"the same question once more":                    {before: at(1), was: sight(asking, 1, permission), is: sight(asking, 9, permission), told: report(ReportAsked, 8), want: at(9)},
		"the report of the question that is there":       {before: at(8), was: sight(asking, 8, permission), is: sight(asking, 9, permission), told: report(ReportAsked, 7), want: at(8)},
		"the question was answered and nothing followed": {before: at(1), was: sight(asking, 1, trust), is: sight(idle, 9, nil)},
		"it was answered and all is done":                {before: at(1), was: sight(asking, 1, permission), is: sight(idle, 9, nil), told: report(ReportDone, 8), want: at(9)},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, r.want, AsksSince(r.before, r.was, r.is, r.told))
		})
	}
}
