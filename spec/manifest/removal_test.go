// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

func TestARemovalWaitsForTheSettleTime(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b")
	w.resolve()
	w.remove("a")
	w.resolve()
	w.requirePresence(Settling, "a")
	assert.Equal(t, spec.ReasonRemovalSettling, w.set.Sessions["a"].Reason)
	assert.Equal(t, "1", marker(w.set.Sessions["a"]), "until then it goes on")
	assert.Equal(t, w.now.Add(3*time.Second), w.set.NextCheck)

	w.resolveAfter(3*time.Second - 1)
	w.requirePresence(Settling, "a")
	w.resolveAfter(1)
	w.requirePresence(Removed, "a")
	a := w.set.Sessions["a"]
	assert.Equal(t, spec.ReasonRemoved, a.Reason)
	assert.False(t, a.Explicit)
	assert.Equal(t, "1", marker(a), "its deletionPolicy is needed")
	assert.Equal(t, "/m/a.yaml", a.File)
	assert.Zero(t, w.set.NextCheck)
	w.requirePresence(Present, "b")

	w.resolve()
	w.resolve()
	assert.NotContains(t, w.set.Sessions, "a", "once its record is gone it is forgotten")
}

func TestADocumentThatComesBackWithinTheSettleTimeIsNotRemoved(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b")
	w.resolve()
	w.remove("a")
	w.resolve()
	w.declare("a")
	w.resolveAfter(2 * time.Second)
	w.requirePresence(Present, "a")
	w.remove("a")
	w.resolveAfter(2 * time.Second)
	w.requirePresence(Settling, "a")
	assert.Equal(t, w.now.Add(3*time.Second), w.set.NextCheck, "the time begins anew")
}

func TestAClockThatJumpsBackBeginsTheSettleTimeAnew(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b")
	w.resolve()
	w.remove("a")
	w.resolve()
	w.resolveAfter(-time.Hour)
	w.requirePresence(Settling, "a")
	w.resolveAfter(3 * time.Second)
	w.requirePresence(Removed, "a")
}

// A6
func TestAnEmptiedDirectoryRemovesNothing(t *testing.T) {
	for _, count := range []int{1, 2, 10} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			w := newWorld(t)
			var names []string
			for i := range count {
				names = append(names, fmt.Sprintf("s%d", i))
			}
			w.declare(names...)
			w.resolve()
			w.files = map[string]string{}
			for range 5 {
				w.resolveAfter(time.Hour)
				w.requirePresence(Held, names...)
				for _, name := range names {
					assert.Equal(t, "1", marker(w.set.Sessions[name]))
					assert.Equal(t, spec.ReasonRemovalHeld, w.set.Sessions[name].Reason)
					assert.Contains(t, w.set.Sessions[name].Message, "/m is empty")
					assert.Contains(t, w.set.Sessions[name].Message, "muxlet prune --confirm")
				}
			}
			w.restart()
			w.resolveAfter(time.Hour)
			w.requirePresence(Held, names...)
		})
	}
}

func TestASuspiciousRootHoldsEveryRemoval(t *testing.T) {
	for name, c := range map[string]struct {
		root Root
		why  string
	}{
		"missing":        {Root{Path: "/m", Access: Missing, Message: "it does not exist"}, "/m does not exist"},
		"unreadable":     {Root{Path: "/m", Access: Unreadable, Message: "permission denied"}, "/m cannot be read: permission denied"},
		"another device": {Root{Path: "/m", Access: Readable, Device: 8}, "/m is on another device"},
		"not looked at":  {Root{Path: "/m"}, "/m cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.roots = append(w.roots, Root{Path: "/n", Access: Readable, Device: 7})
			w.declare("a", "b")
			w.files["/n/c.yaml"] = yamlOf("c", "1")
			w.files["/n/d.yaml"] = yamlOf("d", "1")
			w.resolve()
			w.roots[0] = c.root
			w.remove("a")
			delete(w.files, "/n/c.yaml")
			for range 3 {
				w.resolveAfter(time.Minute)
				w.requirePresence(Held, "a")
				assert.Contains(t, w.set.Sessions["a"].Message, c.why)
				w.requirePresence(Held, "c")
				w.requirePresence(Present, "d")
			}
			w.roots[0] = Root{Path: "/m", Access: Readable, Device: 7}
			w.resolveAfter(time.Minute)
			w.requirePresence(Held, "a", "c")
			w.requirePresence(Present, "b", "d")

			w.declare("a")
			w.files["/n/c.yaml"] = yamlOf("c", "1")
			w.resolve()
			w.requirePresence(Present, "a", "b", "c", "d")

			w.remove("a")
			w.resolve()
			w.resolveAfter(w.policy.Settle)
			w.requirePresence(Removed, "a")
		})
	}
}

