// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

func TestEachEndOfATurnHasItsCode(t *testing.T) {
	pending := pendingTurn("shop", 7)
	handed := deliveredTurn(pending)
	unreported := handed
	unreported.Status.FinishedAt = &metav1.Time{Time: noon}
	unreported = withTurn(unreported, spec.ConditionCompleted, metav1.ConditionUnknown, spec.ReasonNotReported, "the class has no reports")
	for _, r := range []struct {
		turn     spec.Turn
		reason   metav1.StatusReason
		delivery int
		end      int
	}{
		{handed, "InProgress", exitOK, exitError},
		{completedTurn(pending), "", exitOK, exitOK},
		{unreported, "NotReported", exitOK, exitError},
		{failedTurn(handed, spec.ReasonClientDied, "m", false), "ClientDied", exitOK, exitError},
		{failedTurn(handed, spec.ReasonUsageLimited, "m", true), server.ReasonProvisioningFailed, exitOK, exitRetryable},
		{failedTurn(handed, spec.ReasonTerminated, "m", false), "Terminated", exitOK, exitError},
		{failedTurn(pending, spec.ReasonSuspended, "m", true), server.ReasonSuspended, exitConflict, exitConflict},
		{failedTurn(pending, spec.ReasonWorkspaceMissing, "m", true), server.ReasonWorkspaceMissing, exitConflict, exitConflict},
		{failedTurn(pending, spec.ReasonDeadlineExceeded, "m", true), server.ReasonDeadlineExceeded, exitDeadline, exitDeadline},
		{failedTurn(pending, spec.ReasonTmuxUnavailable, "m", true), server.ReasonTmuxUnavailable, exitRetryable, exitRetryable},
		{failedTurn(pending, spec.ReasonCommandNotFound, "m", true), server.ReasonProvisioningFailed, exitRetryable, exitRetryable},
		{failedTurn(pending, spec.ReasonCrashLoopBackOff, "m", true), server.ReasonProvisioningFailed, exitRetryable, exitRetryable},
		{failedTurn(pending, spec.ReasonTerminated, "m", true), server.ReasonProvisioningFailed, exitRetryable, exitRetryable},
		{failedTurn(pending, spec.ReasonPromptLost, "m", false), "PromptLost", exitError, exitError},
		{failedTurn(pending, spec.ReasonRemoved, "m", false), "Removed", exitError, exitError},
		{failedTurn(pending, spec.ReasonCancelled, "m", false), "Cancelled", exitError, exitError},
		{uncertainTurn(pending, spec.ReasonNotConfirmed, "m"), "NotConfirmed", exitError, exitError},
		{uncertainTurn(pending, spec.ReasonInterrupted, "m"), "Interrupted", exitError, exitError},
	} {
		name := turnWords(&r.turn)
		assert.Equal(t, r.delivery, exitCode(turnError(&r.turn, waitDelivered)), name)
		err := turnError(&r.turn, waitCompleted)
		assert.Equal(t, r.end, exitCode(err), name)
		if r.end == exitOK {
			continue
		}
		status := statusOf(err)
		assert.Equal(t, r.reason, status.Reason, name)
		assert.Equal(t, "shop-7", status.Details.Name)
		reason, _ := turnReason(&r.turn)
		require.Len(t, status.Details.Causes, 1)
		assert.EqualValues(t, reason, status.Details.Causes[0].Type, "the turn's own reason is there too")
	}
}

func TestTheErrorOfATurnIsASentenceWithTheNextStep(t *testing.T) {
	pending := pendingTurn("shop", 7)
	for want, turn := range map[string]spec.Turn{
		`turn "shop-7" to session "shop" was cancelled: it was not handed over.`:                                                                                                                             failedTurn(pending, spec.ReasonCancelled, "a person took it back", false),
		`turn "shop-7" to session "shop" was not delivered (Terminated): it was ended by a person. It is not handed over later; it can be sent again.`:                                                       failedTurn(pending, spec.ReasonTerminated, "it was ended by a person", true),
		`turn "shop-7" to session "shop" was not delivered (Suspended): spec.suspend is true. Run "muxlet resume shop", and send it again.`:                                                                  failedTurn(pending, spec.ReasonSuspended, "spec.suspend is true", true),
		`turn "shop-7" to session "shop" was not delivered (Suspended): run "muxlet resume shop" first.`:                                                                                                     failedTurn(pending, spec.ReasonSuspended, `run "muxlet resume shop" first`, true),
		`turn "shop-7" to session "shop" may have been delivered (NotConfirmed): nothing has confirmed it. Sending it again could deliver it twice: see first whether the client has it (muxlet logs shop).`: uncertainTurn(pending, spec.ReasonNotConfirmed, "nothing has confirmed it"),
		`turn "shop-7" to session "shop" was delivered and has failed (ClientDied): the client has it in its history.`:                                                                                       failedTurn(deliveredTurn(pending), spec.ReasonClientDied, "the client has it in its history.", false),
	} {
		assert.EqualError(t, turnError(&turn, waitCompleted), want)
	}
}

func TestProgressSaysWhatATurnWaitsFor(t *testing.T) {
	pending := pendingTurn("shop", 7)
	for want, turn := range map[string]spec.Turn{
		"":                                  pending,
		"starting the client…":              waitingTurn(pending, spec.ReasonStarting, "x"),
		"waiting until the client is ready": waitingTurn(pending, spec.ReasonNotReady, "x"),
		"the client works; the turn waits":  waitingTurn(pending, spec.ReasonClientWorking, "x"),
		"waiting: CrashLoopBackOff: the next start is due in 20 s.":                                        waitingTurn(pending, spec.ReasonCrashLoopBackOff, "the next start is due in 20 s"),
		"waiting: TrustRequired: it asks for trust. Go to the client: muxlet attach shop":                  waitingTurn(pending, spec.ReasonTrustRequired, "it asks for trust"),
		"waiting: ComposerInUse: something stands in the input line. Go to the client: muxlet attach shop": waitingTurn(pending, spec.ReasonComposerInUse, "something stands in the input line"),
		"handing it over":                   deliveringTurn(pending),
		"delivered; the client works on it": deliveredTurn(pending),
	} {
		assert.Equal(t, want, progressWords(&turn))
	}
	ready := waitingTurn(pending, spec.ReasonReady, "incarnation 1 runs")
	assert.Empty(t, progressWords(&ready), "it is handed over in a moment")
	done := completedTurn(pending)
	assert.Empty(t, progressWords(&done), "its own line says so")
}
