// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/spec"
)

// post sends a body straight to the handler.
func post(f *fakeBackend, target, body string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	Handler(f).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, target, strings.NewReader(body)))
	return recorder
}

func readTurnAnswer(t *testing.T, r *httptest.ResponseRecorder) spec.Turn {
	t.Helper()
	var turn spec.Turn
	require.NoError(t, json.Unmarshal(r.Body.Bytes(), &turn), r.Body.String())
	assert.Equal(t, turnTypeMeta, turn.TypeMeta)
	return turn
}

func withTurns() *fakeBackend {
	f := newFake("a", "b")
	f.putTurn(pendingTurn("a", 1, "one"))
	f.putTurn(pendingTurn("a", 2, "two"))
	f.putTurn(pendingTurn("b", 1, "three"))
	_, _ = f.CancelTurn(context.Background(), "a-2")
	return f
}

func TestTurnsAreListedWithoutTheirPromptsAndGotWithThem(t *testing.T) {
	f := withTurns()
	for _, path := range []string{turnsPath, allTurnsPath, turnsPath + "/"} {
		answer := ask(t, f, http.MethodGet, path)
		require.Equal(t, http.StatusOK, answer.Code, path)
		var list spec.TurnList
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
		assert.Equal(t, turnListTypeMeta, list.TypeMeta)
		assert.Equal(t, f.journals.Turns.Revision(), list.ResourceVersion)
		require.Len(t, list.Items, 3)
		for _, turn := range list.Items {
			assert.Equal(t, turnTypeMeta, turn.TypeMeta)
			assert.Empty(t, turn.Spec.Prompt)
		}
	}
	assert.Contains(t, ask(t, newFake(), http.MethodGet, turnsPath).Body.String(), `"items":[]`)
	assert.Equal(t, "three", readTurnAnswer(t, ask(t, f, http.MethodGet, turnsPath+"/b-1")).Spec.Prompt)
	status := readStatus(t, ask(t, f, http.MethodGet, turnsPath+"/b-9"))
	assert.Equal(t, `turn "b-9" not found: "muxlet get turns" lists those that are kept`, status.Message)
	assert.Equal(t, "turns", status.Details.Kind)
	assert.Equal(t, http.StatusNotFound, ask(t, f, http.MethodGet, "/apis/muxlet.dev/v1alpha1/namespaces/other/turns").Code)
}

func TestTurnsAreSelectedBySessionPhaseAndLabel(t *testing.T) {
	for query, want := range map[string][]string{
		"fieldSelector=spec.sessionName%3Da":                          {"a-1", "a-2"},
		"fieldSelector=spec.sessionName%3Da,status.phase%3DPending":   {"a-1"},
		"fieldSelector=status.phase%3DCancelled":                      {"a-2"},
		"fieldSelector=status.finishedAt%3D":                          {"a-1", "b-1"},
		"fieldSelector=status.finishedAt!%3D":                         {"a-2"},
		"fieldSelector=metadata.name!%3Da-1":                          {"a-2", "b-1"},
		"labelSelector=of%3Db":                                        {"b-1"},
		"labelSelector=of%3Db&fieldSelector=spec.sessionName%3Da":     nil,
		"labelSelector=of+in+(a,b)&fieldSelector=metadata.name%3Db-1": {"b-1"},
	} {
		var list spec.TurnList
		answer := ask(t, withTurns(), http.MethodGet, turnsPath+"?"+query)
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
		var names []string
		for _, turn := range list.Items {
			names = append(names, turn.Name)
		}
		assert.Equal(t, want, names, query)
	}
	for _, query := range []string{"fieldSelector=spec.prompt%3Done", "labelSelector=%3D%3D%3D", "watch=maybe"} {
		assert.Equal(t, http.StatusBadRequest, ask(t, withTurns(), http.MethodGet, turnsPath+"?"+query).Code, query)
	}
}

