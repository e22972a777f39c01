// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"errors"
	"slices"
	"time"
)

// The kinds of calls, as Conn.Called tells them.
const (
	CallList      = "list"
	CallCapture   = "capture"
	CallAct       = "act"
	CallPaste     = "paste"
	CallTerminals = "terminals"
	CallStart     = "start"
	CallOther     = "other"
)

// The results of calls, as Conn.Called tells them: ResultAnswered whatever the exit code
// is, since that is an answer.
const (
	ResultAnswered  = "answered"
	ResultTimeout   = "timeout"
	ResultNoProgram = "noProgram"
	ResultCancelled = "cancelled"
	ResultFailed    = "failed"
)

// called tells Called of a call that has ended.
func (c *Conn) called(kind string, began time.Time, r Result) Result {
	if c.Called != nil {
		c.Called(kind, resultOf(r.Err), time.Since(began))
	}
	return r
}

// kindOf finds what a command line is for by its verbs: their words are ours, and their
// number is small.
func kindOf(args []string) string {
	if len(args) == 0 {
		return CallOther
	}
	switch args[0] {
	case "if-shell":
		return CallAct
	case "load-buffer":
		return CallPaste
	case "list-clients":
		return CallTerminals
	}
	switch {
	case slices.Contains(args, "list-panes"):
		return CallList
	case slices.Contains(args, "capture-pane"):
		return CallCapture
	}
	return CallOther
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return ResultAnswered
	case errors.Is(err, ErrTimeout):
		return ResultTimeout
	case errors.Is(err, ErrNoProgram):
		return ResultNoProgram
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ResultCancelled
	}
	return ResultFailed
}
