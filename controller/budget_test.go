// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/controller/plan"
)

// A11
func TestTheBudgetGrantsAsManyPlacesAsItsLimit(t *testing.T) {
	b := newBudget(2)
	assert.Equal(t, plan.GrantStart, b.reserve("a"))
	assert.Equal(t, plan.GrantStart, b.reserve("b"))
	assert.Equal(t, plan.GrantNone, b.reserve("c"))
	assert.Equal(t, plan.GrantStart, b.reserve("a"), "who has a place keeps it")
	assert.Equal(t, "c", b.release("a"), "who waits is named")
	assert.Equal(t, plan.GrantStart, b.reserve("c"))
	assert.Empty(t, b.release("b"), "nobody waits any more")
}

func TestAPlaceThatWasNotHeldPassesNothingOn(t *testing.T) {
	b := newBudget(1)
	b.reserve("a")
	b.reserve("b")
	assert.Empty(t, b.release("c"))
	assert.Empty(t, b.release("b"), "it waited, and does not any more")
	assert.Empty(t, b.release("a"))
}

func TestStartsThatAreFoundUnderWayCountBeyondTheLimit(t *testing.T) {
	b := newBudget(1)
	b.hold("a")
	b.hold("b")
	assert.Equal(t, plan.GrantStart, b.reserve("b"))
	assert.Equal(t, plan.GrantNone, b.reserve("c"))
	b.release("a")
	assert.Equal(t, plan.GrantNone, b.reserve("c"), "b is still under way")
	b.release("b")
	assert.Equal(t, plan.GrantStart, b.reserve("c"))
}

func TestABudgetIsNeverEmpty(t *testing.T) {
	assert.Equal(t, plan.GrantStart, newBudget(0).reserve("a"))
}
