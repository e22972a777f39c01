// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/muxlet/muxlet/spec"
)

// Timed completes what JudgeSight has made of in: since when it is what it is, and what
// the client's files tell of its turns.
func (in SightInput) Timed(s Sight) Sight {
	in.Files = in.currentFiles()
	s.Since, s.WorkingAt, s.TurnAt = in.since(s), in.Previous.WorkingAt, later(in.Previous.TurnAt, in.Files.TurnAt)
	if s.Activity == spec.ActivityWorking {
		s.WorkingAt = later(s.WorkingAt, s.At)
	}
	if in.Files.Activity == spec.ActivityWorking {
		s.WorkingSince = in.Files.ActivityAt
	}
	return s
}

// since is when the activity became what it is. A client that was idle at two looks may
// have worked in between: the newer witness counts. One that works tells so again and
// again, and works since the first time.
func (in SightInput) since(s Sight) time.Time {
	var told time.Time
	if in.Files.Activity == s.Activity {
		told = in.Files.ActivityAt
	}
	if reported := in.reported(); reported.activity == s.Activity {
		told = later(told, reported.at)
	}
	switch before := in.Previous; {
	case before.Activity == s.Activity && !before.Since.IsZero() && s.Activity == spec.ActivityIdle:
		return later(before.Since, told)
	case before.Activity == s.Activity && !before.Since.IsZero():
		return before.Since
	case told.IsZero():
		return in.Now
	}
	return told
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
