// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func use(pid, parent int, ticks uint64, cpu time.Duration) ProcessUse {
	return ProcessUse{Process: Process{PID: pid, Ticks: ticks}, Parent: parent, CPU: cpu}
}

func pids(tree []ProcessUse) []int {
	var all []int
	for _, p := range tree {
		all = append(all, p.PID)
	}
	return all
}

func TestATreeHasItsDescendantsAndThoseThatHaveLeftIt(t *testing.T) {
	table := []ProcessUse{
		use(1, 0, 1, 0), use(10, 1, 50, 0), use(11, 10, 60, 0), use(12, 11, 70, 0),
		use(13, 11, 40, 0), // older than its parent: a pid re-used while the table was read
		use(20, 11, 80, 0), // a root of its own within the tree
		use(21, 20, 90, 0),
		use(30, 1, 75, 0), // has left 10
		use(40, 1, 76, 0), // nobody's
		use(50, 1, 99, 0), // another process under the pid of a root
		use(51, 50, 100, 0),
	}
	asked := map[int]bool{}
	trees := Trees(table, map[string]Process{
		"a": {PID: 10, Ticks: 50}, "b": {PID: 20, Ticks: 80}, "gone": {PID: 50, Ticks: 5}, "never": {PID: 777, Ticks: 5},
	}, func(pid int) string {
		asked[pid] = true
		return map[int]string{30: "a"}[pid]
	})
	assert.Equal(t, []int{10, 11, 12, 30}, pids(trees["a"]))
	assert.Equal(t, []int{20, 21}, pids(trees["b"]))
	assert.Empty(t, trees["gone"])
	assert.Empty(t, trees["never"])
	assert.False(t, asked[12] || asked[20], "only those that belong to nobody are asked")
}

func TestTheTimeOfATreeIsNeitherLostNorCountedTwice(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		before, after []ProcessUse
		want          time.Duration
	}{
		"at rest":                         {[]ProcessUse{use(1, 0, 5, 900*ms)}, []ProcessUse{use(1, 0, 5, 900*ms)}, 0},
		"works":                           {[]ProcessUse{use(1, 0, 5, 900*ms)}, []ProcessUse{use(1, 0, 5, 950*ms)}, 50 * ms},
		"a new child":                     {[]ProcessUse{use(1, 0, 5, 0)}, []ProcessUse{use(1, 0, 5, 10*ms), use(2, 1, 21, 30*ms)}, 40 * ms},
		"a child that came and went":      {[]ProcessUse{use(1, 0, 5, 0)}, []ProcessUse{use(1, 0, 5, 300*ms)}, 300 * ms},
		"an old child was waited for":     {[]ProcessUse{use(1, 0, 5, 0), use(2, 1, 6, 700*ms)}, []ProcessUse{use(1, 0, 5, 710*ms)}, 10 * ms},
		"a child that nobody waits for":   {[]ProcessUse{use(1, 0, 5, 0), use(2, 9, 6, 700*ms)}, []ProcessUse{use(1, 0, 5, 10*ms)}, 10 * ms},
		"one joined":                      {[]ProcessUse{use(1, 0, 5, 0)}, []ProcessUse{use(1, 0, 5, 0), use(3, 9, 7, 800*ms)}, 0},
		"a pid was re-used":               {[]ProcessUse{use(1, 0, 5, 0), use(2, 1, 6, 100*ms)}, []ProcessUse{use(1, 0, 5, 100*ms), use(2, 1, 22, 10*ms)}, 10 * ms},
		"the whole tree is another":       {[]ProcessUse{use(1, 0, 5, 900*ms)}, []ProcessUse{use(2, 0, 30, 20*ms)}, 20 * ms},
		"the whole tree has gone":         {[]ProcessUse{use(1, 0, 5, 900*ms)}, nil, 0},
		"autoreaped: less than was there": {[]ProcessUse{use(1, 0, 5, 0), use(2, 1, 6, 700*ms)}, []ProcessUse{use(1, 0, 5, 10*ms)}, 0},
	} {
		assert.Equal(t, c.want, CPUBetween(c.before, c.after, 20), name)
	}
}
