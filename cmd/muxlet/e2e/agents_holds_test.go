// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// longBackOff is one at which a hold without a time does not end within a test.
func longBackOff() settings {
	return settings{"backOff": settings{"initial": "20ms", "max": "10m"}}
}

// E2: a failed credential holds those that share it, and nobody else.
func TestAnAgentWithAnotherCredentialIsNotHeld(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a, longBackOff())
		w.start()
		w.chats("one")
		two := w.chats("two")
		other := w.elsewhere()
		document := strings.ReplaceAll(w.agentDocument("three", w.work, nil), w.config, other)
		w.write("three.yaml", strings.Replace(document, "value: \""+agentKey, "value: \"another-"+agentKey, 1))
		w.ready("three")
		w.turn("three", "first of three", 1, "first of three")
		three := w.kept("three", 1)
		w.control(`{"mode":"401"}`)
		w.types("one", "this fails")
		w.becomes("one", "known to have failed", func(s *spec.Session) bool {
			return activity(s).Failure == spec.ReasonAuthenticationFailed
		})
		signal(t, pid(two), unix.SIGKILL)
		signal(t, pid(three), unix.SIGKILL)
		w.back(three)
		held := w.becomes("two", "held", func(s *spec.Session) bool {
			return pid(s) == 0 && reason(s, spec.ConditionReady) == spec.ReasonAuthenticationFailed
		})
		assert.NotNil(t, held.Status.NextAttemptTime)
		w.stays(held, time.Second)
		events := w.does("get", "events")
		assert.Len(t, regexp.MustCompile(`(?m)Warning +`+spec.ReasonAuthenticationFailed+` `).FindAllString(events, -1), 1, events)
	})
}

// E3: a limit with a stated time is waited for, by all that share it; a person's word
// ends the wait.
func TestAgentsWaitForTheTimeThatALimitStates(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a, longBackOff())
		w.start()
		w.chats("one")
		two := w.chats("two")
		until := time.Now().Add(2 * time.Hour).Truncate(time.Minute)
		w.control(fmt.Sprintf(`{"mode":"429","usageLimit":true,"resetAt":%q}`, until.Format(time.RFC3339)))
		w.types("one", "this fails")
		w.becomes("one", "known to be limited", func(s *spec.Session) bool {
			return activity(s).Failure == spec.ReasonUsageLimited && activity(s).RetryTime != nil
		})
		signal(t, pid(two), unix.SIGKILL)
		held := w.becomes("two", "held", func(s *spec.Session) bool {
			return pid(s) == 0 && reason(s, spec.ConditionReady) == spec.ReasonUsageLimited && s.Status.NextAttemptTime != nil
		})
		assert.WithinDuration(t, until, held.Status.NextAttemptTime.Time, 2*time.Minute)
		w.stays(held, time.Second)
		w.control("{}")
		w.does("resume", "two")
		w.resumed(w.back(two), conversation(two))
		w.turn("two", "beta", 2, "first of two")
	})
}

// B4: eight die at once, in the middle of what they report.
func TestEightAgentsThatDieWhileTheyReportGetTheirConversationsBack(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		var before []*spec.Session
		for n := range 8 {
			before = append(before, w.chats(fmt.Sprintf("s%d", n)))
		}
		w.control(`{"delay":"200ms"}`)
		for _, s := range before {
			w.types(s.Name, "in the middle")
		}
		for _, s := range before {
			signal(t, pid(s), unix.SIGKILL)
		}
		ids := map[string]bool{}
		for _, s := range before {
			after := w.back(s)
			w.resumed(after, conversation(s))
			ids[conversation(after)] = true
			words := strings.Join(w.started(s.Name, 2).Argv, " ")
			for _, other := range before {
				require.Equal(t, other == s, strings.Contains(words, conversation(other)))
			}
		}
		assert.Len(t, ids, 8)
	})
}
