// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestConfirmEndsHolds(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c", "d", "typo")
	w.resolve()
	w.remove("a", "b", "c")
	w.files["/m/typo.yaml"] = damagedOf("typo")
	w.resolve()
	w.requirePresence(Held, "a", "b", "c", "typo")

	w.state = Confirm(w.state, []string{"a", "d", "nobody"})
	w.resolve()
	w.requirePresence(Removed, "a")
	w.requirePresence(Held, "b", "c", "typo")
	w.requirePresence(Present, "d")
	assert.False(t, w.set.Sessions["a"].Explicit)

	w.state = Confirm(w.state, nil)
	w.resolve()
	w.requirePresence(Removed, "b", "c")
	w.requirePresence(Held, "typo")

	w.state = Confirm(w.state, []string{"typo"})
	w.resolve()
	w.requirePresence(Removed, "typo")

	w.remove("d")
	w.resolve()
	w.requirePresence(Settling, "d")
}

func TestConfirmAcceptsAnEmptiedRoot(t *testing.T) {
	w := newWorld(t)
	w.roots = append(w.roots, Root{Path: "/n", Access: Readable, Device: 7})
	w.declare("a", "b")
	w.files["/n/c.yaml"] = yamlOf("c", "1")
	w.resolve()
	delete(w.files, "/n/c.yaml")
	w.resolve()
	w.requirePresence(Held, "c")
	w.state = Confirm(w.state, nil)
	w.resolve()
	w.requirePresence(Removed, "c")
	w.remove("a")
	w.resolve()
	w.requirePresence(Settling, "a")
}

func TestAConfirmedSessionWhoseDocumentIsBackStays(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.resolve()
	w.remove("a")
	w.resolve()
	w.state = Confirm(w.state, nil)
	w.declare("a")
	w.resolve()
	w.requirePresence(Present, "a")
	w.remove("a")
	w.resolve()
	w.requirePresence(Held, "a")
}

func TestADeletedSessionIsRemovedWithoutGuardOrSettleTime(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b", "c")
	w.resolve()
	for _, name := range []string{"a", "b", "c"} {
		w.remove(name)
		w.state = Deleted(w.state, name)
	}
	w.resolve()
	w.requirePresence(Removed, "a", "b", "c")
	assert.True(t, w.set.Sessions["a"].Explicit)
	w.resolve()
	w.resolve()
	assert.Empty(t, w.set.Sessions)
}

func TestADeleteIsNotLostOnAReadingFromBeforeTheEdit(t *testing.T) {
	w := newWorld(t)
	w.declare("a")
	w.resolve()
	w.state = Deleted(w.state, "a")
	w.resolve() // a reading that was on its way
	w.requirePresence(Present, "a")
	w.remove("a")
	w.resolve()
	w.requirePresence(Removed, "a")
}

func TestADeleteMarkEndsWhenTheDocumentStays(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b")
	w.resolve()
	w.state = Deleted(w.state, "a")
	w.resolve()
	w.resolve()
	w.remove("a")
	w.resolve()
	w.requirePresence(Settling, "a")
}

func TestADecidedRemovalIsNotUndoneByAMissingRoot(t *testing.T) {
	w := newWorld(t)
	w.declare("a", "b")
	w.resolve()
	record := w.known["a"]
	w.remove("a")
	w.resolve()
	w.resolveAfter(w.policy.Settle)
	w.requirePresence(Removed, "a")
	w.known["a"] = record // it is still being stopped
	w.roots[0] = Root{Path: "/m", Access: Missing}
	w.resolve()
	w.requirePresence(Removed, "a")
	w.requirePresence(Held, "b")
	w.roots[0] = Root{Path: "/m", Access: Readable, Device: 7}
	w.declare("a")
	w.resolve()
	w.requirePresence(Present, "a", "b")
}

// A removal that the record says was decided goes on under the next daemon,
// although that one finds an empty directory; the document's return ends it.
func TestADecidedRemovalGoesOnAfterARestart(t *testing.T) {
	for name, want := range map[string]Presence{"gone": Removed, "back": Present} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("a", "b")
			w.resolve()
			w.remove("a", "b")
			for name, k := range w.known {
				k.Removal = RemovalDecided
				w.known[name] = k
			}
			if want == Present {
				w.declare("a")
			}
			w.restart()
			w.resolve()
			w.requirePresence(want, "a")
			w.requirePresence(Removed, "b")
		})
	}
}
