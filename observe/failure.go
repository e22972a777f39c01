// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// ErrorKind is a client's own word for why a turn has failed, with the status of
// the HTTP answer; 0 when there was none.
type ErrorKind struct {
	Word   string
	Status int
}

// failureClass is what a failure means.
type failureClass struct {
	reason string
	retry  spec.RetryClass
}

var (
	authenticationFailed = failureClass{spec.ReasonAuthenticationFailed, spec.RetryHold}
	usageLimited         = failureClass{spec.ReasonUsageLimited, spec.RetryHold}
	rateLimited          = failureClass{spec.ReasonRateLimited, spec.RetryAgain}
	modelUnavailable     = failureClass{spec.ReasonModelUnavailable, spec.RetryAgain}
	turnFailed           = failureClass{spec.ReasonTurnFailed, spec.RetryAgain}
)

// failureWords are the words of the clients: error of Claude Code's StopFailure
// (2.1.332 knows those named first), and codex_error_info of Codex's rollouts
// (0.171.0).
var failureWords = map[string]failureClass{
	"authentication_failed":  authenticationFailed,
	"oauth_org_not_allowed":  authenticationFailed,
	"account_on_hold":        authenticationFailed,
	"verification_required":  authenticationFailed,
	"cloud_credential_error": authenticationFailed,
	"billing_error":          usageLimited,
	"rate_limit":             rateLimited,
	"overloaded":             modelUnavailable,
	"server_error":           modelUnavailable,

	"unauthorized":                      authenticationFailed,
	"usage_limit_exceeded":              usageLimited,
	"organization_usage_limit_exceeded": usageLimited,
	"organization_spend_limit_exceeded": usageLimited,
	"internal_server_error":             modelUnavailable,
	"server_overloaded":                 modelUnavailable,
	"http_connection_failed":            modelUnavailable,
	"response_stream_connection_failed": modelUnavailable,
	"response_stream_disconnected":      modelUnavailable,
	"response_too_many_failed_attempts": modelUnavailable,
}

// FailureOf returns what a client's own word for a failed turn means: one of spec's
// reasons, and whether others with the same credential would fail alike. A word that
// is not known is TurnFailed.
func FailureOf(word string) (reason string, retry spec.RetryClass) {
	class, known := failureWords[word]
	if !known {
		class = turnFailed
	}
	return class.reason, class.retry
}

// usageLimit is what Codex writes of a used-up plan, whatever kind it gives it; until
// catches when it may be used again.
var usageLimit = lazyregexp.New(`(?i)(?:hit your usage limit|usage limit (?:has been )?reached|quota exceeded|insufficient_quota)(?:.*?try again (?:at|in) (?P<until>[^.]+))?`)

// disconnected is what Codex writes of a connection that broke, which it counts among
// the others.
var disconnected = lazyregexp.New(`^(?:stream (?:disconnected|closed)|error sending request|connection (?:failed|closed))`)

// FailureOfError returns the failure that kind and message tell together; at is when
// it happened. Nothing of the message is kept.
func FailureOfError(kind ErrorKind, message string, at time.Time) Failure {
	f := Failure{At: at}
	f.Reason, f.Retry = FailureOf(kind.Word)
	class, told := failureOfStatus(kind.Status)
	if told && f.Retry != spec.RetryHold {
		// Words such as http_connection_failed say less than the status.
		f.Reason, f.Retry = class.reason, class.retry
	}
	if f.Reason == spec.ReasonTurnFailed && disconnected.MatchString(message) {
		f.Reason, f.Retry = modelUnavailable.reason, modelUnavailable.retry
	}
	if m := usageLimit.FindStringSubmatch(message); m != nil {
		f.Reason, f.Retry, f.Until = usageLimited.reason, usageLimited.retry, ParseUntil(m[1], at)
	}
	return f
}

func failureOfStatus(status int) (failureClass, bool) {
	switch {
	case status == 401 || status == 403:
		return authenticationFailed, true
	case status == 402:
		return usageLimited, true
	case status == 429:
		return rateLimited, true
	case status >= 500:
		return modelUnavailable, true
	}
	return failureClass{}, false
}
