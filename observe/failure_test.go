// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

func TestTheTimeOfARetryIsReadAsClientsWriteIt(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	// A Sunday.
	now := time.Date(2026, 11, 29, 14, 0, 30, 0, berlin)
	at := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2026, month, day, hour, minute, 0, 0, berlin)
	}
	for text, want := range map[string]time.Time{
		"2:38 PM":                     at(11, 29, 14, 38),
		"2:38 p.m.":                   at(11, 29, 14, 38),
		"2:00 PM":                     at(11, 29, 14, 0),
		"1:38 PM":                     at(11, 30, 13, 38),
		"3pm":                         at(11, 29, 15, 0),
		"3am":                         at(11, 30, 3, 0),
		"12am":                        at(11, 30, 0, 0),
		"11:38 PM.":                   at(11, 29, 23, 38),
		"15:04":                       at(11, 29, 15, 4),
		"resets 3pm (UTC)":            time.Date(2026, 11, 29, 15, 0, 0, 0, time.UTC),
		"12pm (UTC)":                  time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		"3:30am (America/New_York)":   time.Date(2026, 11, 30, 3, 30, 0, 0, newYork),
		"Nov 30 at 3pm":               at(11, 30, 15, 0),
		"Nov 30, 3pm":                 at(11, 30, 15, 0),
		"Nov 30":                      at(11, 30, 0, 0),
		"30 November 15:04":           at(11, 30, 15, 4),
		"Nov 28 at 3pm":               at(11, 28, 15, 0),
		"Dec 1st, 2026 3:12 PM":       at(12, 1, 15, 12),
		"2026-12-01 15:12":            at(12, 1, 15, 12),
		"Jan 2 at 9am":                time.Date(2027, 1, 2, 9, 0, 0, 0, berlin),
		"tomorrow at 9:15 am":         at(11, 30, 9, 15),
		"Monday at 9:00 AM":           at(11, 30, 9, 0),
		"Sun 1pm":                     at(12, 6, 13, 0),
		"in 2 hours":                  now.Add(2 * time.Hour),
		"2h30m":                       now.Add(150 * time.Minute),
		"in 1 day, 3 hours and 5 min": now.Add(27*time.Hour + 5*time.Minute),
		"3 days 4 hours 5 minutes.":   now.Add(76*time.Hour + 5*time.Minute),
		"1.5s":                        now.Add(1500 * time.Millisecond),
		"2026-11-30T15:00:00Z":        time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC),
		"2026-11-30T15:00:00+01:00":   at(11, 30, 15, 0),
		"1796050800":                  time.Unix(1796050800, 0),
		"1796050800000":               time.Unix(1796050800, 0),
	} {
		assert.WithinDuration(t, want, ParseUntil(text, now), 0, text)
	}
	for _, text := range []string{
		"", "soon", "25:00", "13pm", "Feb 30 at 3pm", "in 3 bananas", "3pm (Nowhere/City)", "in 100000 weeks", "9999999999",
		"2046-01-01T00:00:00Z", "when it is done at 3pm", "in", "(UTC)", "99999999999999999999999999 hours", "mo",
	} {
		assert.Zero(t, ParseUntil(text, now), text)
	}
}

func TestTheTimeOfARetryCountsByTheCalendar(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	// The night has 25 hours.
	now := time.Date(2026, 10, 24, 15, 0, 0, 0, berlin)
	assert.WithinDuration(t, now.Add(24*time.Hour), ParseUntil("2pm", now), 0)
}

func TestAClientsOwnWordForAFailureHasAReason(t *testing.T) {
	for word, want := range map[string]struct {
		reason string
		retry  spec.RetryClass
	}{
		"authentication_failed": {spec.ReasonAuthenticationFailed, spec.RetryHold},
		"billing_error":         {spec.ReasonUsageLimited, spec.RetryHold},
		"rate_limit":            {spec.ReasonRateLimited, spec.RetryAgain},
		"overloaded":            {spec.ReasonModelUnavailable, spec.RetryAgain},
		"server_error":          {spec.ReasonModelUnavailable, spec.RetryAgain},
		"usage_limit_exceeded":  {spec.ReasonUsageLimited, spec.RetryHold},
		"invalid_request":       {spec.ReasonTurnFailed, spec.RetryAgain},
		"":                      {spec.ReasonTurnFailed, spec.RetryAgain},
		"a word of tomorrow":    {spec.ReasonTurnFailed, spec.RetryAgain},
	} {
		reason, retry := FailureOf(word)
		assert.Equal(t, want.reason, reason, word)
		assert.Equal(t, want.retry, retry, word)
	}
}

func TestAnErrorIsClassifiedByKindStatusAndMessage(t *testing.T) {
	at := time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		kind    ErrorKind
		message string
		want    Failure
	}{
		"401": {ErrorKind{"http_connection_failed", 401}, "unexpected status 401 Unauthorized",
			Failure{Reason: spec.ReasonAuthenticationFailed, Retry: spec.RetryHold, At: at}},
		"429": {ErrorKind{"response_too_many_failed_attempts", 429}, "exceeded retry limit, last status: 429 Too Many Requests",
			Failure{Reason: spec.ReasonRateLimited, Retry: spec.RetryAgain, At: at}},
		"529": {ErrorKind{"http_connection_failed", 529}, "unexpected status 529",
			Failure{Reason: spec.ReasonModelUnavailable, Retry: spec.RetryAgain, At: at}},
		"a dropped connection": {ErrorKind{"other", 0}, "stream disconnected before completion: error sending request",
			Failure{Reason: spec.ReasonModelUnavailable, Retry: spec.RetryAgain, At: at}},
		"something else": {ErrorKind{"other", 0}, "what the user said: 401", Failure{Reason: spec.ReasonTurnFailed, Retry: spec.RetryAgain, At: at}},
		"a used-up plan": {ErrorKind{"usage_limit_exceeded", 0},
			"You’ve hit your usage limit. Upgrade to Pro (https://x.y/pro), visit https://x.y/usage to purchase more credits or try again at 11:38 PM.",
			Failure{Reason: spec.ReasonUsageLimited, Retry: spec.RetryHold, At: at, Until: time.Date(2026, 11, 29, 23, 38, 0, 0, time.UTC)}},
		"a used-up plan, told by words alone": {ErrorKind{}, "You've hit your usage limit. Try again in 3 days 4 hours.",
			Failure{Reason: spec.ReasonUsageLimited, Retry: spec.RetryHold, At: at, Until: at.Add(76 * time.Hour)}},
		"a used-up plan, no time": {ErrorKind{"usage_limit_exceeded", 429}, "No more for now.",
			Failure{Reason: spec.ReasonUsageLimited, Retry: spec.RetryHold, At: at}},
	} {
		assert.Equal(t, c.want, FailureOfError(c.kind, c.message, at), name)
	}
}
