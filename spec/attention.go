// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"k8s.io/apimachinery/pkg/api/meta"
)

// AsksForAttention says whether a session asks for a person's attention: its client has
// a question, or has ended work, and nobody has had it in front of them for long enough
// since. A question that was seen still waits, and is still the condition InputRequired.
func AsksForAttention(s *Session) bool {
	asks := meta.IsStatusConditionTrue(s.Status.Conditions, ConditionInputRequired)
	a := s.Status.Activity
	switch {
	case a == nil || a.AsksSince == nil:
		return asks
	case a.State != ActivityAwaitingInput && a.State != ActivityIdle && !asks:
		return false
	}
	return a.SeenAt == nil || a.SeenAt.Before(a.AsksSince)
}
