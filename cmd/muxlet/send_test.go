// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// becoming lets each turn that is sent go through the states, soon after it was taken.
func becoming(f *fakeDaemon, states ...func(spec.Turn) spec.Turn) {
	f.sent = func(f *fakeDaemon, t spec.Turn) error {
		go func() {
			for _, state := range states {
				t = state(t)
				f.setTurn(t)
			}
		}()
		return nil
	}
}

func failingWith(reason, message string, retryable bool) func(spec.Turn) spec.Turn {
	return func(t spec.Turn) spec.Turn { return failedTurn(t, reason, message, retryable) }
}

func shops(names ...string) *fakeDaemon {
	f := newFakeDaemon()
	for i, name := range names {
		s := runningSession(name, 1, 5+i)
		s.Labels = map[string]string{"repo": name[:1]}
		f.set(s)
	}
	return f
}

func (f *fakeDaemon) promptOf(t *testing.T, name string) string {
	t.Helper()
	turn, err := f.Turn(name)
	require.NoError(t, err)
	return turn.Spec.Prompt
}

func TestSendSaysOnOneLineThatTheClientHasTheTurn(t *testing.T) {
	f := shops("shop")
	becoming(f, deliveringTurn, deliveredTurn)
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("send", "shop", "run the tests"))
	assert.Equal(t, "turn/shop-1 delivered to session \"shop\"\n", c.out)
	assert.Empty(t, c.errOut, "nothing is told on the way where no person reads it")
	assert.Equal(t, "run the tests", f.promptOf(t, "shop-1"))
	turn, _ := f.Turn("shop-1")
	assert.True(t, turn.Spec.Deadline.Time.Equal(noon.Add(2*time.Minute)), turn.Spec.Deadline)
	assert.NotEmpty(t, turn.Annotations[spec.TurnRequestAnnotation])
}

func TestTheTextIsTheLastArgumentOrStandardInput(t *testing.T) {
	for _, r := range []struct {
		args  []string
		stdin string
		want  map[string]string
	}{
		{[]string{"shop", "text"}, "", map[string]string{"shop-1": "text"}},
		{[]string{"session/shop", "sessions/web", "a  b\n"}, "unread", map[string]string{"shop-1": "a  b\n", "web-1": "a  b\n"}},
		{[]string{"shop"}, "from a pipe\n\n", map[string]string{"shop-1": "from a pipe\n\n"}},
		{[]string{"shop", "-"}, "from a pipe", map[string]string{"shop-1": "from a pipe"}},
		{[]string{"shop", "web", "-"}, "x", map[string]string{"shop-1": "x", "web-1": "x"}},
		{[]string{"-l", "repo=w", "text"}, "", map[string]string{"web-1": "text"}},
		{[]string{"--all"}, "y", map[string]string{"shop-1": "y", "web-1": "y"}},
		{[]string{"--all", "-"}, "y", map[string]string{"shop-1": "y", "web-1": "y"}},
		{[]string{"shop", "--", "-l is a flag"}, "", map[string]string{"shop-1": "-l is a flag"}},
	} {
		f := shops("shop", "web")
		c := newCLI(t, f)
		c.stdin = r.stdin
		assert.Equal(t, 0, c.run(append([]string{"send", "--wait", "none"}, r.args...)...), "%v: %s", r.args, c.errOut)
		got := map[string]string{}
		for name := range f.turns {
			got[name] = f.promptOf(t, name)
		}
		assert.Equal(t, r.want, got, r.args)
	}
}

func TestACommandLineOfSendThatMakesNoSenseSendsNothing(t *testing.T) {
	for _, r := range []struct {
		args []string
		want string
	}{
		{[]string{}, "which sessions? Give at least one name"},
		{[]string{"-"}, "before -"},
		{[]string{"-l", "repo=s", "a", "b"}, "put it in quotes"},
		{[]string{"-l", "==", "a"}, "is not valid"},
		{[]string{"-l", "", "a"}, "say --all if you mean that"},
		{[]string{"-l", "repo=s", "--all", "a"}, "cannot be given together"},
		{[]string{"cc/claude", "a"}, "names no session"},
		{[]string{"shop", "a", "--wait", "ready"}, `unknown word "ready" for --wait: it must be delivered, completed or none`},
		{[]string{"shop", "a", "--timeout", "0s"}, "longer than 0"},
		{[]string{"shop", "a", "--timeout", "720h"}, "shorter than 720h0m0s"},
		{[]string{"shop", "a", "-o", "wide"}, "it must be json, yaml or name"},
	} {
		f := shops("shop")
		c := newCLI(t, f)
		c.stdin = "text"
		assert.Equal(t, exitUsage, c.run(append([]string{"send"}, r.args...)...), r.args)
		assert.Contains(t, c.errOut, r.want, r.args)
		assert.Empty(t, f.intents(), r.args)
	}
	f := shops("shop")
	c := newCLI(t, f)
	c.prepare = func(g *globals) { g.interactive = func() bool { return true } }
	assert.Equal(t, exitUsage, c.run("send", "shop"), "a person is not left before a silent terminal")
	assert.Contains(t, c.errOut, "what is to be sent?")
	assert.Empty(t, f.intents())
}

