// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// activity of the session; the zero value when nothing is known of it.
func activity(s *spec.Session) spec.ActivityStatus {
	if s.Status.Activity == nil {
		return spec.ActivityStatus{}
	}
	return *s.Status.Activity
}

// E3 and the failures of the model: a client that lives is never ended for them.
func TestAnAgentTellsOfAFailureOfTheModelAndOfItsEnd(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		for mode, want := range a.failures {
			t.Run(mode, func(t *testing.T) {
				t.Parallel()
				w := newAgentWorld(t, a)
				if mode == "limit" {
					w.more = a.planned
				}
				w.start()
				w.employ("s")
				w.ready("s")
				w.turn("s", "alpha", 1, "alpha")
				before := w.kept("s", 1)
				c := control{Mode: mode}
				if mode == "limit" {
					until := time.Now().Add(3 * time.Hour).Truncate(time.Minute)
					c = control{Mode: "429", UsageLimit: true, ResetAt: &until, Message: "The usage limit has been reached"}
				}
				w.model.behaves(c)
				w.types("s", "beta")
				s := w.becomes("s", "known to have failed: "+want, func(s *spec.Session) bool { return activity(s).Failure == want })
				if c.ResetAt != nil {
					require.NotNil(t, activity(s).RetryTime)
					assert.WithinDuration(t, *c.ResetAt, activity(s).RetryTime.Time, 2*time.Minute)
				}
				w.stays(before, 3*time.Second)
				assert.Equal(t, pid(before), pid(w.get("s")))
				w.model.behaves(control{Mode: "ok"})
				w.turn("s", "gamma", 3, "alpha")
				s = w.becomes("s", "known to do well again", func(s *spec.Session) bool {
					return activity(s).Failure == "" && activity(s).State == spec.ActivityIdle
				})
				assert.Equal(t, conversation(before), conversation(s))
				assert.Equal(t, before.Status.Client.Incarnation, s.Status.Client.Incarnation)
			})
		}
	})
}

func TestAnAgentThatWaitsForTheModelWorks(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		w.employ("s")
		w.ready("s")
		w.model.behaves(control{Mode: "hang"})
		w.types("s", "alpha")
		s := w.becomes("s", "working", func(s *spec.Session) bool { return activity(s).State == spec.ActivityWorking })
		w.holds("it works and lives", 5*time.Second, func() bool {
			now := w.get("s")
			return now != nil && pid(now) == pid(s) && activity(now).State == spec.ActivityWorking && activity(now).Failure == ""
		})
		w.model.behaves(control{Mode: "ok"})
		w.becomes("s", "idle", func(s *spec.Session) bool { return activity(s).State == spec.ActivityIdle })
		w.sees("s", "the answer", func() bool { return strings.Contains(w.screen(w.pane("s")), "turns=1 first=alpha") })
	})
}

// E2: the others would fail alike.
func TestAgentsThatShareACredentialAreHeldTogether(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		// A failure without a time is waited for as long as the longest back-off.
		w := newAgentWorld(t, a, settings{"backOff": settings{"initial": "20ms", "max": "10m"}})
		w.start()
		for _, name := range []string{"one", "two"} {
			w.employ(name)
			w.ready(name)
			w.turn(name, "alpha", 1, "alpha")
		}
		two := w.kept("two", 1)
		w.model.behaves(control{Mode: "401"})
		w.types("one", "beta")
		w.becomes("one", "known to have failed", func(s *spec.Session) bool {
			return activity(s).Failure == spec.ReasonAuthenticationFailed
		})
		signal(t, pid(two), unix.SIGKILL)
		held := w.becomes("two", "held", func(s *spec.Session) bool {
			return pid(s) == 0 && reason(s, spec.ConditionReady) == spec.ReasonAuthenticationFailed
		})
		w.stays(held, 3*time.Second)
		var told []string
		for line := range strings.Lines(w.events("one") + w.events("two")) {
			if strings.Contains(line, spec.ReasonAuthenticationFailed) {
				told = append(told, line)
			}
		}
		assert.Len(t, told, 1)
		w.model.behaves(control{Mode: "ok"})
		w.turn("one", "gamma", 3, "alpha")
		w.back(two)
		w.turn("two", "beta", 2, "alpha")
	})
}
