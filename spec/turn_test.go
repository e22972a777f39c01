// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStatusWordOfATurnIsComputedFromItsConditions(t *testing.T) {
	const over = true
	reached := map[TurnPhase]bool{}
	for name, c := range map[string]struct {
		conditions []string
		over       bool
		want       TurnPhase
	}{
		"just made":                             {nil, false, TurnPending},
		"half written":                          {[]string{"Delivered=True/Delivered"}, over, TurnPending},
		"taken":                                 {[]string{"Delivered=False/Pending", "Completed=Unknown/Pending"}, false, TurnPending},
		"waiting for its client":                {[]string{"Delivered=False/CrashLoopBackOff", "Completed=Unknown/Pending"}, false, TurnPending},
		"being handed over":                     {[]string{"Delivered=Unknown/Delivering", "Completed=Unknown/Pending"}, false, TurnDelivering},
		"with the client":                       {[]string{"Delivered=True/Delivered", "Completed=Unknown/InProgress"}, false, TurnDelivered},
		"with a client that never tells":        {[]string{"Delivered=True/Delivered", "Completed=Unknown/NotReported"}, over, TurnDelivered},
		"failed, and its client may go on":      {[]string{"Delivered=True/Delivered", "Completed=False/RateLimited"}, false, TurnDelivered},
		"done":                                  {[]string{"Delivered=True/Delivered", "Completed=True/Completed"}, over, TurnCompleted},
		"failed in the client":                  {[]string{"Delivered=True/Delivered", "Completed=False/TurnFailed"}, over, TurnFailed},
		"its client died":                       {[]string{"Delivered=True/Delivered", "Completed=False/ClientDied"}, over, TurnFailed},
		"never handed over":                     {[]string{"Delivered=False/DeadlineExceeded", "Completed=False/NotDelivered"}, over, TurnFailed},
		"nothing submitted and the client died": {[]string{"Delivered=False/ClientDied", "Completed=False/NotDelivered"}, over, TurnFailed},
		"never confirmed":                       {[]string{"Delivered=Unknown/NotConfirmed", "Completed=Unknown/NotReported"}, over, TurnUncertain},
		"interrupted":                           {[]string{"Delivered=Unknown/Interrupted", "Completed=False/ClientDied"}, over, TurnUncertain},
		"taken back":                            {[]string{"Delivered=False/Cancelled", "Completed=False/Cancelled"}, over, TurnCancelled},
		"about to be taken back":                {[]string{"Delivered=False/Cancelled", "Completed=Unknown/Pending"}, false, TurnPending},
	} {
		t.Run(name, func(t *testing.T) {
			turn := &Turn{Status: TurnStatus{Conditions: conditioned(c.conditions...).Status.Conditions}}
			if c.over {
				turn.Status.FinishedAt = &metav1.Time{}
			}
			got := DisplayTurnStatus(turn)
			assert.Equal(t, c.want, got)
			reached[got] = true
		})
	}
	for _, word := range []TurnPhase{TurnPending, TurnDelivering, TurnDelivered, TurnCompleted, TurnFailed, TurnUncertain, TurnCancelled} {
		assert.True(t, reached[word], word)
	}
}