func TestATurnIsMadeOnceForEachRequest(t *testing.T) {
	f := newFake("a")
	body := `{"apiVersion":"muxlet.dev/v1alpha1","kind":"Turn","metadata":{"creationTimestamp":null,"annotations":{"muxlet.dev/request-id":"x"}},` +
		`"spec":{"sessionName":"a","prompt":"fix <it> & \ud83d\ude00\n","deadline":"2026-01-02T15:06:05Z"},"status":{"promptBytes":0}}`
	answer := post(f, turnsPath, body)
	require.Equal(t, http.StatusCreated, answer.Code, answer.Body.String())
	made := readTurnAnswer(t, answer)
	assert.Equal(t, "a-1", made.Name)
	assert.Empty(t, made.Spec.Prompt, "whoever has sent it has it")
	assert.Equal(t, "fix <it> & \U0001f600\n", f.turns["a-1"].Spec.Prompt)
	assert.True(t, made.Spec.Deadline.Time.Equal(epoch.Add(2*time.Minute)))

	answer = post(f, turnsPath, body)
	require.Equal(t, http.StatusOK, answer.Code, "a repeat finds what was made")
	assert.Equal(t, made.UID, readTurnAnswer(t, answer).UID)
	assert.Len(t, f.turns, 1)
	assert.Equal(t, http.StatusCreated, post(f, turnsPath, strings.Replace(body, `"x"`, `"y"`, 1)).Code)
	anonymous := `{"spec":{"sessionName":"a","prompt":"p"}}`
	assert.Equal(t, http.StatusCreated, post(f, turnsPath, anonymous).Code)
	assert.Equal(t, http.StatusCreated, post(f, turnsPath, anonymous).Code, "without an id each is another one")
	assert.Len(t, f.turns, 4)
}

func TestATurnThatCouldBeMisunderstoodIsRefused(t *testing.T) {
	for body, want := range map[string]struct {
		code int
		says string
	}{
		``:                                      {400, "cannot be decoded"},
		`[]`:                                    {400, "cannot be decoded"},
		`spec: {}`:                              {400, "cannot be decoded"},
		`{"spec":{"sesionName":"a"}}`:           {400, `unknown field "spec.sesionName"`},
		`{"spec":{"prompt":"a","prompt":"b"}}`:  {400, `duplicate field "spec.prompt"`},
		`{"spec":{"prompt":7}}`:                 {400, "spec.prompt"},
		`{"spec":{"deadline":"soon"}}`:          {400, "cannot be decoded"},
		`{"spec":{"prompt":"p"}}`:               {422, "spec.sessionName: Required"},
		`{"spec":{"sessionName":"a"}}`:          {422, "spec.prompt: Required"},
		`{"kind":"Session"}`:                    {422, "kind: Unsupported value: \"Session\""},
		`{"apiVersion":"v1"}`:                   {422, "apiVersion: Unsupported value: \"v1\""},
		`{"metadata":{"name":"mine"}}`:          {422, "metadata.name: Forbidden"},
		`{"metadata":{"generateName":"mine-"}}`: {422, "metadata.name: Forbidden"},
		`{"metadata":{"namespace":"other"}}`:    {422, "metadata.namespace: Unsupported"},
		`{"metadata":{"labels":{"a":"b"}}}`:     {422, "metadata.labels: Forbidden"},
		`{"metadata":{"annotations":{"muxlet.dev/request":"b"}}}`:                                   {422, "muxlet.dev/request-id"},
		`{"metadata":{"annotations":{"muxlet.dev/request-id":"` + strings.Repeat("i", 254) + `"}}}`: {422, "Too long"},
		"{\"spec\":{\"sessionName\":\"a\",\"prompt\":\"\xff\"}}":                                    {422, "not UTF-8 at byte 37"},
		`{"spec":{"sessionName":"a","prompt":"\ud83d"}}`:                                            {422, "not UTF-8 at byte 37"},
		`{"spec":{"sessionName":"a","prompt":"\ud83dn\ude00"}}`:                                     {422, "not UTF-8 at byte 37"},
		`{"spec":{"sessionName":"a","prompt":"\\\ude00"}}`:                                          {422, "not UTF-8 at byte 39"},
	} {
		f := newFake("a")
		answer := post(f, turnsPath, body)
		assert.Equal(t, want.code, answer.Code, body)
		assert.Contains(t, readStatus(t, answer).Message, want.says, body)
		assert.Empty(t, f.calls(), body)
	}
	f := newFake("a")
	good := `{"spec":{"sessionName":"a","prompt":"\\ud83d \ud83d\ude00 \u00e9 \\\\"}}`
	assert.Equal(t, http.StatusCreated, post(f, turnsPath, good).Code)
	assert.Equal(t, http.StatusBadRequest, post(f, turnsPath+"?dryRun=All", good).Code)
	assert.Equal(t, http.StatusMethodNotAllowed, post(f, allTurnsPath, good).Code)
	assert.Equal(t, []string{"CreateTurn:a"}, f.calls())
}

