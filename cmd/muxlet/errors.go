// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
)

// The exit codes.
const (
	exitOK        = 0
	exitError     = 1
	exitUsage     = 2
	exitNotFound  = 3
	exitConflict  = 4
	exitDeadline  = 5
	exitRetryable = 6
)

// usageError is a command line that makes no sense.
type usageError struct{ message string }

// Error is the sentence for a person.
func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// reportedError was shown to the person already; only its code is left.
type reportedError struct{ code int }

// Error is not meant to be read.
func (e *reportedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitCode of an error.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if reported, ok := errors.AsType[*reportedError](err); ok {
		return reported.code
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return codeOfStatus(status.ErrStatus.Code)
	}
	if errors.Is(err, context.Canceled) {
		return exitDeadline
	}
	return exitError
}

func codeOfStatus(code int32) int {
	switch code {
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict:
		return exitConflict
	case http.StatusGatewayTimeout:
		return exitDeadline
	case http.StatusServiceUnavailable:
		return exitRetryable
	}
	return exitError
}

// report shows an error of the whole command and returns its exit code. An
// error from before the command started is one of usage.
func (g *globals) report(err error) int {
	if err == nil {
		return exitOK
	}
	if _, ok := errors.AsType[*usageError](err); !ok && !g.started {
		err = &usageError{err.Error()}
	}
	g.show(err)
	return exitCode(err)
}

// show prints an error to the person, or as a Status to a program.
func (g *globals) show(err error) {
	if _, ok := errors.AsType[*reportedError](err); ok {
		return
	}
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted before the daemon answered: look with \"muxlet get\" at what was done (%w)", err)
	}
	err = g.withSuggestion(err)
	if g.wantsJSON() {
		if data, failed := json.MarshalIndent(statusOf(err), "", "    "); failed == nil {
			g.complain("%s", data)
			return
		}
	}
	if _, ok := errors.AsType[*usageError](err); ok && g.command != nil {
		g.complain("Error: %s\nSee \"%s --help\".", strings.TrimRight(err.Error(), "\n"), g.command.CommandPath())
		return
	}
	g.complain("Error: %s", err)
}

// wantsJSON says whether the command was asked to answer in JSON.
func (g *globals) wantsJSON() bool {
	if g.command == nil {
		return false
	}
	flag := g.command.Flags().Lookup("output")
	return flag != nil && flag.Value.String() == "json"
}

// statusOf is err for a program to read.
func statusOf(err error) metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Reason: metav1.StatusReasonUnknown}
	known, isStatus := errors.AsType[*apierrors.StatusError](err)
	_, isUsage := errors.AsType[*usageError](err)
	switch {
	case isStatus:
		status = known.ErrStatus
	case errors.Is(err, server.ErrNoDaemon):
		status.Reason = "NoDaemon"
	case isUsage:
		status.Reason, status.Code = metav1.StatusReasonBadRequest, http.StatusBadRequest
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}

// each does one thing to every name, shows each error as it comes, and ends in
// the worst code.
func (g *globals) each(names []string, do func(name string) error) error {
	var codes []int
	for _, name := range names {
		if err := do(name); err != nil {
			g.show(err)
			codes = append(codes, exitCode(err))
		}
	}
	if len(codes) == 0 {
		return nil
	}
	return &reportedError{slices.Max(codes)}
}

// complain writes a line to standard error, with nothing in it that a terminal
// would obey: names and messages come from files and programs. That it cannot be written is
// nothing that could be told anywhere else.
func (g *globals) complain(format string, args ...any) {
	g.writing.Lock()
	defer g.writing.Unlock()
	_, _ = fmt.Fprintln(g.errOut, visibleLines(fmt.Sprintf(format, args...)))
}

// say writes a line to standard output.
func (g *globals) say(format string, args ...any) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	if _, err := fmt.Fprintln(g.out, visibleLines(fmt.Sprintf(format, args...))); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// worse is the one with the higher exit code.
func worse(a, b error) error {
	if exitCode(a) >= exitCode(b) {
		return a
	}
	return b
}

// many is for a verb that takes any number of names, but one at least.
const many = 0

// named refuses a command line without a name of what the verb is about, or with more
// names than it takes.
func named(kind string, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && most == 1:
			return usagef("%s needs the name of a %s", cmd.Name(), kind)
		case len(args) == 0:
			return usagef("%s needs at least one name of a %s", cmd.Name(), kind)
		case most > 0 && len(args) > most:
			return usagef("%s takes the name of one %s, not %d: %q is too much", cmd.Name(), kind, len(args), args[most])
		}
		return nil
	}
}