func TestATextThatCannotBeSentIsInvalid(t *testing.T) {
	for _, r := range []struct{ text, stdin, want string }{
		{" \n", "", "the text is empty"},
		{"-", "\n\t\n", "standard input is empty"},
		{"-", strings.Repeat("x", spec.MaxPromptBytes+1), "more than 1048576 bytes"},
		{"-", "x" + strings.Repeat("\n", 3*spec.MaxPromptBytes) + "y", "more than 1048576 bytes"},
		{"-", "\xff", "not UTF-8"},
	} {
		f := shops("shop")
		c := newCLI(t, f)
		c.stdin = r.stdin
		assert.Equal(t, exitError, c.run("send", "shop", r.text, "-o", "json"), r.want)
		assert.Contains(t, c.errOut, r.want)
		var status metav1.Status
		require.NoError(t, json.Unmarshal([]byte(c.errOut), &status))
		assert.Equal(t, server.ReasonInvalid, status.Reason)
		assert.Empty(t, f.turns)
	}
	f := shops("shop")
	c := newCLI(t, f)
	c.stdin = strings.Repeat("x", spec.MaxPromptBytes) + "\n\n"
	assert.Equal(t, 0, c.run("send", "shop", "--wait=none"))
	assert.Equal(t, "turn/shop-1 sent to session \"shop\"\n", c.out)
}

func TestATurnThatIsOverBeforeItIsLookedForIsNotMissed(t *testing.T) {
	f := shops("shop")
	f.sent = func(f *fakeDaemon, t spec.Turn) error {
		f.setTurn(completedTurn(t))
		f.removeTurn(t.Name)
		return nil
	}
	c := newCLI(t, f)
	c.prepare = func(g *globals) { g.patience = time.Minute }
	assert.Equal(t, 0, c.run("send", "shop", "x", "--wait=completed"))
	assert.Equal(t, "turn/shop-1 completed by session \"shop\"\n", c.out)
}

func TestTheEndOfTheAnswerFollowsACompletedTurn(t *testing.T) {
	f := shops("shop", "web")
	f.answers = map[string]string{"shop-1": strings.Repeat("not shown\n", 5) + strings.Repeat("line\n", 9) + "the \x1b[31mend\n"}
	becoming(f, deliveredTurn, completedTurn)
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("send", "shop", "web", "x", "--wait=completed"))
	assert.Equal(t, "turn/shop-1 completed by session \"shop\"\n"+strings.Repeat("line\n", 9)+"the ^[[31mend\nturn/web-1 completed by session \"web\"\n", c.out)
	assert.Empty(t, c.errOut)
}

func TestAPersonIsToldHowFarATurnIs(t *testing.T) {
	f := shops("shop")
	seen := make(chan string)
	steps := []func(spec.Turn) spec.Turn{
		func(t spec.Turn) spec.Turn { return waitingTurn(t, spec.ReasonStarting, "x") },
		func(t spec.Turn) spec.Turn { return waitingTurn(t, spec.ReasonNotReady, "x") },
		func(t spec.Turn) spec.Turn { return waitingTurn(t, spec.ReasonNotReady, "for 3 s") },
		deliveringTurn, deliveredTurn, completedTurn,
	}
	f.sent = func(f *fakeDaemon, t spec.Turn) error {
		go func() {
			for i, step := range steps {
				t = step(t)
				f.setTurn(t)
				if i != 2 && i < len(steps)-1 {
					<-seen
				}
			}
		}()
		return nil
	}
	c := newCLI(t, f)
	c.prepare = func(g *globals) {
		g.progress = func() bool { return true }
		g.errOut = &lineSignal{g.errOut.Write, seen}
	}
	assert.Equal(t, 0, c.run("send", "shop", "x", "--wait=completed"))
	assert.Equal(t, "turn/shop-1: starting the client…\nturn/shop-1: waiting until the client is ready\nturn/shop-1: handing it over\n"+
		"turn/shop-1: delivered; the client works on it\n", c.errOut)
	assert.Equal(t, "turn/shop-1 completed by session \"shop\"\n", c.out)
}