func TestTheLongestPromptFitsHoweverItIsWritten(t *testing.T) {
	f := newFake("a")
	longest := `{"spec":{"sessionName":"a","prompt":"` + strings.Repeat(`\u003c`, spec.MaxPromptBytes) + `"}}`
	require.Equal(t, http.StatusCreated, post(f, turnsPath, longest).Code)
	assert.Equal(t, strings.Repeat("<", spec.MaxPromptBytes), f.turns["a-1"].Spec.Prompt)

	status := readStatus(t, post(f, turnsPath, `{"spec":{"prompt":"`+strings.Repeat("x", maxTurnBodyBytes)+`"}}`))
	assert.EqualValues(t, http.StatusRequestEntityTooLarge, status.Code)
	assert.Equal(t, metav1.StatusReasonRequestEntityTooLarge, status.Reason)
	assert.Len(t, f.turns, 1)
	assert.EqualValues(t, maxBodyBytes, bodyLimit(httptest.NewRequest(http.MethodPost, turnsPath+"/a-1/cancel", http.NoBody)), "other requests have their own limit")
}

func TestATurnIsCancelledAnsweredAndForgotten(t *testing.T) {
	f := withTurns()
	answer := post(f, turnsPath+"/a-1/cancel", "")
	require.Equal(t, http.StatusOK, answer.Code)
	turn := readTurnAnswer(t, answer)
	assert.Equal(t, spec.TurnCancelled, spec.DisplayTurnStatus(&turn))
	assert.Empty(t, turn.Spec.Prompt)
	answer = ask(t, f, http.MethodGet, turnsPath+"/a-1/answer?tailLines=3")
	assert.Equal(t, "done: <b> & so on\n", answer.Body.String())
	assert.Equal(t, contentText, answer.Header().Get("Content-Type"))
	assert.Equal(t, http.StatusBadRequest, ask(t, f, http.MethodGet, turnsPath+"/a-1/answer?tailLines=-1").Code)
	assert.Contains(t, f.calls(), "Answer:a-1:3")

	assert.Equal(t, http.StatusBadRequest, ask(t, f, http.MethodDelete, turnsPath+"/a-1?dryRun=All").Code)
	recorder := httptest.NewRecorder()
	Handler(f).ServeHTTP(recorder, httptest.NewRequest(http.MethodDelete, turnsPath+"/a-1", strings.NewReader(`{"preconditions":{"uid":"other"}}`)))
	assert.Equal(t, http.StatusConflict, recorder.Code)
	require.Contains(t, f.turns, "a-1")
	answer = ask(t, f, http.MethodDelete, turnsPath+"/a-1")
	require.Equal(t, http.StatusOK, answer.Code)
	assert.Contains(t, answer.Body.String(), `"kind":"turns"`)
	assert.NotContains(t, f.turns, "a-1")

	f.fail = NewTurnError(ReasonConflict, "b-1", "it was handed over")
	for _, act := range []*httptest.ResponseRecorder{post(f, turnsPath+"/b-1/cancel", ""), ask(t, f, http.MethodDelete, turnsPath+"/b-1")} {
		status := readStatus(t, act)
		assert.Equal(t, ReasonConflict, status.Reason)
		assert.Equal(t, `turn "b-1": it was handed over`, status.Message)
	}
	assert.Equal(t, http.StatusNotFound, ask(t, f, http.MethodDelete, turnsPath+"/z-1").Code)
}

