// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

var turnsSeed = flag.Uint64("turns-seed", 0, "seed of the test that kills while turns are delivered; 0 takes one from the clock")

const (
	// turnsChaos is how long daemons, clients and tmux servers are killed.
	turnsChaos = 2 * time.Minute
	// turnsEach is how many turns are sent to each session meanwhile.
	turnsEach = 100
	// turnsDeadline of each: what a loaded machine does not hand over in time fails.
	turnsDeadline = 20 * time.Second
)

// turnsWorld has sessions of two kinds: clients whose screen is all that tells, and
// clients whose hooks tell.
type turnsWorld struct {
	*agentWorld
	sessions []string

	mu sync.Mutex
	// sent are the names of the turns by their prompts.
	sent  map[string]string
	wrong []string
}

func newTurnsWorld(t *testing.T) *turnsWorld {
	t.Helper()
	all := agents(t)
	hooked := slices.IndexFunc(all, func(a agent) bool { return a.class == "claude" })
	if hooked < 0 {
		t.Skip("there is no agent to test with")
	}
	w := &turnsWorld{sent: map[string]string{}}
	w.agentWorld = newAgentWorld(t, all[hooked], settings{"retention": settings{"turns": 10 * turnsEach}})
	w.witnesses(50 * time.Millisecond)
	for n := range 5 {
		seen, tells := fmt.Sprint("seen", n), fmt.Sprint("tells", n)
		w.witness(seen)
		w.employ(tells)
		w.sessions = append(w.sessions, seen, tells)
	}
	return w
}

// send makes a turn, whatever is killed meanwhile: the same request is sent again until
// it is answered.
func (w *turnsWorld) send(ctx context.Context, api *server.Client, session, prompt string) error {
	end := time.Now().Add(2 * patience)
	for {
		ask, cancel := context.WithTimeout(ctx, 5*time.Second)
		made, err := api.CreateTurn(ask, &spec.Turn{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{spec.TurnRequestAnnotation: prompt}},
			Spec:       spec.TurnSpec{SessionName: session, Prompt: prompt, Deadline: &metav1.Time{Time: time.Now().Add(turnsDeadline)}},
		})
		cancel()
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.sent[prompt] = made.Name
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("send a turn to %s: %w", session, err)
		}
		api.Close()
		<-time.After(50 * time.Millisecond)
	}
}

// sender sends the turns of one session, evenly over the time.
func (w *turnsWorld) sender(ctx context.Context, session string) {
	api := server.NewClient(w.runtime + "/muxlet.sock")
	defer api.Close()
	began := time.Now()
	for n := range turnsEach {
		due := began.Add(turnsChaos * time.Duration(n) / turnsEach)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		if err := w.send(ctx, api, session, promptOf(session, n)); err != nil {
			w.mu.Lock()
			w.wrong = append(w.wrong, err.Error())
			w.mu.Unlock()
			return
		}
	}
}

func promptOf(session string, n int) string { return fmt.Sprintf("turn %s/%03d.", session, n) }

// anyPrompt finds prompts in what a client was given, also when two came as one.
var anyPrompt = regexp.MustCompile(`turn \w+/\d{3}\.`)

// received counts what the clients have written down, by prompt.
func (w *turnsWorld) received() map[string]int {
	w.Helper()
	return counted(slices.Concat(w.testimonies("prompt"), readTestimonies(w.World, filepath.Join(w.dir, "agents/journal.jsonl"), "prompt")))
}

func counted(all []testimony) map[string]int {
	counts := map[string]int{}
	for _, t := range all {
		for _, prompt := range anyPrompt.FindAllString(t.Text, -1) {
			counts[prompt]++
		}
	}
	return counts
}

// wreak kills at random until the time is over. Afterwards a daemon runs.
func (w *turnsWorld) wreak(r *rand.Rand) {
	w.Helper()
	kills := map[string]int{}
	for end := time.Now().Add(turnsChaos); time.Now().Before(end); {
		<-time.After(time.Duration(300+r.IntN(2400)) * time.Millisecond)
		switch what := r.IntN(10); {
		case what < 4:
			kills["daemon"]++
			w.kill()
			<-time.After(time.Duration(r.IntN(500)) * time.Millisecond)
			w.start()
		case what < 5:
			kills["tmux"]++
			w.killServers()
		default:
			session := w.sessions[r.IntN(len(w.sessions))]
			for _, p := range w.clients(session) {
				kills["client"]++
				_ = unix.Kill(p.pid, unix.SIGKILL) // it may have ended by itself
			}
		}
	}
	w.Logf("Killed %v", kills)
}