// lineSignal signals each write after it.
type lineSignal struct {
	write func([]byte) (int, error)
	seen  chan<- string
}

func (l *lineSignal) Write(p []byte) (int, error) {
	n, err := l.write(p)
	l.seen <- string(p)
	return n, err
}

func TestEachSessionHasItsOwnEndAndTheWorstCodeCounts(t *testing.T) {
	f := shops("a", "b", "c")
	f.sent = func(f *fakeDaemon, t spec.Turn) error {
		switch t.Spec.SessionName {
		case "a":
			f.setTurn(failedTurn(t, spec.ReasonCommandNotFound, "claude was not found: install it", true))
		case "b":
			f.setTurn(deliveredTurn(t))
		case "c":
			return server.NewError(server.ReasonSuspended, "c", "session \"c\" is suspended")
		}
		return nil
	}
	c := newCLI(t, f)
	assert.Equal(t, exitRetryable, c.run("send", "a", "b", "nobody", "c", "x"))
	assert.Equal(t, "turn/b-1 delivered to session \"b\"\n", c.out)
	assert.Equal(t, "Error: turn \"a-1\" to session \"a\" was not delivered (CommandNotFound): claude was not found: install it. It is not handed over later; it can be sent again.\n"+
		"Error: session \"nobody\" not found: \"muxlet get\" lists those that exist\nError: session \"c\" is suspended\n"+
		"All arguments but the last are names of sessions: a text of several words is put in quotes.\n", c.errOut)
}

func TestSendAnswersProgramsInTheirFormat(t *testing.T) {
	f := shops("a", "b")
	becoming(f, deliveredTurn)
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("send", "a", "x", "-o", "name"))
	assert.Equal(t, "turn.muxlet.dev/a-1\n", c.out)
	assert.Equal(t, 0, c.run("send", "a", "x", "-o", "json"))
	var turn spec.Turn
	require.NoError(t, json.Unmarshal([]byte(c.out), &turn))
	assert.Equal(t, "a-2", turn.Name)
	assert.Equal(t, "Turn", turn.Kind)
	assert.Equal(t, spec.TurnDelivered, spec.DisplayTurnStatus(&turn))
	assert.Equal(t, 0, c.run("send", "--all", "x", "-o", "json"))
	var list corev1.List
	require.NoError(t, json.Unmarshal([]byte(c.out), &list))
	assert.Len(t, list.Items, 2)
	assert.Equal(t, 0, c.run("send", "a", "x", "-o", "yaml"))
	assert.Contains(t, c.out, "kind: Turn\n")

	becoming(f, failingWith(spec.ReasonDeadlineExceeded, "the client was not ready in time", true))
	assert.Equal(t, exitDeadline, c.run("send", "a", "x", "-o", "json"))
	assert.Empty(t, c.out)
	var status metav1.Status
	require.NoError(t, json.Unmarshal([]byte(c.errOut), &status))
	assert.Equal(t, server.ReasonDeadlineExceeded, status.Reason)
	assert.EqualValues(t, 504, status.Code)
	assert.Equal(t, 0, c.run("send", "-l", "repo=z", "x", "-o", "json"), "none is no error, as with kubectl")
	require.NoError(t, json.Unmarshal([]byte(c.out), &list))
	assert.Empty(t, list.Items)
}

func TestAnInterruptEndsTheWaitAndNotTheTurn(t *testing.T) {
	f := shops("shop")
	ctx, interrupt := context.WithCancel(t.Context())
	f.sent = func(f *fakeDaemon, t spec.Turn) error {
		f.setTurn(waitingTurn(t, spec.ReasonClientWorking, "the client works"))
		return nil
	}
	c := newCLI(t, f)
	c.prepare = func(g *globals) {
		g.progress = func() bool { return true }
		g.errOut = &interruption{g.errOut.Write, interrupt}
	}
	assert.Equal(t, exitDeadline, c.runIn(ctx, "send", "shop", "x"))
	assert.Equal(t, "turn/shop-1: the client works; the turn waits\nError: turn \"shop-1\" to session \"shop\" was not waited for any longer "+
		"(it is Pending (ClientWorking): the client works); it goes on: \"muxlet cancel shop-1\" takes it back.\n", c.errOut)
}

