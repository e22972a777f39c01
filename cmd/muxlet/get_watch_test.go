// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// page is where a command that goes on writes to.
type page struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *page) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(data)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// going is a command that goes on.
type going struct {
	t           *testing.T
	out, errOut *page
	interrupt   context.CancelFunc
	code        chan int
}

func (c *cli) begin(args ...string) *going {
	c.t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	w := &going{t: c.t, out: &page{}, errOut: &page{}, interrupt: interrupt, code: make(chan int, 1)}
	prepare := c.prepare
	c.prepare = func(g *globals) {
		prepare(g)
		g.out, g.errOut = w.out, w.errOut
	}
	go func() { w.code <- c.runIn(ctx, args...) }()
	c.t.Cleanup(func() {
		interrupt()
		<-w.code
	})
	return w
}

// shows waits until a line was printed.
func (w *going) shows(text string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return strings.Contains(w.out.String()+w.errOut.String(), text) }, 20*time.Second, time.Millisecond,
		"%s\n%s%s", text, w.out, w.errOut)
}

// ends interrupts it, as ^C does, and gives its exit code.
func (w *going) ends() int {
	w.interrupt()
	code := <-w.code
	w.code <- code
	return code
}

func TestGetWatchPrintsWhatIsThereAndThenEachChange(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5), runningSession("b", 1, 6))
	w := newCLI(t, f).begin("get", "-w")
	w.shows("\nb ")
	f.set(suspendedSession("b"))
	w.shows("Suspended")
	older := suspendedSession("b")
	older.Status.Evidence.ObservedAt = before(0)
	condition(&older, spec.ConditionReady, metav1.ConditionFalse, spec.ReasonSuspended, "another word that has no column")
	f.set(older)
	f.set(runningSession("a-long-name", 1, 7))
	w.shows("a-long-name")
	f.remove("a")
	w.shows("Deleted")
	assert.Equal(t, 0, w.ends(), "it is ended by a person")
	assert.Equal(t, ""+
		"NAME   CLASS   STATUS    READY   RESTARTS   ACTIVITY   AGE\n"+
		"a      exec    Running   True    0          -          26h\n"+
		"b      exec    Running   True    0          -          26h\n"+
		"b      exec    Suspended   False   0          -          26h\n"+
		"a-long-name   exec    Running     True    0          -          26h\n"+
		"a             exec    Deleted     True    0          -          26h\n", w.out.String())
	assert.Empty(t, w.errOut.String())
}

func TestGetWatchOfOneSessionOrASelection(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5), runningSession("b", 1, 6))
	one := newCLI(t, f)
	c := newCLI(t, nil)
	c.env = one.env
	named := one.begin("get", "a", "-w", "-o", "name")
	two := newCLI(t, nil)
	two.env = one.env
	selected := two.begin("get", "-l", "repo=shop", "--watch-only", "-o", "jsonpath={.metadata.name} {.metadata.labels.repo}")
	named.shows("session.muxlet.dev/a\n")
	f.set(runningSession("b", 2, 7))
	labelled := runningSession("a", 1, 5)
	labelled.Labels = map[string]string{"repo": "shop"}
	require.Eventually(t, func() bool {
		f.set(runningSession("a", 1, 5))
		f.set(labelled)
		return strings.Contains(selected.out.String(), "a shop\n")
	}, 20*time.Second, 10*time.Millisecond)
	named.shows("session.muxlet.dev/a\nsession.muxlet.dev/a\n")
	assert.NotContains(t, named.out.String(), "/b")
	assert.Equal(t, 0, named.ends())
	assert.Equal(t, 0, selected.ends())

	assert.Equal(t, exitNotFound, c.run("get", "nobody", "-w"))
	assert.Equal(t, "Error: session \"nobody\" not found: \"muxlet get\" lists those that exist\n", c.errOut)
}

