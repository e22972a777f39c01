// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/spec"
)

const (
	// shownLines is how many lines of a question are kept for a person, and shownWidth
	// how much of each, in characters.
	shownLines = 10
	shownWidth = 400
	// maxScreen is how many lines a screen can have that is judged.
	maxScreen = 1000
	// maxUntilText is the longest text that can name a time.
	maxUntilText = 80
	// untilGroup is the group of a failure's pattern that catches that text.
	untilGroup = "until"
)

// Shown is what a screen shows to the rules of a client class.
type Shown struct {
	// Blank: nothing at all. A screen that is being drawn is blank, too.
	Blank bool
	// Ready and Working say whether the class's patterns match.
	Ready, Working bool
	// Attention is the question that it shows; nil when no rule knows one.
	Attention *Attention
	// Failure is that of the last turn; nil when no rule knows one. Its At is when the
	// screen was judged.
	Failure *Failure
	// Lines are the last with content, at most 10.
	Lines []string
	// until is how the failure's text names the time, to be read again once it is known
	// when it was written.
	until string
}

// JudgeScreen applies the rules of a client class to the lines that are on the
// screen, its history left out. The first rule that matches counts. now is when the
// screen was captured; its location is what the client's times are in.
func JudgeScreen(class *spec.ClientClassSpec, lines []string, now time.Time) Shown {
	lines = lines[max(0, len(lines)-maxScreen):]
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return Shown{Blank: true}
	}
	text := strings.Join(lines, "\n")
	s := Shown{
		Ready: Matches(class.Ready.Pattern, text), Working: Matches(class.Working.Pattern, text),
		Lines: lastLines(lines),
	}
	for _, rule := range class.Attention {
		if Matches(rule.Pattern, text) {
			s.Attention = AttentionFor(rule.Reason)
			break
		}
	}
	for _, rule := range class.Failures {
		if re := Compiled(rule.Pattern); re != nil && s.fails(rule, re, text, now) {
			break
		}
	}
	return s
}

func (s *Shown) fails(rule spec.FailureRule, re *regexp.Regexp, text string, now time.Time) bool {
	match := re.FindStringSubmatch(text)
	if match == nil {
		return false
	}
	s.Failure = &Failure{Reason: rule.Reason, Retry: rule.Retry, At: now}
	if s.Failure.Retry == "" {
		s.Failure.Retry = spec.RetryAgain
	}
	if i := re.SubexpIndex(untilGroup); i > 0 && len(match[i]) <= maxUntilText {
		// A long line is wrapped.
		s.until = strings.Join(strings.Fields(match[i]), " ")
		s.Failure.Until = ParseUntil(s.until, now)
	}
	return true
}

// lastLines are the last with content, in their order.
func lastLines(lines []string) []string {
	var last []string
	for _, line := range slices.Backward(lines) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if runes := []rune(line); len(runes) > shownWidth {
			line = string(runes[:shownWidth])
		}
		if last = append(last, line); len(last) == shownLines {
			break
		}
	}
	slices.Reverse(last)
	return last
}

// questions say what a client asks, without its words.
var questions = map[string]string{
	spec.ReasonTrustRequired:      "the client asks whether the directory is to be trusted",
	spec.ReasonLoginRequired:      "the client asks for a login or a key",
	spec.ReasonPermissionRequired: "the client asks whether it may do something",
	spec.ReasonHookTrustRequired:  "the client asks whether muxlet's hooks are to be trusted",
	spec.ReasonUpdateOffered:      "the client offers a new version of itself",
	spec.ReasonChoiceRequired:     "the client asks how to go on",
	spec.ReasonConversationInUse:  "the client says that another process has the conversation open",
	spec.ReasonQuestion:           "the client shows something that its class does not know, and is not ready",
}

// AttentionFor is the question of that reason.
func AttentionFor(reason string) *Attention {
	message, known := questions[reason]
	if !known {
		message = "the client asks something that a person must answer"
	}
	return &Attention{Reason: reason, Message: message}
}