func (w *turnsWorld) killServers() {
	for _, p := range w.servers() {
		_ = unix.Kill(p.pid, unix.SIGKILL) // it may have ended by itself
	}
}

// ended waits until every turn is over, and returns them by name.
func (w *turnsWorld) ended() map[string]*spec.Turn {
	w.Helper()
	var turns map[string]*spec.Turn
	var open []string
	defer func() {
		if w.Failed() {
			w.Logf("Turns that are not over: %q", open)
		}
	}()
	look := time.Time{}
	waitFor(w.T, "every turn ends", turnsDeadline+3*patience, func() bool {
		if time.Since(look) < 500*time.Millisecond {
			return false // a list of a thousand costs something
		}
		list, err := w.api.Turns(w.Context(), "", "")
		look = time.Now()
		if err != nil {
			return false
		}
		turns, open = map[string]*spec.Turn{}, nil
		for i := range list.Items {
			turn := &list.Items[i]
			turns[turn.Name] = turn
			if turn.Status.FinishedAt == nil {
				open = append(open, turn.Name)
			}
		}
		return len(open) == 0
	})
	return turns
}

// requireOnce compares what is said of each turn with what the clients have received.
func (w *turnsWorld) requireOnce(turns map[string]*spec.Turn) {
	w.Helper()
	received, phases, reasons := w.received(), map[spec.TurnPhase]int{}, map[string]int{}
	delivered := 0
	for _, prompt := range slices.Sorted(maps.Keys(w.sent)) {
		turn := turns[w.sent[prompt]]
		if !assert.NotNil(w, turn, "turn %s is lost", w.sent[prompt]) {
			continue
		}
		condition := meta.FindStatusCondition(turn.Status.Conditions, spec.ConditionDelivered)
		phases[spec.DisplayTurnStatus(turn)]++
		reasons[condition.Reason]++
		n := received[prompt]
		assert.LessOrEqual(w, n, 1, "%s (%s) was received more than once", turn.Name, prompt)
		switch condition.Status {
		case metav1.ConditionTrue:
			delivered++
			assert.Equal(w, 1, n, "%s (%s) is said to be delivered", turn.Name, prompt)
		case metav1.ConditionFalse:
			assert.Equal(w, 0, n, "%s (%s) is said not to be delivered: %s: %s", turn.Name, prompt, condition.Reason, condition.Message)
		case metav1.ConditionUnknown:
		}
	}
	for prompt, n := range counted(w.testimonies("paste")) {
		assert.Equal(w, 1, n, "%s was pasted more than once", prompt)
	}
	for prompt := range received {
		assert.Contains(w, w.sent, prompt, "nobody has sent it")
	}
	w.Logf("Of %d turns are %v, because of %v", len(w.sent), phases, reasons)
	assert.Greater(w, delivered, len(w.sent)/20, "the machine is too slow for this test to prove anything")
}

// A thousand turns are sent to ten sessions while the daemon, the clients and tmux are
// killed: none is received twice, what is said to be delivered was received, what is said
// not to be was not, and nothing waits for ever.
func TestAThousandTurnsUnderChaosAreReceivedAtMostOnceAndAllEnd(t *testing.T) {
	t.Parallel()
	seed := *turnsSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("to kill in the same order again: -turns-seed %d", seed)
	w := newTurnsWorld(t)
	w.start()
	for _, session := range w.sessions {
		w.runs(session)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var senders sync.WaitGroup
	for _, session := range w.sessions {
		senders.Go(func() { w.sender(ctx, session) })
	}
	w.wreak(rand.New(rand.NewPCG(seed, 1)))
	senders.Wait()
	require.Empty(t, w.wrong)
	turns := w.ended()
	require.Len(t, w.sent, len(w.sessions)*turnsEach)
	assert.Len(t, turns, len(w.sent), "each request has made one turn")
	w.requireOnce(turns)
	w.requireOneMore()
}

// requireOneMore sends one more turn to each session.
func (w *turnsWorld) requireOneMore() {
	w.Helper()
	for _, session := range w.sessions {
		prompt := promptOf(session, 999)
		a := w.muxlet("send", session, prompt, "--timeout", "45s")
		assert.Equal(w, 0, a.code, "one more turn to %s: %s", session, a.text())
		assert.Equal(w, 1, w.received()[prompt], session)
	}
}
