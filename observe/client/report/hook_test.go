// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

func TestAReportOfTheClientsHookCountsForThatClientAlone(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	client, neighbour := startClient(t, p), startClient(t, p)
	client.run(hook(event("SessionStart", "id-1")))
	reports := d.all()
	require.Len(t, reports, 1)
	r := reports[0]
	assert.Equal(t, "id-1", r.Conversation)
	assert.Equal(t, "/t/id-1.jsonl", r.Transcript)
	assert.Equal(t, observe.ReportStarted, r.Kind)
	assert.Equal(t, "claude", r.Class)
	assert.Equal(t, theAttempt, r.Mark.Attempt)
	assert.Empty(t, observe.Doubt(r, client.process, theAttempt))
	assert.False(t, observe.Proves(r, neighbour.process, theAttempt), "the neighbour has not sent it")
	assert.False(t, observe.Proves(r, client.process, "an older attempt"))
	earlier := observe.Process{PID: client.process.PID, Ticks: client.process.Ticks - 1}
	assert.False(t, observe.Proves(r, earlier, theAttempt), "an older incarnation had the same pid")
	assert.True(t, isEmpty(t, SpoolLink(p.socket)), "nothing was spooled, and the way to it is there")
}

// Codex is a program of node's, and a person may have a script around a client.
func TestTheReportOfAWrappersProgramCounts(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	reports := observe.EnvReports + "=" + p.socket
	mark := observe.EnvClient + "=" + ours(p, "").Getenv(observe.EnvClient)
	for name, client := range map[string]*program{
		"node":   start(t, exec.Command(copyOfSelf(t, "node")), "wrapper", reports),
		"script": start(t, exec.Command("sh", "-c", `"$SELF"; exit $?`), "agent", reports, mark),
	} {
		client.run(hook(event("SessionStart", name)))
		all := d.all()
		r := all[len(all)-1]
		assert.Equal(t, name, r.Conversation)
		assert.NotEqual(t, client.process, r.Chain[2].Process, "the client is not the one that runs the hook")
		assert.Empty(t, observe.Doubt(r, client.process, theAttempt), "%s: %v", name, r.Chain)
	}
}

// A second agent below the client has the client's variables, and so its mark.
func TestAnAgentStartedByHandInsideTheClientDoesNotCount(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	client := startClient(t, p)
	inner := strings.ReplaceAll(hook(event("SessionStart", "foreign")), `'`, `'\''`)
	client.run("echo '" + inner + "' | " + roleVariable + `=agent "$SELF" >/dev/null`)
	reports := d.all()
	require.Len(t, reports, 1)
	assert.Equal(t, theAttempt, reports[0].Mark.Attempt, "it has inherited the mark")
	assert.Equal(t, "another program runs between the client's and its sender", observe.Doubt(reports[0], client.process, theAttempt))
}

// A report says who sent it only as far as the kernel says so, too.
func TestAForgedChainIsNotBelieved(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	client := startClient(t, p)
	forged := observe.Report{
		ID: "1", Class: "claude", Kind: observe.ReportStarted, Event: "SessionStart", Conversation: "stolen", At: time.Now(),
		Mark:  observe.Mark{Instance: "i", UID: "u", Incarnation: 1, Attempt: theAttempt, Process: client.process},
		Chain: []observe.Ancestor{{Process: client.process}},
	}
	line, err := json.Marshal(message{Version: version, Report: forged})
	require.NoError(t, err)
	require.Equal(t, answered, say(t, p, append(line, '\n')))
	reports := d.all()
	require.Len(t, reports, 1)
	assert.NotEqual(t, forged.Chain, reports[0].Chain)
	assert.False(t, observe.Proves(reports[0], client.process, theAttempt))
}

func dial(t *testing.T, p place) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", p.socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// say writes to the socket and returns the answer.
func say(t *testing.T, p place, line []byte) string {
	t.Helper()
	conn := dial(t, p)
	_, err := conn.Write(line)
	require.NoError(t, err)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	return answer
}

func TestWhatIsNoReportIsRefused(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	good := observe.Report{ID: "1", Class: "claude", Kind: observe.ReportDone, Event: "Stop", At: time.Now()}
	with := func(change func(*message)) string {
		m := message{Version: version, Report: good}
		change(&m)
		line, err := json.Marshal(m)
		require.NoError(t, err)
		return string(line) + "\n"
	}
	for name, line := range map[string]string{
		"no JSON":           "hello\n",
		"nothing":           "\n",
		"a newer version":   with(func(m *message) { m.Version++ }),
		"no id":             with(func(m *message) { m.Report.ID = "" }),
		"no time":           with(func(m *message) { m.Report.At = time.Time{} }),
		"a flag for an id":  with(func(m *message) { m.Report.Conversation = "--resume" }),
		"a path for an id":  with(func(m *message) { m.Report.Conversation = "../x" }),
		"a text for a word": with(func(m *message) { m.Report.Failure = "please log in" }),
		"a relative path":   with(func(m *message) { m.Report.Transcript = "t.jsonl" }),
		"a prompt":          with(func(m *message) { m.Report.Prompt = "please log in" }),
		"half a digest":     with(func(m *message) { m.Report.Prompt = "0123456789abcde" }),
		"capital digits":    with(func(m *message) { m.Report.Prompt = "0123456789ABCDEF" }),
		"a class with a /":  with(func(m *message) { m.Report.Class = "a/b" }),
		"too long":          with(func(m *message) { m.Report.Transcript = "/" + strings.Repeat("x", maxPath) }),
	} {
		assert.Equal(t, "no\n", say(t, p, []byte(line)), name)
	}
	assert.Empty(t, d.all())
	assert.Equal(t, answered, say(t, p, []byte(with(func(*message) {}))))
}

