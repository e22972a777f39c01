// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// written are clients' files that tell what was written last.
type written struct{ state observe.EvidenceState }

func (w *written) Evidence(observe.ConversationRef) observe.Evidence {
	return observe.Evidence{State: w.state}
}

func (*written) Files(observe.ConversationRef, observe.Process) observe.Files { return observe.Files{} }

func (*written) Answer(observe.ConversationRef, time.Time, int) (string, error) { return "", nil }

// A turn that is over asks anew, and nobody waits for that answer: the next pass has
// it, although what was found before the turn is not old.
func TestTheAnswerThatNobodyWaitedForIsTheNextPasss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &written{state: observe.EvidenceUnusable}
		ctl := bare(t, Options{Clock: clock.RealClock{}, Clients: files})
		s, ref := newSession("s"), observe.ConversationRef{ID: "c", Class: &spec.ClientClassSpec{}}
		ctl.evidenceOf(s, ref, time.Now(), 0)
		synctest.Wait()
		assert.Equal(t, observe.EvidenceUnusable, ctl.evidenceOf(s, ref, time.Now().Add(-time.Minute), 0).State)
		<-time.After(time.Second)
		files.state = observe.EvidenceResumable
		ctl.evidenceOf(s, ref, time.Now(), 0)
		synctest.Wait()
		assert.Equal(t, observe.EvidenceResumable, ctl.evidenceOf(s, ref, time.Now().Add(-time.Minute), 0).State)
	})
}

// sluggish is a file system whose answers take longer than a pass waits.
type sluggish struct{ written }

func (f *sluggish) Evidence(ref observe.ConversationRef) observe.Evidence {
	<-time.After(2 * asidePatience)
	return f.written.Evidence(ref)
}

// A start waits for a look on a slow file system, and not for ever; a look from before
// its client's end proves nothing.
func TestASlowLookAtATranscriptIsWaitedForAndDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl := bare(t, Options{Clock: clock.RealClock{}, Clients: &sluggish{written{observe.EvidenceResumable}}})
		s, ref := newSession("s"), observe.ConversationRef{ID: "c", Class: &spec.ClientClassSpec{}}
		died := time.Now()
		<-time.After(time.Second)
		look := func(changed time.Time) observe.EvidenceState {
			found := ctl.evidenceForStart(s, ref, time.Now(), changed).State
			// The next pass comes with the answer.
			<-time.After(asidePatience)
			synctest.Wait()
			return found
		}
		assert.Equal(t, observe.EvidenceUnknown, look(died))
		assert.Equal(t, observe.EvidenceResumable, look(died))
		assert.Equal(t, observe.EvidenceUnknown, look(time.Now()), "its client has died since")
		assert.Equal(t, observe.EvidenceResumable, look(died))
	})
}
