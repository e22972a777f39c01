// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller/envtest"
)

var chaosSeed = flag.Uint64("chaos-seed", 0, "seed of the chaos test; 0 takes one from the clock")

// chaosTime is how long clients, servers and controllers are killed.
const chaosTime = 10 * time.Second

// Invariant 4: at most one live client for each session, at every instant, while
// clients, panes, tmux servers, launchers and controllers are killed at random,
// and sockets and the state get lost. Numbers rise strictly as long as there is
// a state to keep them.
func TestUnderChaosASessionNeverHasTwoClientsAndInTheEndHasOne(t *testing.T) {
	for name, stateIsLost := range map[string]bool{"state kept": false, "state lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := *chaosSeed
			if seed == 0 {
				seed = uint64(time.Now().UnixNano())
			}
			t.Logf("to see the same again: -chaos-seed %d", seed)
			e := envtest.Start(t, envtest.Config{})
			scripts := map[string]envtest.Script{
				"plain":    {},
				"stubborn": {Ignore: []string{"SIGHUP", "SIGTERM"}},
				"hidden":   {Rename: "node", Closes: true},
				"mortal":   {Ends: true, Lives: 700 * time.Millisecond, Exit: 1},
			}
			names := slices.Sorted(maps.Keys(scripts))
			for _, name := range names {
				s := e.Fake(name, scripts[name])
				s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](1)
				e.Apply(s)
			}
			stop := watchForTwins(e, names)
			wreak(e, rand.New(rand.NewPCG(seed, 1)), names, stateIsLost)
			settleAfterChaos(e)
			for _, twins := range stop() {
				assert.Fail(t, "two clients at once", twins)
			}
			assert.Len(t, e.Servers(), 1)
			if !stateIsLost {
				for _, name := range names {
					assertNumbersRise(t, name, e.Starts(name))
				}
			}
		})
	}
}

// settleAfterChaos removes the session whose client keeps dying and waits until
// each other one has one client.
func settleAfterChaos(e *envtest.Env) {
	e.Helper()
	e.Eventually("the sessions are known", func() bool { return len(e.Controller().Sessions().Items) == 4 })
	// A new daemon looks for a session's client before it lets it be deleted.
	e.Eventually("the session was looked at", func() bool { return e.Controller().Delete(e.Context(), "mortal") == nil })
	e.WaitNoSession("mortal")
	e.NoClient("mortal")
	names := []string{"hidden", "plain", "stubborn"}
	single := func() bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			s, ok := e.Session(name)
			return !ok || !envtest.Running.Holds(s) || len(e.Clients(name)) != 1
		})
	}
	e.Eventually("each session has one client", single)
	e.Always(stays, "each session has one client", single)
	for _, name := range names {
		assert.Equal(e, e.Client(name).Process.PID, e.Record(name).Client.Process.PID)
	}
}

// watchForTwins samples the clients of all sessions until the function that it
// returns is called, which tells what was seen.
func watchForTwins(e *envtest.Env, sessions []string) (stop func() []string) {
	done := make(chan struct{})
	var watcher sync.WaitGroup
	var twins []string
	watcher.Go(func() {
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
			}
			for _, name := range sessions {
				if clients := e.Clients(name); len(clients) > 1 {
					twins = append(twins, fmt.Sprintf("%s at %s: %v and %v", name, time.Now().Format(time.StampMilli), clients[0].Process, clients[1].Process))
				}
			}
		}
	})
	var once sync.Once
	stop = func() []string {
		once.Do(func() { close(done); watcher.Wait() })
		return twins
	}
	e.Cleanup(func() { stop() })
	return stop
}

// wreak does something bad again and again.
func wreak(e *envtest.Env, r *rand.Rand, names []string, loseState bool) {
	e.Helper()
	some := func() string { return names[r.IntN(len(names))] }
	killClient := func() {
		for _, client := range e.Clients(some()) {
			e.Kill(client.Process)
		}
	}
	evils := []func(){
		killClient, killClient, killClient,
		func() { _ = e.Controller().Restart(e.Context(), some()) },
		func() { e.TryTmux("kill-session", "-t", "="+some()) },
		func() { killLaunchers(e, some()) },
		func() { e.Restart() },
		func() { e.Restart() },
		func() { e.Drop(); killClient(); e.Boot() },
		func() { killServers(e) },
		func() { e.Drop(); killServers(e); e.Boot() },
		func() { _ = os.Remove(e.Socket()) },
		func() { freezeServers(e) },
	}
	if loseState {
		lose := func() { e.Drop(); e.DropState(); e.Boot() }
		evils = append(evils, lose, lose, func() { e.Drop(); e.DropState(); killServers(e); e.Boot() })
	}
	for end := time.Now().Add(chaosTime); time.Now().Before(end); {
		evils[r.IntN(len(evils))]()
		pause := time.Duration(r.IntN(300)) * time.Millisecond
		e.Always(pause, "nothing", func() bool { return true })
	}
}

func freezeServers(e *envtest.Env) {
	e.Helper()
	servers := e.Servers()
	for _, server := range servers {
		e.Signal(server, "SIGSTOP")
	}
	e.Always(200*time.Millisecond, "time passes", func() bool { return true })
	for _, server := range servers {
		e.Signal(server, "SIGCONT")
	}
}

func killServers(e *envtest.Env) {
	e.Helper()
	for _, server := range e.Servers() {
		e.Kill(server)
	}
}

// killLaunchers kills launchers that have not become clients.
func killLaunchers(e *envtest.Env, session string) {
	e.Helper()
	started := map[string]bool{}
	for _, start := range e.Starts(session) {
		started[start.Attempt] = true
	}
	for _, launcher := range e.Launches(session) {
		if !started[launcher.Attempt] {
			e.Kill(launcher.Process)
		}
	}
}

func assertNumbersRise(t *testing.T, name string, starts []envtest.Entry) {
	t.Helper()
	require.NotEmpty(t, starts, name)
	for i := range starts[1:] {
		assert.Less(t, starts[i].Incarnation, starts[i+1].Incarnation, "%s: incarnation of starts %d and %d", name, i+1, i+2)
	}
}