// B4, B8: while the daemon is away nothing is lost, whatever comes at the same time.
func TestManyHooksAtOnceLoseNothingWhileTheDaemonIsAway(t *testing.T) {
	t.Parallel()
	const clients, each = 8, 25
	p := newPlace(t)
	p.prepare(t)
	var wg sync.WaitGroup
	running := make([]*program, clients)
	for i := range running {
		running[i] = startClient(t, p)
		wg.Go(func() {
			for n := range each {
				running[i].run(hook(event("UserPromptSubmit", fmt.Sprintf("id-%d-%02d", i, n))))
			}
		})
	}
	wg.Wait()
	spooled, err := ReadSpool(p.spool)
	require.NoError(t, err)
	require.Len(t, spooled, clients*each)
	assert.True(t, slices.IsSortedFunc(spooled, func(a, b Spooled) int { return a.At.Compare(b.At) }), "the oldest comes first")
	next := make([]int, clients)
	for _, s := range spooled {
		var i, n int
		_, err := fmt.Sscanf(s.Conversation, "id-%d-%d", &i, &n)
		require.NoError(t, err)
		require.Equal(t, next[i], n, "the reports of one client keep their order")
		next[i]++
		require.Empty(t, observe.Doubt(s.Report, running[i].process, theAttempt), "what the hook saw proves its client")
	}
}

func TestNothingIsLostWhenTheDaemonIsKilledMeanwhile(t *testing.T) {
	t.Parallel()
	const total = 60
	p := newPlace(t)
	journal := filepath.Join(t.TempDir(), "journal")
	daemon := start(t, exec.Command(self(t)), "daemon", "JOURNAL="+journal, "SOCKET="+p.socket, "SPOOL="+p.spool)
	line, err := daemon.out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	var sent atomic.Int32
	var wg sync.WaitGroup
	killed := make(chan struct{})
	for i := range 4 {
		client := startClient(t, p)
		wg.Go(func() {
			for n := range total / 4 {
				if n == total/4-2 {
					<-killed // the last ones find nobody, however slow this machine is
				}
				client.run(hook(event("Stop", fmt.Sprintf("id-%d-%d", i, n))))
				sent.Add(1)
			}
		})
	}
	eventually(t, func() bool { return sent.Load() >= total/3 }, "some reports are sent")
	require.NoError(t, daemon.cmd.Process.Kill())
	close(killed)
	wg.Wait()

	seen := map[string]int{}
	text, err := os.ReadFile(journal)
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		var r observe.Report
		require.NoError(t, json.Unmarshal(line, &r))
		seen[r.Conversation]++
	}
	before := len(seen)
	d := &desk{}
	serve(t, p, d.handle)
	eventually(t, func() bool { return isEmpty(t, p.spool) }, "the next daemon empties the spool")
	for _, r := range d.all() {
		seen[r.Conversation]++
	}
	assert.Len(t, seen, total)
	assert.GreaterOrEqual(t, before, total/3, "the first daemon had its share")
	assert.Less(t, before, total, "and the second, too")
}

func isEmpty(t *testing.T, spool string) bool {
	t.Helper()
	names, err := namesIn(spool)
	require.NoError(t, err)
	return len(names) == 0
}

// A hook that did not wait for the answer has spooled what the daemon has handled.
func TestALateAnswerMakesNoSecondReport(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	release := make(chan struct{})
	d.refuse = func(observe.Report) error { <-release; return nil }
	serve(t, p, d.handle)
	h := ours(p, event("Stop", "id-1"))
	h.Answer = 10 * time.Millisecond
	require.NoError(t, h.Run())
	require.False(t, isEmpty(t, p.spool))
	close(release)
	eventually(t, func() bool { return isEmpty(t, p.spool) }, "the file is removed")
	assert.Len(t, d.all(), 1)
}

func TestAReportThatCouldNotBeHandledIsTriedAgain(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	var full atomic.Bool
	full.Store(true)
	var tries atomic.Int32
	d.refuse = func(observe.Report) error {
		tries.Add(1)
		if full.Load() {
			return errors.New("no space left on device")
		}
		return nil
	}
	serve(t, p, d.handle)
	require.NoError(t, ours(p, event("Stop", "id-1")).Run())
	eventually(t, func() bool { return tries.Load() > 2 }, "it is tried again")
	assert.False(t, isEmpty(t, p.spool))
	full.Store(false)
	eventually(t, func() bool { return isEmpty(t, p.spool) }, "it is handled in the end")
	assert.Len(t, d.all(), 1)
}