// interruption comes with the first line that is written.
type interruption struct {
	write     func([]byte) (int, error)
	interrupt context.CancelFunc
}

func (i *interruption) Write(p []byte) (int, error) {
	i.interrupt()
	return i.write(p)
}

func TestAWaitForADeliveryEndsAWhileAfterTheDeadline(t *testing.T) {
	f := shops("shop")
	f.sent = func(f *fakeDaemon, t spec.Turn) error {
		f.setTurn(deliveringTurn(t))
		return nil
	}
	c := newCLI(t, f)
	c.prepare = func(g *globals) { g.handOver = 10 * time.Millisecond }
	assert.Equal(t, exitDeadline, c.run("send", "shop", "x", "--timeout", "10ms"))
	assert.Equal(t, "Error: turn \"shop-1\" to session \"shop\" was not seen to be delivered within 20ms "+
		"(it is Delivering: it is being handed over); it goes on: see \"muxlet get turn shop-1\".\n", c.errOut)
	turn, _ := f.Turn("shop-1")
	assert.True(t, turn.Spec.Deadline.Time.Equal(noon.Add(time.Second)), "no less than was asked for")
}

func TestATurnThatEndsWhileTheDaemonIsAwayIsAskedFor(t *testing.T) {
	f := shops("shop")
	f.sent = func(f *fakeDaemon, t spec.Turn) error {
		f.setTurn(deliveringTurn(t))
		f.journals.Turns.Delete(t.Name)
		f.mu.Lock()
		f.turns[t.Name] = completedTurn(t)
		f.mu.Unlock()
		return nil
	}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("send", "shop", "x", "--wait=completed"), c.errOut)
	assert.Equal(t, "turn/shop-1 completed by session \"shop\"\n", c.out)
}

func TestATurnThatTheWatchNeverTellsOfIsAskedFor(t *testing.T) {
	f := shops("shop", "web")
	f.sent = func(f *fakeDaemon, t spec.Turn) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.turns[t.Name] = completedTurn(t)
		if t.Spec.SessionName == "web" {
			delete(f.turns, t.Name)
		}
		return nil
	}
	f.silent = true
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("send", "shop", "x", "--wait=completed"), c.errOut)
	assert.Equal(t, "turn/shop-1 completed by session \"shop\"\n", c.out)
	assert.Equal(t, exitNotFound, c.run("send", "web", "x"))
	assert.Contains(t, c.errOut, "no longer kept")
}

func TestATurnOfASessionThatIsDeletedEndsTheWait(t *testing.T) {
	f := shops("shop")
	f.sent = func(f *fakeDaemon, t spec.Turn) error {
		f.setTurn(deliveringTurn(t))
		f.removeTurn(t.Name)
		return nil
	}
	c := newCLI(t, f)
	assert.Equal(t, exitNotFound, c.run("send", "shop", "x"))
	assert.Contains(t, c.errOut, "turn \"shop-1\" to session \"shop\" is no longer kept, and what became of it was not seen")
}

func TestATurnIsSentOnceThoughTheConnectionBreaks(t *testing.T) {
	f := shops("shop")
	becoming(f, deliveredTurn)
	c := newCLI(t, nil)
	l, err := server.Listen(filepath.Join(c.dir, "run", "muxlet.sock"))
	require.NoError(t, err)
	breaking := &breakingListener{Listener: l}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, breaking, server.Handler(f)) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	f.sent = func(f *fakeDaemon, turn spec.Turn) error {
		breaking.sever()
		f.setTurn(deliveredTurn(turn))
		return nil
	}
	assert.Equal(t, 0, c.run("send", "shop", "x"), c.errOut)
	assert.Equal(t, "turn/shop-1 delivered to session \"shop\"\n", c.out)
	assert.Len(t, f.turns, 1)
	assert.Equal(t, []string{"send shop", "send shop"}, f.intents())
}

// breakingListener severs every connection that it has accepted when it is told to.
type breakingListener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (b *breakingListener) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.conns = append(b.conns, conn)
	}
	return conn, err
}

// sever breaks the connections of now.
func (b *breakingListener) sever() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.conns {
		_ = conn.Close()
	}
}

func TestSendWithoutADaemonSaysSo(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, exitError, c.run("send", "shop", "x"))
	assert.Contains(t, c.errOut, "No muxlet daemon answers")
	assert.Equal(t, exitError, c.run("send", "shop", "x", "--wait=none"))
	assert.Contains(t, c.errOut, "No muxlet daemon answers")
}
