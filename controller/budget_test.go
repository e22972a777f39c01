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
	assert.Empty(t, b.settle("c", false, true), "it waits")
	assert.Equal(t, []string{"c"}, b.settle("a", false, false), "who waits is named")
	assert.Equal(t, plan.GrantStart, b.reserve("c"))
	assert.Empty(t, b.settle("c", true, false))
	assert.Empty(t, b.settle("b", false, false), "nobody waits any more")
}

func TestWhoWaitsIsWokenInOrder(t *testing.T) {
	b := newBudget(2)
	b.hold("a")
	b.hold("b")
	for _, key := range []string{"c", "d", "e", "d", "c"} {
		assert.Empty(t, b.settle(key, false, true), "a second pass of who waits changes nothing")
	}
	assert.Equal(t, []string{"c"}, b.settle("a", false, false))
	assert.Equal(t, []string{"c", "d"}, b.settle("b", false, false), "as many as there are places")
}

func TestAPlaceThatIsNotWantedGoesOn(t *testing.T) {
	b := newBudget(1)
	b.hold("a")
	b.settle("b", false, true)
	b.settle("c", false, true)
	assert.Equal(t, []string{"b"}, b.settle("a", false, false))
	assert.Equal(t, []string{"c"}, b.settle("b", false, false), "b is suspended by now")
}

func TestStartsThatAreFoundUnderWayCountBeyondTheLimit(t *testing.T) {
	b := newBudget(1)
	b.hold("a")
	b.hold("b")
	assert.Equal(t, plan.GrantStart, b.reserve("b"))
	assert.Equal(t, plan.GrantNone, b.reserve("c"))
	b.settle("a", false, false)
	assert.Equal(t, plan.GrantNone, b.reserve("c"), "b is still under way")
	b.settle("b", false, false)
	assert.Equal(t, plan.GrantStart, b.reserve("c"))
}

func TestABudgetIsNeverEmpty(t *testing.T) {
	assert.Equal(t, plan.GrantStart, newBudget(0).reserve("a"))
}

func TestALargerBudgetGoesToThoseWhoWait(t *testing.T) {
	b := newBudget(1)
	assert.Equal(t, plan.GrantStart, b.reserve("a"))
	for _, key := range []string{"b", "c", "d"} {
		assert.Equal(t, plan.GrantNone, b.reserve(key))
		b.settle(key, false, true)
	}
	assert.Equal(t, []string{"b", "c"}, b.resize(3))
	for _, key := range []string{"b", "c"} {
		assert.Equal(t, plan.GrantStart, b.reserve(key))
		b.settle(key, true, false)
	}
	assert.Empty(t, b.resize(1), "those that have a place keep it")
	assert.Equal(t, plan.GrantStart, b.reserve("a"))
	b.settle("a", false, false)
	assert.Equal(t, plan.GrantNone, b.reserve("d"))
}
