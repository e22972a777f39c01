// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"errors"
	"strings"

	"github.com/muxlet/muxlet/observe"
)

// emptyServer is what list-panes says on a server without sessions.
const emptyServer = "no current target"

// Classify says what kind of answer a listing got. Only a listing that is complete
// to the letter is AnswerListed, and only tmux's own words for "nobody is there"
// are AnswerNoSocket or AnswerRefused; everything else proves nothing.
//
// The texts were taken from tmux 3.2 to 3.7c. Their locale is fixed: tmux sets
// LC_CTYPE and LC_TIME only, and so strerror speaks English.
func Classify(stdout, stderr string, exitCode int, err error) observe.AnswerKind {
	_, kind := judge(stdout, stderr, exitCode, err)
	return kind
}

func judge(stdout, stderr string, exitCode int, err error) (listing, observe.AnswerKind) {
	if err != nil {
		return listing{}, classifyError(err)
	}
	words := strings.TrimSpace(stderr)
	if words != "" && words != emptyServer {
		return listing{}, classifyWords(words)
	}
	if empty := words == emptyServer; empty != (exitCode == 1) || exitCode > 1 || exitCode < 0 {
		return listing{}, observe.AnswerFailed
	}
	l, parseErr := parse(stdout, words == emptyServer)
	if parseErr != nil {
		return listing{}, observe.AnswerIncomplete
	}
	return l, observe.AnswerListed
}

func classifyError(err error) observe.AnswerKind {
	switch {
	case errors.Is(err, ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return observe.AnswerTimeout
	case errors.Is(err, ErrTooLong):
		return observe.AnswerIncomplete
	case errors.Is(err, ErrNoProgram):
		return observe.AnswerNoBinary
	}
	return observe.AnswerFailed
}

// classifyWords reads what tmux wrote to stderr. "server exited unexpectedly" is
// deliberately nothing special: a client of tmux 3.5 says it of a server of tmux
// 3.6 that lives and stays alive.
func classifyWords(words string) observe.AnswerKind {
	const connecting = "error connecting to "
	switch {
	case strings.Contains(words, "\n"):
		return observe.AnswerFailed
	case strings.HasPrefix(words, "no server running on "):
		return observe.AnswerRefused
	case strings.HasPrefix(words, connecting) && strings.HasSuffix(words, " (No such file or directory)"):
		return observe.AnswerNoSocket
	case strings.HasPrefix(words, connecting) && strings.HasSuffix(words, " (Connection refused)"):
		return observe.AnswerRefused
	case strings.HasPrefix(words, connecting) && strings.HasSuffix(words, " (Permission denied)"):
		return observe.AnswerDenied
	case words == "access not allowed":
		return observe.AnswerDenied
	case strings.HasPrefix(words, "directory ") && strings.HasSuffix(words, " has unsafe permissions"):
		return observe.AnswerDenied
	case strings.HasPrefix(words, "protocol version mismatch "):
		return observe.AnswerMismatch
	}
	return observe.AnswerFailed
}