func TestGetWatchForAProgramPrintsOneDocumentAfterAnother(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	c := newCLI(t, f)
	events := newCLI(t, nil)
	events.env = c.env
	plain := c.begin("get", "-w", "-o", "yaml")
	told := events.begin("get", "-w", "-o", "json", "--output-watch-events")
	plain.shows("kind: Session")
	told.shows(`"type": "ADDED"`)
	f.remove("a")
	plain.shows("---\n")
	told.shows(`"type": "DELETED"`)
	require.Eventually(t, func() bool { return strings.Count(plain.out.String(), "kind: Session") == 2 }, 20*time.Second, time.Millisecond)
	assert.Equal(t, 0, plain.ends())
	assert.Equal(t, 0, told.ends())
}

func TestGetWatchOnlyOfWhatWaits(t *testing.T) {
	f := newFakeDaemon(runningSession("a", 1, 5))
	w := newCLI(t, f).begin("get", "-w", "--waiting", "--no-headers")
	w.shows("none waits for a person")
	f.set(stalledSession("a", spec.ReasonWorkspaceMissing, ""))
	w.shows("Blocked")
	f.set(runningSession("a", 2, 6))
	w.shows("Running")
	assert.NotContains(t, w.out.String(), deletedWord, "it waits no longer, and runs")
	f.set(stalledSession("a", spec.ReasonWorkspaceMissing, ""))
	require.Eventually(t, func() bool { return strings.Count(w.out.String(), "Blocked") == 2 }, 20*time.Second, time.Millisecond)
	f.remove("a")
	w.shows(deletedWord)
	assert.Equal(t, 0, w.ends())
}

func TestGetWatchCallsDeletedOnlyWhatIsGone(t *testing.T) {
	labelled := func(name, repo string) spec.Session {
		s := runningSession(name, 1, 5)
		s.Labels = map[string]string{"repo": repo}
		return s
	}
	f := newFakeDaemon(labelled("a", "shop"), labelled("b", "shop"))
	w := newCLI(t, f).begin("get", "-w", "-l", "repo=shop", "--output-watch-events")
	w.shows("ADDED   b")
	f.set(labelled("a", "web"))
	w.shows("DELETED   a      exec    Running")
	f.remove("b")
	w.shows("DELETED   b      exec    Deleted")
	assert.Equal(t, 0, w.ends())
}

func TestGetWatchWithoutADaemonIsAnError(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, exitError, c.run("get", "-w"))
	assert.Contains(t, c.errOut, "No muxlet daemon answers")
}

func TestEventsWatchPrintsWhatIsNew(t *testing.T) {
	f := newFakeDaemon(runningSession("web", 1, 5))
	f.tell(event("web", corev1.EventTypeNormal, spec.ReasonStarted, "Incarnation 1 was started (pid 12).", 1, time.Hour, time.Hour))
	c := newCLI(t, f)
	warnings := newCLI(t, nil)
	warnings.env = c.env
	w := c.begin("events", "-w")
	only := warnings.begin("events", "--watch-only", "--types", "warning", "--for", "sessions/web")
	w.shows("Incarnation 1 was started")
	f.tell(event("api", corev1.EventTypeWarning, spec.ReasonDied, "Another session's.", 1, 0, 0))
	require.Eventually(t, func() bool {
		f.tell(event("web", corev1.EventTypeWarning, spec.ReasonDied, "The client exited with status 1.", 2, time.Hour, 0))
		return strings.Contains(only.out.String(), "exited with status 1")
	}, 20*time.Second, 10*time.Millisecond)
	w.shows("0s (x2 over 60m)   Warning")
	w.shows("Another session's.")
	assert.Equal(t, 1, strings.Count(w.out.String(), "LAST SEEN"))
	assert.NotContains(t, only.out.String(), "Another")
	assert.NotContains(t, only.out.String(), "Normal")
	assert.Equal(t, 0, w.ends())
	assert.Equal(t, 0, only.ends())
}