func TestARootThatWasMissingAtTheStartHoldsItsSessions(t *testing.T) {
	for _, root := range []Root{
		{Path: "/m", Access: Missing}, {Path: "/m", Access: Unreadable}, {Path: "/m", Access: Readable, Device: 9},
	} {
		for _, file := range []string{"/m/a.yaml", ""} {
			w := newWorld(t)
			w.known["a"] = Known{Name: "a", LastGood: goodOf(t, "a", "old"), File: file}
			w.roots[0] = root
			w.resolve()
			w.requirePresence(Held, "a")
			w.resolveAfter(time.Hour)
			w.requirePresence(Held, "a")
			assert.Equal(t, "old", marker(w.set.Sessions["a"]))
		}
	}
}

func TestARootThatIsEmptiedOrGoneHoldsRemovalsOfOthers(t *testing.T) {
	for name, after := range map[string]Root{
		"emptied":            {Path: "/n", Access: Readable, Device: 7},
		"gone":               {Path: "/n", Access: Missing},
		"gone, always empty": {Path: "/n", Access: Missing},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.roots = append(w.roots, Root{Path: "/n", Access: Readable, Device: 7})
			w.declare("a", "b", "c")
			if name != "gone, always empty" {
				delete(w.files, "/m/c.yaml")
				w.files["/n/c.yaml"] = yamlOf("c", "1")
			}
			w.resolve()
			delete(w.files, "/n/c.yaml")
			w.declare("c")
			w.remove("a")
			w.roots[1] = after
			w.resolve()
			w.requirePresence(Held, "a")
			assert.Contains(t, w.set.Sessions["a"].Message, "/n ")
			w.requirePresence(Present, "b", "c")
		})
	}
}

func TestSessionsOfADirectoryThatIsNoLongerARootAreHeld(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c", "d")
	w.files["/n/e.yaml"] = yamlOf("e", "1")
	w.roots = append(w.roots, Root{Path: "/n", Access: Readable, Device: 7})
	w.resolve()
	w.roots = w.roots[:1]
	w.resolveAfter(time.Hour)
	w.requirePresence(Held, "e")
	assert.Contains(t, w.set.Sessions["e"].Message, "/n/e.yaml")
	w.restart()
	w.resolveAfter(time.Hour)
	w.requirePresence(Held, "e")
	w.requirePresence(Present, "a", "b", "c", "d")
}

func TestARootWithoutSessionsMayGoAway(t *testing.T) {
	w := newWorld(t)
	w.roots = append(w.roots, Root{Path: "/n", Access: Readable, Device: 7})
	w.declare("a", "b")
	w.files["/n/c.yaml"] = yamlOf("c", "1")
	w.resolve()
	delete(w.files, "/n/c.yaml")
	w.declare("c")
	w.resolve()
	w.roots[1] = Root{Path: "/n", Access: Missing}
	w.resolve()
	w.remove("b")
	w.resolve()
	w.requirePresence(Settling, "b")
	w.resolveAfter(w.policy.Settle)
	w.requirePresence(Removed, "b")
}

