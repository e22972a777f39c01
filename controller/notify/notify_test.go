// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/spec"
)

var (
	epoch  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	policy = Policy{On: spec.NotificationEvents, MinInterval: 30 * time.Second, FocusAfter: 5 * time.Second}
)

const manyRooms = 100

func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * float64(time.Second))) }

func asks(since float64) Occasion {
	return Occasion{Event: spec.NotifyInputRequired, Reason: spec.ReasonPermissionRequired, Message: "it asks", Since: at(since), Attempt: "one"}
}

func stalled() Occasion {
	return Occasion{Event: spec.NotifyStalled, Reason: spec.ReasonWorkspaceMissing, Since: at(0)}
}

func ended(since float64) Occasion {
	return Occasion{Event: spec.NotifyTurnCompleted, Reason: spec.ReasonCompleted, Since: at(since), Attempt: "one"}
}

func session(name string, o ...Occasion) Subject {
	return Subject{UID: "uid-" + name, Name: name, Known: true, Occasions: o}
}

func watched(s Subject) Subject { s.Watched = true; return s }

func unknown(s Subject) Subject { s.Known = false; return s }

// step is something that happens to a book at a time, and what is told then.
type step struct {
	at   float64
	does func(b *Book, now time.Time)
	// told as "event name[,name]"; again in seconds since the beginning, 0 for never.
	told  []string
	again float64
}

func observes(subjects ...Subject) func(*Book, time.Time) {
	return func(b *Book, now time.Time) {
		for _, s := range subjects {
			b.Observe(now, s)
		}
	}
}

func nothing(*Book, time.Time) {}

func words(due []Notice) (told []string) {
	for _, n := range due {
		line := string(n.Event)
		for i, a := range n.About {
			line += map[bool]string{true: " ", false: ","}[i == 0] + a.Name
		}
		told = append(told, line)
	}
	return told
}

