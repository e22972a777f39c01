// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
)

// What a client tells while no daemon runs is in the spool, and the next daemon knows by
// that how the turn has ended: also of a client that is gone by then.
func TestWhatIsToldWithoutADaemonEndsATurn(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("dies=%v", dies), func(t *testing.T) {
			t.Parallel()
			c := startChats(t, envtest.Config{})
			c.Behave("a", envtest.Manners{Works: 2 * time.Second})
			c.runs(classAgent, "a")
			name := c.send("a", "hello")
			c.waitTurn(name, spec.TurnDelivered)
			client := c.Client("a").Process
			c.Drop()
			c.Eventually("the end of the turn is spooled", func() bool { return c.spooled("Done") })
			if dies {
				c.Kill(client)
				c.WaitGone(client)
			}
			c.Boot()
			c.waitTurn(name, spec.TurnCompleted)
			require.Equal(t, []string{"hello"}, c.ReceivedTexts("a"))
		})
	}
}

// spooled says whether a report of that kind waits on disk.
func (c chats) spooled(kind string) bool {
	a := agents{Env: c.Env}
	for _, file := range a.spooled() {
		if text := c.read(file); strings.Contains(text, `"kind":"`+kind+`"`) {
			return true
		}
	}
	return false
}

// A report that a turn ends by is answered once that is on disk: a daemon that crashes
// before finds it in the spool.
func TestAReportIsKeptUntilTheTurnIsSaved(t *testing.T) {
	t.Parallel()
	var fail unsaved
	c := startChats(t, envtest.Config{Adjust: func(o *controller.Options) {
		fail.Turns = o.TurnStore
		o.TurnStore = &fail
	}})
	c.Behave("a", envtest.Manners{Works: time.Second})
	c.runs(classAgent, "a")
	name := c.send("a", "hello")
	c.waitTurn(name, spec.TurnDelivered)
	fail.refuse(true)
	c.Eventually("the end of the turn is spooled", func() bool { return c.spooled("Done") })
	c.Always(stays, "it stays so", func() bool { return c.spooled("Done") })
	assert.Positive(t, scrape(c.Env).value("muxlet_reconcile_errors_total", "kind", "save"), "whoever watches learns of it")
	fail.refuse(false)
	c.Restart()
	c.waitTurn(name, spec.TurnCompleted)
	c.Eventually("nothing waits any more", func() bool { return !c.spooled("Done") })
}

// A turn for a class that takes it as an argument begins a client with it.
func TestATurnIsGivenAsAnArgument(t *testing.T) {
	t.Parallel()
	c := startChats(t, envtest.Config{})
	c.Write("class-word.yaml", `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: word}
spec:
  start: {command: [/bin/sh, -c, 'printf "%s\n" "$1" >>words; echo "> "; exec sleep 1000', sh]}
  working: {pattern: "never shown"}
  ready: {pattern: "^>( |$)"}
  submit: {method: Argument}
`)
	s := c.session("a", "word")
	s.Spec.ProvisioningPolicy = spec.ProvisioningOnDemand
	c.Apply(s)
	c.WaitFor("a", envtest.Shows(spec.StatusDormant))
	name := c.send("a", "it's one; \"word\" $HOME")
	ended := c.waitEnd(name)
	require.Equal(t, metav1.ConditionTrue, deliveredOf(ended).Status, deliveredOf(ended).Message)
	require.Equal(t, "it's one; \"word\" $HOME\n", c.read(c.Work+"/words"))
	require.Empty(t, c.Actions(actuate.ActionPaste))
}

// Fewer turns are kept as soon as the settings say so.
func TestFewerTurnsAreKeptOnceTheSettingsSaySo(t *testing.T) {
	t.Parallel()
	var limits atomic.Pointer[turn.Limits]
	limits.Store(&turn.Limits{Turns: 100, Age: time.Hour, Bytes: 1 << 20})
	var settings controller.Settings
	c := startChats(t, envtest.Config{Adjust: func(o *controller.Options) {
		o.TurnStore = turn.NewStore(o.StateDir, func() time.Time { return time.Now().UTC().Round(0) }, func() turn.Limits { return *limits.Load() })
		settings = o.Initial
	}})
	c.runs(classAgent, "a")
	for n := range 4 {
		c.waitTurn(c.send("a", fmt.Sprint(n)), spec.TurnCompleted)
	}
	require.Len(t, c.Controller().Turns().Items, 4)
	settings.Turns = turn.Limits{Turns: 1, Age: time.Hour, Bytes: 1 << 20}
	limits.Store(&settings.Turns)
	c.Controller().Reload(settings)
	c.Eventually("one is kept", func() bool { return len(c.Controller().Turns().Items) == 1 })
	require.Equal(t, "a-4", c.Controller().Turns().Items[0].Name)
	require.NoError(t, c.Controller().DeleteTurn(context.Background(), "a-4"))
	require.Empty(t, c.prompts())
}
