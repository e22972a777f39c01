// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/muxlet/muxlet/spec"
)

// AsksSince is since when a client asks for a person's attention: a question waits, or
// it has ended work. It is zero while the client works and once its question was
// answered. before is what it came to for the look was; is is the next look, and told
// the last report if that came in between, else zero.
//
// A question that is still there asks no second time, however often its screen is drawn;
// the same question that is reported anew is another one.
func AsksSince(before time.Time, was, is Sight, told LastReport) time.Time {
	ended := told.Kind == ReportDone || told.Kind == ReportFailed
	switch {
	case is.Activity == spec.ActivityWorking:
		return time.Time{}
	case is.Attention != nil:
		same := was.Attention != nil && *was.Attention == *is.Attention && !before.IsZero()
		if same && (told.Kind != ReportAsked || !told.At.After(before)) {
			return before
		}
		return is.At
	case was.Activity == spec.ActivityWorking, ended, !was.At.IsZero() && is.TurnAt.After(was.TurnAt):
		if is.Activity == spec.ActivityIdle {
			return is.At
		}
		return before
	case was.Attention != nil:
		return time.Time{}
	}
	return before
}
