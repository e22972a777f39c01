// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// seeds runs f with n seeds in a row, and tells the one that fails.
func seeds(t *testing.T, n int, f func(seed uint64)) {
	t.Helper()
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	for range n {
		seed++
		f(seed)
	}
}

// seedsUntil is seeds, and goes on, up to ten times as long, while something was not met:
// what is rare is missing from one run in some thousand, and that is nobody's fault.
func seedsUntil(t *testing.T, n int, f func(seed uint64), missing func() []string) {
	t.Helper()
	for range 10 {
		if seeds(t, n, f); len(missing()) == 0 {
			return
		}
	}
	require.Empty(t, missing(), "nothing of this kind was met: the dice are bad")
}

// notMet are those of a list that a count does not have.
func notMet[K ~string](met map[K]int, all ...K) (missing []string) {
	for _, what := range all {
		if met[what] == 0 {
			missing = append(missing, string(what))
		}
	}
	return missing
}
