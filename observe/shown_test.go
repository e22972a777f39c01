// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// robotClass is a client whose screens are easy to write.
func robotClass() *spec.ClientClassSpec {
	return &spec.ClientClassSpec{
		Ready:   spec.ClassReady{Pattern: `^> `},
		Working: spec.ClassPattern{Pattern: `^working\b`},
		Attention: []spec.AttentionRule{
			{Pattern: `^Trust this folder\?`, Reason: spec.ReasonTrustRequired},
			{Pattern: `^Trust `, Reason: spec.ReasonChoiceRequired},
			{Pattern: `^Pick a color`, Reason: "ColorRequired"},
		},
		Failures: []spec.FailureRule{
			{Pattern: `^error: limit, try again (?:at|in)\s+(?P<until>[^.]+)\.`, Reason: spec.ReasonUsageLimited, Retry: spec.RetryHold},
			{Pattern: `^error: limit`, Reason: spec.ReasonUsageLimited, Retry: spec.RetryHold},
			{Pattern: `^error: `, Reason: spec.ReasonTurnFailed},
		},
	}
}

func screen(text string) []string { return strings.Split(text, "\n") }

func TestAScreenIsJudgedByTheRulesOfItsClass(t *testing.T) {
	now := time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)
	limited := func(until time.Time) *Failure {
		return &Failure{Reason: spec.ReasonUsageLimited, Retry: spec.RetryHold, Until: until, At: now}
	}
	for name, c := range map[string]struct {
		screen string
		want   Shown
	}{
		"nothing":            {"", Shown{Blank: true}},
		"spaces":             {"  \n\t\n", Shown{Blank: true}},
		"something unknown":  {"loading", Shown{}},
		"the composer":       {"hello\n\n> \n\n\n", Shown{Ready: true}},
		"a turn":             {"working 3s\n> ", Shown{Ready: true, Working: true}},
		"a question":         {"Trust this folder?\n 1. Yes\n", Shown{Attention: AttentionFor(spec.ReasonTrustRequired)}},
		"a class's own":      {"Pick a color", Shown{Attention: &Attention{"ColorRequired", "the client asks something that a person must answer"}}},
		"a failure":          {"error: no\n> ", Shown{Ready: true, Failure: &Failure{Reason: spec.ReasonTurnFailed, Retry: spec.RetryAgain, At: now}}},
		"a limit":            {"error: limit\n> ", Shown{Ready: true, Failure: limited(time.Time{})}},
		"a limit with time":  {"error: limit, try again at 2:38 PM.", Shown{Failure: limited(now.Add(38 * time.Minute)), until: "2:38 PM"}},
		"a wrapped time":     {"error: limit, try again at\n2:38\n  PM.", Shown{Failure: limited(now.Add(38 * time.Minute)), until: "2:38 PM"}},
		"a while":            {"error: limit, try again in 2 hours.", Shown{Failure: limited(now.Add(2 * time.Hour)), until: "2 hours"}},
		"a time of tomorrow": {"error: limit, try again at 1 am.", Shown{Failure: limited(now.Add(11 * time.Hour)), until: "1 am"}},
		"no time at all":     {"error: limit, try again at ease.", Shown{Failure: limited(time.Time{}), until: "ease"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := JudgeScreen(robotClass(), screen(c.screen), now)
			got.Lines = nil
			assert.Equal(t, c.want, got)
		})
	}
}

func TestOnlyTheLastLinesOfAScreenAreKept(t *testing.T) {
	var lines []string
	for _, c := range "abcdefghijklmnop" {
		lines = append(lines, strings.Repeat(string(c), 1000), "", "  ")
	}
	given := slices.Clone(lines)
	got := JudgeScreen(robotClass(), lines, time.Time{}).Lines
	require.Len(t, got, 10)
	assert.Equal(t, strings.Repeat("g", 400), got[0])
	assert.Equal(t, strings.Repeat("p", 400), got[9])
	assert.Equal(t, given, lines, "what was given stays as it was")
}

func TestAPatternThatIsNoneMatchesNothing(t *testing.T) {
	class := robotClass()
	class.Ready.Pattern, class.Attention[0].Pattern, class.Failures[0].Pattern = "(", "(", "("
	got := JudgeScreen(class, screen("> \nTrust this folder?\nerror: limit"), time.Time{})
	assert.False(t, got.Ready)
	assert.Equal(t, spec.ReasonChoiceRequired, got.Attention.Reason)
	assert.Equal(t, spec.ReasonUsageLimited, got.Failure.Reason)
	assert.Nil(t, Compiled(""))
	assert.False(t, Matches("", ""))
}