// ours is a hook in this process, with much patience.
func ours(p place, payload string) Hook {
	mark := observe.Mark{Instance: "i", UID: "u", Incarnation: 1, Attempt: theAttempt, Process: observe.Process{PID: 1, Ticks: 1}}
	env := map[string]string{observe.EnvClient: mark.String(), observe.EnvReports: p.socket}
	return Hook{
		Class: "claude", Stdin: strings.NewReader(payload), Getenv: func(name string) string { return env[name] },
		PID: os.Getpid(), Now: time.Now(), Patience: Patience{Payload: patience, Answer: patience, Whole: 2 * patience},
	}
}

func TestAHookOutsideOfAClientReportsNothing(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	for name, env := range map[string]map[string]string{
		"nothing is set":  {},
		"no socket":       {observe.EnvClient: "i/u/1/" + theAttempt + "/1/1"},
		"no mark":         {observe.EnvReports: p.socket},
		"a damaged mark":  {observe.EnvReports: p.socket, observe.EnvClient: "i/u/1"},
		"a socket's name": {observe.EnvReports: "", observe.EnvClient: "i/u/1/" + theAttempt + "/1/1"},
	} {
		payload := strings.NewReader(event("Stop", "id-1") + strings.Repeat(" ", 100))
		h := ours(p, "")
		h.Stdin, h.Getenv = payload, func(name string) string { return env[name] }
		require.ErrorIs(t, h.Run(), errOutside, name)
	}
	assert.Empty(t, d.all())
	assert.True(t, isEmpty(t, p.spool))
}

// neverEnds gives a part of a payload and then nothing more.
type neverEnds struct {
	io.Reader
	t *testing.T
}

func (n neverEnds) Read(into []byte) (int, error) {
	if count, err := n.Reader.Read(into); err == nil {
		return count, nil
	}
	<-n.t.Context().Done()
	return 0, io.EOF
}

func TestAHookWaitsForNobody(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.prepare(t)
	h := ours(p, "")
	h.Stdin, h.Payload = neverEnds{strings.NewReader(`{"session_id":"x",`), t}, 20*time.Millisecond
	require.ErrorIs(t, h.Run(), errLate)
	h = ours(p, "")
	h.Stdin, h.Whole = neverEnds{strings.NewReader(""), t}, 20*time.Millisecond
	require.ErrorIs(t, h.Run(), errLate)
	assert.True(t, isEmpty(t, p.spool))

	h = ours(p, "")
	h.Stdin = neverEnds{strings.NewReader(event("Stop", "id-1")), t}
	require.NoError(t, h.Run(), "nor for the end of an input that has said everything")
	assert.False(t, isEmpty(t, p.spool))
}

func TestADaemonThatIsStoppedGetsTheReportLater(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	stop := serve(t, p, d.handle)
	stop()
	require.NoFileExists(t, p.socket)
	require.NoError(t, ours(p, event("SessionStart", "id-1")).Run())
	require.NoError(t, ours(p, event("SessionEnd", "id-2")).Run())
	serve(t, p, d.handle)
	eventually(t, func() bool { return len(d.all()) == 2 }, "both arrive")
	assert.Equal(t, []string{"id-1", "id-2"}, []string{d.all()[0].Conversation, d.all()[1].Conversation})
}

func TestAReportThatCannotBeHandledKeepsOnlyItsOwnSessionWaiting(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	p.prepare(t)
	for n, uid := range []string{"a", "b", "a", "b"} {
		r := at(n, observe.ReportDone)
		r.Mark.UID = uid
		keep(t, p.spool, r)
	}
	d.refuse = func(r observe.Report) error {
		if r.Mark.UID == "a" {
			return errors.New("no space left on device")
		}
		return nil
	}
	l, err := Listen(p.socket, p.spool)
	require.NoError(t, err)
	require.EqualError(t, l.Drain(t.Context(), d.handle), "handle spooled report: no space left on device")
	assert.Equal(t, []string{"id-0", "id-2"}, conversations(t, p.spool))
	d.refuse = nil
	require.NoError(t, l.Drain(t.Context(), d.handle))
	var order []string
	for _, r := range d.all() {
		order = append(order, r.Conversation)
	}
	assert.Equal(t, []string{"id-1", "id-3", "id-0", "id-2"}, order)
	require.NoError(t, l.Close())
}

func TestDrainEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	p.prepare(t)
	require.NoError(t, ours(p, event("Stop", "id-1")).Run())
	l, err := Listen(p.socket, p.spool)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Drain(ctx, d.handle), context.Canceled)
	require.NoError(t, l.Drain(t.Context(), d.handle))
	assert.Len(t, d.all(), 1)
	require.NoError(t, l.Close())
}