func TestManyMissingAtOnceAreHeld(t *testing.T) {
	for name, c := range map[string]struct {
		known, gone int
		policy      Policy
		want        Presence
	}{
		"3 of 6":              {6, 3, Policy{GuardMin: 3, GuardPercent: 50}, Held},
		"3 of 7":              {7, 3, Policy{GuardMin: 3, GuardPercent: 50}, Settling},
		"2 of 3":              {3, 2, Policy{GuardMin: 3, GuardPercent: 50}, Settling},
		"99 of 200":           {200, 99, Policy{GuardMin: 3, GuardPercent: 50}, Settling},
		"100 of 200":          {200, 100, Policy{GuardMin: 3, GuardPercent: 50}, Held},
		"1 of 2, strict":      {2, 1, Policy{GuardMin: 1, GuardPercent: 50}, Held},
		"5 of 10, only all":   {10, 5, Policy{GuardMin: 3, GuardPercent: 100}, Settling},
		"1 of 100, no chance": {100, 1, Policy{}, Held},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.policy = c.policy
			w.policy.Settle = time.Second
			for i := range c.known {
				w.declare(fmt.Sprintf("s%03d", i))
			}
			w.resolve()
			var gone []string
			for i := range c.gone {
				gone = append(gone, fmt.Sprintf("s%03d", i))
			}
			w.remove(gone...)
			w.declare("new-1", "new-2", "new-3")
			w.resolve()
			w.requirePresence(c.want, gone...)
			if c.want == Held {
				assert.Contains(t, w.set.Sessions[gone[0]].Message, fmt.Sprintf("%d of %d sessions", c.gone, c.known))
			}
			w.requirePresence(Present, "new-1")
		})
	}
}

func TestRemovalsThatStillSettleCountAsMissingAtOnce(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c", "d")
	w.resolve()
	w.remove("a", "b")
	w.resolveAfter(time.Second)
	w.requirePresence(Settling, "a", "b")
	w.remove("c")
	w.resolveAfter(time.Second)
	w.requirePresence(Held, "a", "b", "c")
}

func TestRemovalsThatAreDecidedDoNotCount(t *testing.T) {
	for _, c := range []struct {
		known, decided, gone int
		want                 Presence
	}{
		{known: 5, decided: 1, gone: 2, want: Settling}, // not 3 of 5
		{known: 10, decided: 4, gone: 3, want: Held},    // 3 of 6
	} {
		w := newWorld(t)
		for i := range c.known {
			w.declare(fmt.Sprintf("s%d", i))
		}
		w.resolve()
		records := maps.Clone(w.known)
		for i := range c.decided {
			w.remove(fmt.Sprintf("s%d", i))
		}
		w.resolve()
		w.resolveAfter(w.policy.Settle)
		w.requirePresence(Removed, "s0")
		w.known = records // they are still being stopped
		for i := range c.gone {
			w.remove(fmt.Sprintf("s%d", c.decided+i))
		}
		w.resolve()
		w.requirePresence(Removed, "s0")
		w.requirePresence(c.want, fmt.Sprintf("s%d", c.decided))
	}
}

func TestAHoldIsStickyWhenOnlySomeComeBack(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c", "d")
	w.resolve()
	w.remove("a", "b", "c")
	w.resolve()
	w.requirePresence(Held, "a", "b", "c")
	message := w.set.Sessions["a"].Message
	w.declare("b", "c")
	w.resolveAfter(time.Hour)
	w.requirePresence(Held, "a")
	assert.Equal(t, message, w.set.Sessions["a"].Message)
	w.requirePresence(Present, "b", "c")

	w.restart()
	w.resolveAfter(time.Hour)
	w.requirePresence(Held, "a")
	assert.Equal(t, message, w.set.Sessions["a"].Message, "the record keeps the hold over a restart")
	w.declare("a")
	w.resolve()
	w.requirePresence(Present, "a")
}

