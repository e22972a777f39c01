// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/spec"
)

const testNotificationPath = groupPath + "/testnotification"

// NotificationTester is a Backend that can notify its person as a try.
type NotificationTester interface {
	// TestNotification notifies by the ways of the settings, and returns when that is over.
	// Error: Invalid, when they have none.
	TestNotification(ctx context.Context, event spec.NotificationEvent) (actuate.NotificationOutcome, error)
}

// NotificationResult is what came of a try.
type NotificationResult struct {
	// Took is how long the command ran; zero when there is none.
	Took metav1.Duration `json:"took,omitzero"`
	// CommandError says why the command has failed; empty when it has not.
	CommandError string `json:"commandError,omitempty"`
	// Terminals is how many terminals took it; TerminalError why others, or all, did not.
	Terminals     int    `json:"terminals"`
	TerminalError string `json:"terminalError,omitempty"`
}

func (a api) testNotification(c call) (any, error) {
	tester, ok := a.backend.(NotificationTester)
	if !ok {
		return nil, NewError(ReasonNotFound, "", "this daemon notifies nobody")
	}
	event := spec.NotificationEvent(c.URL.Query().Get("event"))
	if !slices.Contains(spec.NotificationEvents, event) {
		return nil, badRequest("event is %q: it must be one of %v", event, spec.NotificationEvents)
	}
	out, err := tester.TestNotification(c.Context(), event)
	if err != nil {
		return nil, err
	}
	result := NotificationResult{Took: metav1.Duration{Duration: out.Took}, Terminals: out.Terminals}
	if out.CommandErr != nil {
		result.CommandError = out.CommandErr.Error()
	}
	if out.TerminalErr != nil {
		result.TerminalError = out.TerminalErr.Error()
	}
	return result, nil
}

// TestNotification notifies the person as a try. It waits for as long as a command may
// run by any settings: ctx says when that is too long.
func (c *Client) TestNotification(ctx context.Context, event spec.NotificationEvent) (NotificationResult, error) {
	patient := *c
	patient.timeout += spec.MaxNotificationTimeout
	var result NotificationResult
	err := patient.call(ctx, http.MethodPost, testNotificationPath, query("event", string(event)), &result)
	return result, err
}