func TestWhatIsDue(t *testing.T) {
	inputOnly := policy
	inputOnly.On = []spec.NotificationEvent{spec.NotifyInputRequired}
	unlimited := policy
	unlimited.MinInterval = 0
	other := asks(40)
	other.Reason = spec.ReasonTrustRequired
	successor := asks(3)
	successor.Attempt = "two"
	for name, c := range map[string]struct {
		policy Policy
		marks  []Mark
		steps  []step
	}{
		"a state is told once, when it has held for a moment": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a"}},
			{at: 100, does: observes(session("a", asks(0)))},
		}},
		"what is over before it is told is not told": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 0.5, does: observes(session("a"))},
			{at: 5, does: nothing},
		}},
		"the next state within the interval is told after it": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a"}},
			{at: 3, does: observes(session("a", ended(3))), again: 31},
			{at: 31, does: nothing, told: []string{"TurnCompleted a"}},
		}},
		"of several states within the interval the last one is told": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a"}},
			{at: 3, does: observes(session("a", ended(3))), again: 31},
			{at: 20, does: observes(session("a", other)), again: 31},
			{at: 31, does: nothing, told: []string{"InputRequired a"}},
		}},
		"a question that is reported once more is the same": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a"}},
			{at: 6, does: observes(session("a", asks(6)))},
			{at: 60, does: observes(session("a", asks(6)))},
		}},
		"the same question of a later time is another one": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a"}},
			{at: 40, does: observes(session("a", asks(40))), again: 41},
			{at: 41, does: nothing, told: []string{"InputRequired a"}},
		}},
		"the question of the next client is another one": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a"}},
			{at: 3, does: observes(session("a", successor)), again: 31},
			{at: 31, does: nothing, told: []string{"InputRequired a"}},
		}},
		"work that ends again is told again": {steps: []step{
			{at: 0, does: observes(session("a", ended(0))), again: 1},
			{at: 1, does: nothing, told: []string{"TurnCompleted a"}},
			{at: 33, does: observes(session("a", ended(33))), again: 34},
			{at: 34, does: nothing, told: []string{"TurnCompleted a"}},
		}},
		"who looks at it is not told, nor later of what they have seen": {steps: []step{
			{at: 0, does: observes(watched(session("a", asks(0)))), again: 5},
			{at: 5, does: nothing},
			{at: 6, does: observes(session("a", asks(0)))},
		}},
		"who has left before it counts as seen is told": {steps: []step{
			{at: 0, does: observes(watched(session("a", asks(0)))), again: 5},
			{at: 2, does: func(b *Book, now time.Time) { b.Watch(now, "uid-a", false) }, told: []string{"InputRequired a"}},
		}},
		"who comes before it is told is not told": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 0.5, does: func(b *Book, now time.Time) { b.Watch(now, "uid-a", true) }, again: 5.5},
			{at: 5.5, does: nothing},
		}},
		"an event that is not wanted is not told": {policy: inputOnly, steps: []step{
			{at: 0, does: observes(session("a", ended(0)), session("b", stalled()), session("c", asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired c"}},
		}},
		"each event is told, the most urgent first, each after the interval": {steps: []step{
			{at: 0, does: observes(session("a", stalled(), asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a"}, again: 0},
			{at: 2, does: nothing, again: 31},
			{at: 31, does: nothing, told: []string{"Stalled a"}},
		}},
		"a few sessions are told one by one, who waits longest first": {steps: []step{
			{at: 1, does: observes(session("a", asks(1)), session("b", asks(0)), session("c", stalled())), again: 2},
			{at: 2, does: nothing, told: []string{"InputRequired b", "InputRequired a", "Stalled c"}},
		}},
		"many sessions are told together": {steps: []step{
			{at: 0, does: observes(session("a", asks(0)), session("b", asks(0)), session("d", asks(0)), session("c", asks(0)), session("e", stalled())), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a,b,c,d", "Stalled e"}},
		}},
		"states that begin within a second are told together": {steps: []step{
			{at: 0, does: observes(session("z", stalled())), again: 1},
			{at: 0.2, does: observes(session("a", asks(0.2))), again: 1},
			{at: 0.4, does: observes(session("b", asks(0.4))), again: 1},
			{at: 0.6, does: observes(session("c", asks(0.6))), again: 1},
			{at: 0.9, does: observes(session("d", asks(0.9))), again: 1},
			{at: 1, does: nothing, told: []string{"Stalled z"}, again: 2},
			{at: 2, does: nothing, told: []string{"InputRequired a,b,c,d"}},
		}},
		"what is not known is neither told nor over": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a"}},
			{at: 40, does: observes(unknown(session("a")))},
			{at: 41, does: observes(session("a", asks(0)))},
			{at: 50, does: observes(unknown(session("b", asks(50))))},
			{at: 60, does: observes(session("b", asks(50))), told: []string{"InputRequired b"}},
		}},
		"what was told before a restart is not told again": {marks: []Mark{{UID: "uid-a", Event: spec.NotifyInputRequired, Reason: spec.ReasonPermissionRequired, Attempt: "one"}}, steps: []step{
			{at: 100, does: observes(unknown(session("a")))},
			{at: 101, does: observes(session("a", asks(100)))},
			{at: 150, does: observes(session("a", asks(100)))},
		}},
		"what is over after a restart is told when it is there again": {marks: []Mark{{UID: "uid-a", Event: spec.NotifyInputRequired, Reason: spec.ReasonPermissionRequired, Attempt: "one"}}, steps: []step{
			{at: 100, does: observes(session("a"))},
			{at: 101, does: observes(session("a", asks(101))), again: 102},
			{at: 102, does: nothing, told: []string{"InputRequired a"}},
		}},
		"another question after a restart is told": {marks: []Mark{{UID: "uid-a", Event: spec.NotifyInputRequired, Reason: spec.ReasonTrustRequired, Attempt: "one"}}, steps: []step{
			{at: 100, does: observes(session("a", asks(100))), again: 101},
			{at: 101, does: nothing, told: []string{"InputRequired a"}},
		}},
		"ended work that was told before a restart is not told again, and other work is": {marks: []Mark{{UID: "uid-a", Event: spec.NotifyTurnCompleted, Reason: spec.ReasonCompleted, Attempt: "one", Since: at(5)}}, steps: []step{
			{at: 100, does: observes(session("a", ended(5)))},
			{at: 150, does: observes(session("a", ended(5)))},
			{at: 160, does: observes(session("a", ended(155))), again: 161},
			{at: 161, does: nothing, told: []string{"TurnCompleted a"}},
		}},
		"a session that is gone is forgotten": {steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 0.5, does: func(b *Book, _ time.Time) { b.Forget("uid-a") }},
			{at: 2, does: nothing},
		}},
		"without an interval each state is told at once": {policy: unlimited, steps: []step{
			{at: 0, does: observes(session("a", asks(0))), again: 1},
			{at: 1, does: nothing, told: []string{"InputRequired a"}},
			{at: 2, does: observes(session("a", ended(2))), again: 3},
			{at: 3, does: nothing, told: []string{"TurnCompleted a"}},
		}},
		"a clock that jumps back delays nothing": {steps: []step{
			{at: 5000, does: observes(session("a", asks(5000))), again: 5001},
			{at: 5001, does: nothing, told: []string{"InputRequired a"}},
			{at: 10, does: observes(session("a", ended(10))), again: 11},
			{at: 11, does: nothing, told: []string{"TurnCompleted a"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.policy.On == nil {
				c.policy = policy
			}
			b := NewBook(c.marks)
			for _, s := range c.steps {
				s.does(b, at(s.at))
				due, again := b.Due(at(s.at), c.policy, manyRooms)
				assert.Equal(t, s.told, words(due), "at %v", s.at)
				want := time.Time{}
				if s.again != 0 {
					want = at(s.again)
				}
				assert.Equal(t, want, again, "when to ask next, at %v", s.at)
			}
		})
	}
}

// The work of a hundred sessions that ends one after another is told in ten
// notifications within the interval, the last of which are of many.
func TestTheNotificationsOfAllSessionsAreBounded(t *testing.T) {
	b, sessions := NewBook(nil), map[string]bool{}
	notices, inFirst := 0, 0
	for i := 0; len(sessions) < 100; i++ {
		now := at(float64(i) * 0.3)
		if i < 100 {
			b.Observe(now, session(fmt.Sprintf("s%02d", i), ended(float64(i)*0.3)))
		}
		due, _ := b.Due(now, policy, manyRooms)
		for _, n := range due {
			notices++
			for _, a := range n.About {
				assert.False(t, sessions[a.Name], "%s is told twice", a.Name)
				sessions[a.Name] = true
			}
		}
		if now.Before(at(31)) {
			inFirst += len(due)
		}
		if !assert.Less(t, i, 400, "not all are told") {
			break
		}
	}
	assert.LessOrEqual(t, inFirst, most)
	assert.LessOrEqual(t, notices, 2*most)
}

// What there is no room for now is told when there is, as it is then.
func TestWhatThereIsNoRoomForWaits(t *testing.T) {
	b := NewBook(nil)
	observes(session("a", asks(0)), session("b", stalled()))(b, at(0))
	due, again := b.Due(at(1), policy, 1)
	assert.Equal(t, []string{"InputRequired a"}, words(due))
	assert.Zero(t, again, "who makes room asks again")
	due, _ = b.Due(at(2), policy, 0)
	assert.Empty(t, due)
	observes(session("b"), session("c", stalled()))(b, at(2))
	due, _ = b.Due(at(4), policy, 1)
	assert.Equal(t, []string{"Stalled c"}, words(due))
}

// A notification that fails is tried again after the interval while its state holds,
// three times in all.
func TestANotificationThatFailsIsTriedAFewTimes(t *testing.T) {
	b, now, count := NewBook(nil), at(0), 0
	observes(session("a", asks(0)))(b, now)
	for range 100 {
		due, again := b.Due(now, policy, manyRooms)
		for _, n := range due {
			count++
			b.Failed(n)
		}
		if now = again; again.IsZero() {
			now = now.Add(policy.MinInterval)
		}
		if now.Before(epoch) {
			now = at(float64(1000 + count))
		}
	}
	assert.Equal(t, tries, count)

	b = NewBook(nil)
	observes(session("a", asks(0)))(b, at(0))
	due, _ := b.Due(at(1), policy, manyRooms)
	observes(session("a"))(b, at(2))
	b.Failed(due[0])
	due, again := b.Due(at(40), policy, manyRooms)
	assert.Empty(t, due, "it is over")
	assert.Zero(t, again)
}

func TestMarksAreWhatASecondBookNeeds(t *testing.T) {
	b := NewBook(nil)
	observes(session("b", asks(0)), session("a", stalled()), session("c", ended(0)), session("d", asks(0)))(b, at(0))
	assert.Empty(t, b.Marks(), "nothing is told yet")
	assert.ElementsMatch(t, []string{"uid-a", "uid-b", "uid-c", "uid-d"}, b.Open())
	_, _ = b.Due(at(1), policy, manyRooms)
	observes(session("d"))(b, at(2))
	want := []Mark{
		{UID: "uid-a", Event: spec.NotifyStalled, Reason: spec.ReasonWorkspaceMissing},
		{UID: "uid-b", Event: spec.NotifyInputRequired, Reason: spec.ReasonPermissionRequired, Attempt: "one"},
		{UID: "uid-c", Event: spec.NotifyTurnCompleted, Reason: spec.ReasonCompleted, Attempt: "one", Since: at(0)},
	}
	assert.Equal(t, want, b.Marks())
	assert.Empty(t, b.Open())
	assert.Equal(t, want, NewBook(b.Marks()).Marks())
}
