// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// series are looks each ten seconds, of a daemon that is replaced at 170 s.
func series(heap func(age time.Duration) float64) (samples []sample) {
	const replaced = 170 * time.Second
	for at := 10 * time.Second; at <= 10*time.Minute; at += 10 * time.Second {
		s := sample{at: at, daemon: 1, server: 3, values: make([]float64, len(figures))}
		age := at
		if at >= replaced {
			s.daemon, age = 2, at-replaced
		}
		s.values[1] = heap(age)
		samples = append(samples, s)
	}
	return samples
}

// A daemon learns of each session once; what it goes on to grow by is another thing.
func TestWarmingUpIsNoGrowthAndALeakIs(t *testing.T) {
	warms := func(age time.Duration) float64 { return 4 + min(age, 2*time.Minute).Minutes()*3 }
	table, err := judge(series(warms), 2*time.Minute)
	require.NoError(t, err)
	assert.Contains(t, table, "flat")
	_, err = judge(series(func(age time.Duration) float64 { return 4 + 2*age.Minutes() }), 2*time.Minute)
	require.ErrorContains(t, err, "not flat: heap goal MiB")
	_, err = judge(series(func(age time.Duration) float64 { return warms(age) + 3*age.Minutes() }), time.Hour)
	require.Error(t, err, "a run that is too short for the warm part is judged by its second half")
}