func TestADamagedFileHoldsItsSessions(t *testing.T) {
	for name, content := range map[string]string{
		"does not parse":       damagedOf("a"),
		"without the name":     "kind: [\n",
		"no text":              "\xff\xfe\x00",
		"nameless":             "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nspec: {}\n",
		"a list":               "- 1\n- 2\n",
		"one of two documents": yamlOf("z", "1") + "---\nkind: [\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("a", "b", "c")
			w.resolve()
			w.files["/m/a.yaml"] = content
			for range 3 {
				w.resolveAfter(time.Hour)
				w.requirePresence(Held, "a")
				a := w.set.Sessions["a"]
				assert.Equal(t, spec.ReasonInvalid, a.Reason)
				assert.Equal(t, "1", marker(a))
				assert.NotEmpty(t, a.Problems)
				assert.Contains(t, a.Message, "/m/a.yaml")
			}
			w.files["/m/a.yaml"] = yamlOf("a", "2")
			w.resolve()
			w.requirePresence(Present, "a")
			assert.Equal(t, "2", marker(w.set.Sessions["a"]))
		})
	}
}

func TestANameInAnyDamagedFileHoldsTheSession(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c")
	w.resolve()
	w.remove("a")
	w.files["/m/moved.yaml"] = damagedOf("a")
	w.resolveAfter(time.Hour)
	w.requirePresence(Held, "a")
	w.requirePresence(Present, "b", "c")
	assert.Equal(t, spec.ReasonInvalid, w.set.Sessions["a"].Reason)
	assert.Contains(t, w.set.Sessions["a"].Message, "/m/moved.yaml")

	delete(w.files, "/m/moved.yaml")
	w.resolveAfter(time.Hour)
	w.requirePresence(Held, "a")
	assert.Equal(t, spec.ReasonRemovalHeld, w.set.Sessions["a"].Reason)
	assert.Contains(t, w.set.Sessions["a"].Message, "/m/moved.yaml was damaged")
	assert.Contains(t, w.set.Sessions["a"].Message, goOn)
}

func TestADamagedFileHoldsNoOtherSession(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c")
	w.resolve()
	w.files["/m/b.yaml"] = damagedOf("b")
	w.remove("a")
	w.resolve()
	w.requirePresence(Settling, "a")
	w.resolveAfter(w.policy.Settle)
	w.requirePresence(Removed, "a")
	w.requirePresence(Held, "b")
}

func TestAPartThatCouldNotBeReadHoldsItsSessions(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c", "d")
	w.files["/m/sub/e.yaml"] = yamlOf("e", "1")
	w.resolve()
	delete(w.files, "/m/sub/e.yaml")
	w.remove("a", "b")
	w.unread = []Unread{
		{Path: "/m/a.yaml", Problem: problemAt("/m/a.yaml", "cannot be read: permission denied")},
		{Path: "/m/sub", Problem: problemAt("/m/sub", "cannot be read: input/output error")},
	}
	w.resolve()
	w.requirePresence(Held, "a", "e")
	w.requirePresence(Settling, "b")
	assert.Contains(t, w.set.Sessions["e"].Message, "input/output error")
	require.Len(t, w.set.Problems, 2)
	w.resolveAfter(time.Hour)
	w.requirePresence(Held, "a", "e")
	w.requirePresence(Removed, "b")
}

func TestASessionThatGotNoRecordYetIsGuardedToo(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c")
	w.resolve()
	w.known = map[string]Known{}
	w.roots[0] = Root{Path: "/m", Access: Missing}
	w.resolve()
	w.requirePresence(Held, "a", "b", "c")
	assert.Equal(t, "1", marker(w.set.Sessions["a"]))
}

func TestAnOldHoldMessageGetsTheNextStep(t *testing.T) {
	w := newWorld(t)
	w.declare("b")
	w.known["a"] = Known{Name: "a", File: "/m/a.yaml", LastGood: goodOf(t, "a", "1"), Held: "/m/a.yaml:1:1: bad"}
	w.resolve()
	w.requirePresence(Held, "a")
	assert.Equal(t, "/m/a.yaml:1:1: bad; "+goOn, w.set.Sessions["a"].Message)
}