func TestTurnsAreWatchedWithoutTheirPrompts(t *testing.T) {
	f := withTurns()
	version := f.journals.Turns.Revision()
	w := openWatch(t, serve(t, Handler(f)), turnsPath+"?watch=true&fieldSelector=spec.sessionName%3Da&resourceVersion="+version)
	f.put(&spec.Session{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	f.putTurn(pendingTurn("b", 2, "not of a"))
	f.putTurn(pendingTurn("a", 3, "secret"))
	_, err := f.CancelTurn(t.Context(), "a-1")
	require.NoError(t, err)
	require.NoError(t, f.DeleteTurn(t.Context(), "a-3"))
	assert.Equal(t, []string{"ADDED a-3", "MODIFIED a-1", "DELETED a-3"}, w.words(3), "and nothing of sessions or of b")
}

func TestTheClientReachesTurns(t *testing.T) {
	f := withTurns()
	c := NewClient(serve(t, Handler(f)))
	defer c.Close()
	ctx := t.Context()
	list, err := c.Turns(ctx, "of=a", TurnsOf("a"))
	require.NoError(t, err)
	assert.Len(t, list.Items, 2)
	assert.Empty(t, TurnsOf(""))
	prompt := strings.Repeat("<&>\u2028\t\"\n", spec.MaxPromptBytes/9)
	made, err := c.CreateTurn(ctx, &spec.Turn{Spec: spec.TurnSpec{SessionName: "b", Prompt: prompt}})
	require.NoError(t, err, "the time that a client waits is enough for the longest prompt")
	turn, err := c.Turn(ctx, made.Name)
	require.NoError(t, err)
	assert.Equal(t, prompt, turn.Spec.Prompt)
	_, err = c.CreateTurn(ctx, &spec.Turn{Spec: spec.TurnSpec{SessionName: "b", Prompt: "\xff"}})
	assert.Equal(t, ReasonInvalid, ReasonOf(err), "it is not changed on the way")
	_, err = c.CreateTurn(ctx, &spec.Turn{Spec: spec.TurnSpec{SessionName: "nobody", Prompt: "p"}})
	assert.Equal(t, ReasonNotFound, ReasonOf(err))
	turn, err = c.CancelTurn(ctx, made.Name)
	require.NoError(t, err)
	assert.Equal(t, spec.TurnCancelled, spec.DisplayTurnStatus(turn))
	text, err := c.Answer(ctx, made.Name, 10)
	require.NoError(t, err)
	assert.Equal(t, "done: <b> & so on\n", text)
	require.NoError(t, c.DeleteTurn(ctx, made.Name))
	require.NoError(t, c.Attach(ctx, "a"))
	for _, name := range []string{"nobody-1", "", "..", "a/b", "a?watch=true"} {
		_, err = c.Turn(ctx, name)
		assert.Equal(t, ReasonNotFound, ReasonOf(err), name)
	}
}

func TestAFollowerIsToldOfTurns(t *testing.T) {
	f := withTurns()
	c := NewClient(serve(t, Handler(f)))
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	err := c.FollowTurns(ctx, "", TurnsOf("a"), Follower[spec.Turn]{
		Listed: func(all []spec.Turn) error {
			assert.Len(t, all, 2)
			f.putTurn(pendingTurn("b", 5, "x"))
			f.putTurn(pendingTurn("a", 5, "x"))
			return nil
		},
		Changed: func(kind watch.EventType, turn *spec.Turn) error {
			told = append(told, string(kind)+" "+turn.Name+turn.Spec.Prompt)
			cancel()
			return nil
		},
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{"ADDED a-5"}, told)
}

// Who waits for a turn needs nothing of those that were over before, and hears of its end
// whatever happens in between.
func TestAFollowerOfNewTurnsIsToldOfNoneThatIsOver(t *testing.T) {
	f := withTurns()
	f.journals.Turns.limit = 2
	c := NewClient(serve(t, Handler(f)))
	told := make(chan string, 100)
	go func() {
		_ = c.FollowNewTurns(t.Context(), "a", Follower[spec.Turn]{
			Listed: func(all []spec.Turn) error {
				for _, turn := range all {
					told <- "listed " + turn.Name
				}
				_, _ = f.CancelTurn(t.Context(), "a-1")
				f.putTurn(pendingTurn("a", 3, "x"))
				f.putTurn(pendingTurn("b", 3, "x"))
				f.putTurn(pendingTurn("b", 4, "x"))
				return nil
			},
			Changed: func(kind watch.EventType, turn *spec.Turn) error {
				told <- string(kind) + " " + turn.Name
				if turn.Name == "a-3" && kind == watch.Added {
					_, _ = f.CancelTurn(t.Context(), "a-3")
				}
				return nil
			},
		})
	}()
	for _, want := range []string{"listed a-1", "DELETED a-1", "ADDED a-3", "MODIFIED a-3"} {
		select {
		case got := <-told:
			require.Equal(t, want, got)
		case <-time.After(20 * time.Second):
			require.Fail(t, "this was not told: "+want)
		}
	}
}

// A daemon that ends while it is asked has done what it was asked for, or has not.
func TestABrokenConnectionIsKnownFromARefusal(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(path)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	go breakOne(l)
	_, err = NewClient(path).CreateTurn(t.Context(), &spec.Turn{Spec: spec.TurnSpec{SessionName: "a", Prompt: "p"}})
	require.ErrorIs(t, err, ErrBroken)
	assert.ErrorContains(t, err, "see whether it runs")
}

func breakOne(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	_, _ = conn.Read(make([]byte, 1<<16))
	_ = conn.Close()
}
