// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// Whatever has happened to a session that rests, a turn brings its client back.
func TestATurnWakesWhateverRests(t *testing.T) {
	seeds(t, 40, func(seed uint64) {
		w := newWorld(t, seed)
		for range 100 {
			if w.one(6) {
				w.disturb()
			}
			w.blind = w.blind && !w.one(3)
			w.later(w.pause(w.pass(w.one(12))))
		}
		w.calm()
		w.desired.Spec.ProvisioningPolicy, w.desired.Spec.InitialPrompt = spec.ProvisioningOnDemand, ""
		w.disk.Demand, w.disk.Block = nil, nil
		var refused []string
		for range 20 {
			w.send("", false)
			w.sentTurns[len(w.sentTurns)-1].Deadline = w.now.Add(2 * time.Minute)
			for n := 0; len(w.open()) > 0; n++ {
				require.Less(t, n, 4000, "the turn never ended")
				p := w.pass(false)
				w.heed(p)
				w.later(w.pause(p))
			}
			last := w.sentTurns[len(w.sentTurns)-1]
			if last.Delivered.Status != metav1.ConditionFalse {
				return
			}
			refused = append(refused, last.Delivered.Reason)
		}
		if c := w.disk.Client; c != nil && c.Launched == nil {
			// It was adopted, and is of a class whose input line nobody finds on its screen.
			return
		}
		t.Fatalf("no turn was handed over: %v", refused)
	})
}
