// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

var (
	asksForAttention = envtest.Check{Words: "asks for attention", Holds: func(s spec.Session) bool { return spec.AsksForAttention(&s) }}
	asksNobody       = envtest.Check{Words: "asks nobody", Holds: func(s spec.Session) bool { return !spec.AsksForAttention(&s) }}
)

// A question that a person has had in front of them waits on and asks for attention no
// more, when they have left too; what the client does next asks again.
func TestAQuestionThatAPersonHasSeenAsksForAttentionNoMoreUntilThereIsNewWork(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	s := a.claude("shop")
	s.Spec.Workspace.Directory = filepath.Join(a.Dir, "elsewhere")
	require.NoError(t, os.MkdirAll(s.Spec.Workspace.Directory, 0o700))
	a.Apply(s)
	waits := envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonTrustRequired)
	a.WaitFor("shop", waits, asksForAttention)
	a.Always(2*envtest.Resync, "it goes on to ask", envtest.Holds(a.Env, "shop", asksForAttention))

	person := a.Attach("shop")
	seen := a.WaitFor("shop", waits, asksNobody)
	assert.False(t, seen.Status.Activity.SeenAt.Time.Before(seen.Status.Activity.AsksSince.Time))
	person.Leave()
	a.Always(2*envtest.Resync, "it stays seen", envtest.Holds(a.Env, "shop", asksNobody))

	a.Tmux("send-keys", "-t", a.pane("shop"), "Down")
	a.Tmux("send-keys", "-t", a.pane("shop"), "Enter")
	a.WaitFor("shop", idle, asksNobody)
	a.turn("shop", "one")
	a.WaitFor("shop", idle, asksForAttention)
}

// K6: who has looked through the questions need not do so again because the daemon was
// restarted, and ended work that nobody has seen is not lost by it.
func TestWhoAsksSinceWhenAndWhatWasSeenOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.Apply(a.strange("shop"))
	waits := envtest.Condition(spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonTrustRequired)
	// A report that comes a moment after the look may move the time, as long as it is there.
	restart := func() envtest.Check {
		at := time.Now()
		a.Restart()
		return envtest.Check{Words: "asks since before the restart", Holds: func(s spec.Session) bool {
			return s.Status.Activity != nil && s.Status.Activity.AsksSince != nil && s.Status.Activity.AsksSince.Time.Before(at)
		}}
	}
	a.WaitFor("shop", waits, asksForAttention)
	a.WaitFor("shop", waits, asksForAttention, restart())
	person := a.Attach("shop")
	a.WaitFor("shop", waits, asksNobody)
	person.Leave()
	a.WaitFor("shop", waits, asksNobody, restart())
	a.Always(2*envtest.Resync, "it stays seen", envtest.Holds(a.Env, "shop", asksNobody))

	a.trusts("shop")
	a.WaitFor("shop", idle, asksNobody)
	a.turn("shop", "one")
	a.WaitFor("shop", idle, asksForAttention)
	// Its screen shows the work for a moment longer than its report says.
	a.WaitFor("shop", idle, asksForAttention, envtest.Check{Words: "has asked for two seconds", Holds: func(s spec.Session) bool {
		return time.Since(s.Status.Activity.AsksSince.Time) > 2*time.Second
	}})
	a.WaitFor("shop", idle, asksForAttention, restart())
}

// A person has work that was ended in front of them only when it is that pane at which
// they look.
func TestEndedWorkAsksForAttentionUntilItsPaneIsInFrontOfAPerson(t *testing.T) {
	t.Parallel()
	// For as long as this a report stands against files and a screen that come behind it.
	a := startAgents(t, envtest.Config{Adjust: func(o *controller.Options) { o.Initial.FocusAfter = 3 * time.Second }})
	a.ready(a.claude("shop"))
	a.WaitFor("shop", idle, asksNobody)
	pane := a.pane("shop")
	a.Tmux("new-window", "-t", "=shop:", "sleep", "1000")
	a.Attach("shop")
	a.turn("shop", "one")
	a.WaitFor("shop", idle, asksForAttention)
	a.Always(3*envtest.Resync, "they look at another window", envtest.Holds(a.Env, "shop", asksForAttention))

	a.Tmux("select-window", "-t", pane)
	a.Tmux("split-window", "-t", pane, "sleep", "1000")
	a.Always(3*envtest.Resync, "they look at another pane", envtest.Holds(a.Env, "shop", asksForAttention))

	a.Tmux("select-pane", "-t", pane)
	a.WaitFor("shop", asksNobody)
	a.turn("shop", "two")
	a.WaitFor("shop", idle, envtest.Check{Words: "was seen after its second turn", Holds: func(s spec.Session) bool {
		activity := s.Status.Activity
		return activity.AsksSince != nil && activity.SeenAt != nil && !activity.SeenAt.Before(activity.AsksSince)
	}})
}

// counting counts the listings.
type counting struct {
	controller.Tmux
	listings *atomic.Int64
}

func (c counting) List(ctx context.Context, now func() time.Time) observe.Answer {
	c.listings.Add(1)
	return c.Tmux.List(ctx, now)
}

// Somebody in front of a session that asks nothing costs nothing.
func TestNobodyIsWatchedInFrontOfASessionThatAsksNothing(t *testing.T) {
	t.Parallel()
	var listings atomic.Int64
	a := startAgents(t, envtest.Config{Adjust: func(o *controller.Options) { o.Tmux = counting{o.Tmux, &listings} }})
	a.ready(a.claude("shop"))
	a.WaitFor("shop", idle)
	a.Attach("shop")
	a.WaitFor("shop", envtest.Check{Words: "has a person attached", Holds: func(s spec.Session) bool { return s.Status.Tmux.Attached == 1 }})
	before := listings.Load()
	const resyncs = 6
	a.Always(resyncs*envtest.Resync, "it asks nobody", envtest.Holds(a.Env, "shop", asksNobody))
	assert.LessOrEqual(t, listings.Load()-before, int64(2*resyncs), "listings beside those of the resyncs")
}

// Who looks at what is counted by pane: people of grouped sessions, and of several
// terminals, each have one in front of them.
func TestAListingCountsWhoLooksAtEachPane(t *testing.T) {
	t.Parallel()
	e := oneRuns(t)
	pane := e.Panes("a")[0].PaneID
	other := e.Tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=a:", "sleep", "1000")
	looks := func(want map[string]int) func() bool {
		return func() bool {
			l, ok := e.Listing()
			for _, p := range l.Panes {
				ok = ok && p.InFront == want[p.PaneID]
			}
			return ok
		}
	}
	e.Eventually("nobody looks", looks(nil))
	first := e.Attach("a")
	e.Attach("a")
	e.Eventually("two look at the client", looks(map[string]int{pane: 2}))
	e.AttachWith(100, 30, "new-session", "-s", "mine", "-t", "=a", ";", "select-window", "-t", other)
	e.Eventually("a third one looks at another window of it", looks(map[string]int{pane: 2, other: 1}))
	first.Leave()
	e.Eventually("one has left", looks(map[string]int{pane: 1, other: 1}))
}
