// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	claudePrompt = `{"model":"c","stream":true,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"alpha"}]}`
	claudeResult = `{"model":"c","stream":true,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"alpha"},
		{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"tool_result","content":"out"}]}]}`
	codexPrompt = `{"model":"x","stream":true,"tools":[{"name":"exec_command"}],"input":[
		{"type":"message","role":"user","content":[{"type":"input_text","text":"beta"}]}]}`
	codexTitle = `{"model":"x","stream":true,"tools":[],"text":{"format":{"type":"json_schema"}},"input":"name it"}`
)

// mock is a server and a client of it.
type mock struct {
	*testing.T
	url string
}

func start(t *testing.T) mock {
	t.Helper()
	server := httptest.NewServer(NewServer(""))
	t.Cleanup(server.Close)
	return mock{T: t, url: server.URL}
}

func (m mock) do(method, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(m.Context(), method, m.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Api-Key", "sk-secret")
	request.Header.Set("Thread-Id", "thread-1")
	return http.DefaultClient.Do(request)
}

// answer of the server, read to its end.
type answer struct {
	code   int
	header http.Header
	text   string
}

func (m mock) ask(method, path, body string) answer {
	m.Helper()
	response, err := m.do(method, path, body)
	require.NoError(m, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(m, err)
	return answer{code: response.StatusCode, header: response.Header, text: string(text)}
}

func (m mock) control(body string) {
	m.Helper()
	a := m.ask(http.MethodPut, "/control", body)
	require.Equal(m, http.StatusOK, a.code, a.text)
}

func (m mock) requests() []Request {
	m.Helper()
	text := m.ask(http.MethodGet, "/requests", "").text
	assert.NotContains(m, text, "sk-")
	var all []Request
	require.NoError(m, json.Unmarshal([]byte(text), &all))
	return all
}

// events of a stream, by their type.
func events(t *testing.T, stream string) (names []string, data map[string]map[string]any) {
	t.Helper()
	data = map[string]map[string]any{}
	for scanner := bufio.NewScanner(strings.NewReader(stream)); scanner.Scan(); {
		if name, ok := strings.CutPrefix(scanner.Text(), "event: "); ok {
			names = append(names, name)
		}
		if text, ok := strings.CutPrefix(scanner.Text(), "data: "); ok {
			var event map[string]any
			require.NoError(t, json.Unmarshal([]byte(text), &event))
			data[names[len(names)-1]] = event
			assert.Equal(t, names[len(names)-1], event["type"])
		}
	}
	return names, data
}

func TestMessagesAreStreamed(t *testing.T) {
	m := start(t)
	response := m.ask(http.MethodPost, "/v1/messages?beta=true", claudePrompt)
	assert.Equal(t, http.StatusOK, response.code)
	assert.Equal(t, "text/event-stream", response.header.Get("Content-Type"))
	names, data := events(t, response.text)
	assert.Equal(t, []string{"message_start", "ping", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}, names)
	assert.Equal(t, map[string]any{"type": "text_delta", "text": "turns=1 first=alpha"}, data["content_block_delta"]["delta"])
}

func TestResponsesAreStreamed(t *testing.T) {
	m := start(t)
	text := m.ask(http.MethodPost, "/v1/responses", codexPrompt).text
	names, _ := events(t, text)
	assert.Equal(t, []string{"response.created", "response.output_item.added", "response.output_item.done", "response.completed"}, names)
	assert.Contains(t, text, `"text":"turns=1 first=beta"`)
}

func TestBothAreAnsweredInOnePieceWhereNoStreamIsWanted(t *testing.T) {
	m := start(t)
	for path, body := range map[string]string{"/v1/messages": claudePrompt, "/v1/responses": codexPrompt} {
		response := m.ask(http.MethodPost, path, strings.Replace(body, `"stream":true`, `"stream":false`, 1))
		assert.Equal(t, "application/json", response.header.Get("Content-Type"))
		assert.Contains(t, response.text, "turns=1 first=")
	}
	response := m.ask(http.MethodPost, "/v1/messages/count_tokens", claudePrompt)
	assert.Equal(t, http.StatusOK, response.code)
	assert.Contains(t, response.text, "input_tokens")
}

func TestAToolIsCalledAndItsResultAnswered(t *testing.T) {
	m := start(t)
	m.control(`{"mode":"tool","command":"echo '1'"}`)
	text := m.ask(http.MethodPost, "/v1/messages", claudePrompt).text
	_, data := events(t, text)
	assert.Contains(t, text, `"name":"Bash"`)
	assert.Contains(t, text, `"stop_reason":"tool_use"`)
	assert.Equal(t, map[string]any{
		"type": "input_json_delta", "partial_json": `{"command":"echo '1'","description":"Run a command"}`,
	}, data["content_block_delta"]["delta"])
	text = m.ask(http.MethodPost, "/v1/messages", claudeResult).text
	assert.Contains(t, text, "turns=1 first=alpha")

	for offered, want := range map[string]string{
		"exec_command": `{\"cmd\":\"echo '1'\"}`, "shell_command": `{\"command\":\"echo '1'\"}`, "shell": `{\"command\":[\"sh\",\"-c\",\"echo '1'\"]}`,
	} {
		text = m.ask(http.MethodPost, "/v1/responses", strings.Replace(codexPrompt, "exec_command", offered, 1)).text
		assert.Contains(t, text, `"name":"`+offered+`"`)
		assert.Contains(t, text, want)
	}
	m.control(`{"mode":"tool","command":"id","escalate":true}`)
	assert.Contains(t, m.ask(http.MethodPost, "/v1/responses", codexPrompt).text, `\"sandbox_permissions\":\"require_escalated\"`)
}

func TestFailuresAreAnsweredAsTheAPIsDo(t *testing.T) {
	m := start(t)
	for mode, kind := range statuses {
		m.control(`{"mode":"` + string(mode) + `","retryAfter":7,"shouldRetry":false,"headers":{"x-more":"1"}}`)
		for path, body := range map[string]string{"/v1/messages": claudePrompt, "/v1/responses": codexPrompt} {
			response := m.ask(http.MethodPost, path, body)
			assert.Equal(t, string(mode), strconv.Itoa(response.code))
			assert.Contains(t, response.text, kind)
			assert.Equal(t, "7", response.header.Get("Retry-After"))
			assert.Equal(t, "false", response.header.Get("X-Should-Retry"))
			assert.Equal(t, "1", response.header.Get("X-More"))
		}
	}
}

func TestAUsageLimitTellsWhenItEnds(t *testing.T) {
	m := start(t)
	m.control(`{"mode":"429","usageLimit":true,"message":"used up","resetAt":"2030-01-02T03:04:05Z"}`)
	response := m.ask(http.MethodPost, "/v1/messages", claudePrompt)
	assert.Equal(t, "1893553445", response.header.Get("Anthropic-Ratelimit-Unified-Reset"))
	assert.Contains(t, response.text, "used up")
	text := m.ask(http.MethodPost, "/v1/responses", codexPrompt).text
	assert.Contains(t, text, "usage_limit_reached")
	assert.Contains(t, text, "1893553445")
}

func TestACountEndsAMode(t *testing.T) {
	m := start(t)
	m.control(`{"mode":"500","count":2}`)
	for _, want := range []int{500, 500, 200, 200} {
		response := m.ask(http.MethodPost, "/v1/messages", claudePrompt)
		assert.Equal(t, want, response.code)
	}
}

func TestATitleIsAnsweredWhateverTheMode(t *testing.T) {
	m := start(t)
	m.control(`{"mode":"401","count":1}`)
	response := m.ask(http.MethodPost, "/v1/responses", codexTitle)
	assert.Equal(t, http.StatusOK, response.code)
	assert.Contains(t, response.text, `{\"title\":`)
	response = m.ask(http.MethodPost, "/v1/responses", codexPrompt)
	assert.Equal(t, http.StatusUnauthorized, response.code, "the title has not used up the count")
}

func TestWhatHangsIsAnsweredAsTheNextModeSays(t *testing.T) {
	m := start(t)
	m.control(`{"mode":"hang"}`)
	answer := make(chan int, 1)
	go func() {
		response, err := m.do(http.MethodPost, "/v1/messages", claudePrompt)
		if err != nil {
			answer <- 0
			return
		}
		_ = response.Body.Close()
		answer <- response.StatusCode
	}()
	require.Eventually(t, func() bool { return len(m.requests()) == 1 }, 10*time.Second, time.Millisecond)
	assert.Empty(t, m.requests()[0].Mode)
	m.control(`{"mode":"403"}`)
	select {
	case code := <-answer:
		assert.Equal(t, http.StatusForbidden, code)
	case <-time.After(10 * time.Second):
		require.Fail(t, "the request still hangs")
	}
}

func TestAConnectionIsDroppedBeforeOrWithinAnAnswer(t *testing.T) {
	m := start(t)
	m.control(`{"mode":"drop"}`)
	response, err := m.do(http.MethodPost, "/v1/messages", claudePrompt)
	if err == nil {
		_ = response.Body.Close()
	}
	require.Error(t, err)

	m.control(`{"mode":"drop","partial":true}`)
	response, err = m.do(http.MethodPost, "/v1/responses", codexPrompt)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.Error(t, err)
	assert.Contains(t, string(text), "response.created")
	assert.NotContains(t, string(text), "response.completed")
}

func TestADelayHoldsAnAnswerBack(t *testing.T) {
	m := start(t)
	m.control(`{"mode":"ok","delay":"50ms"}`)
	began := time.Now()
	m.ask(http.MethodPost, "/v1/messages", claudePrompt)
	assert.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
	text := m.ask(http.MethodGet, "/control", "").text
	assert.JSONEq(t, `{"mode":"ok","delay":"50ms"}`, text)
}

func TestAWrongControlIsRefusedAndChangesNothing(t *testing.T) {
	m := start(t)
	for _, body := range []string{`{"mode":"418"}`, `{"mod":"ok"}`, `{"mode":"tool"}`, `{"mode":"500","count":-1}`, `{"delay":1}`, `{"delay":"soon"}`, `nonsense`} {
		response := m.ask(http.MethodPut, "/control", body)
		assert.Equal(t, http.StatusUnprocessableEntity, response.code, body)
	}
	response := m.ask(http.MethodPost, "/v1/messages", claudePrompt)
	assert.Equal(t, http.StatusOK, response.code)
}

func TestRequestsAreListedWithoutAWordOfThem(t *testing.T) {
	m := start(t)
	m.ask(http.MethodPost, "/v1/messages?beta=true", claudePrompt)
	m.ask(http.MethodPost, "/v1/responses", codexTitle)
	m.ask(http.MethodGet, "/v1/models", "")
	m.ask(http.MethodPost, "/v1/messages", "nonsense")
	all := m.requests()
	require.Len(t, all, 3)
	for i := range all {
		assert.False(t, all[i].Time.IsZero())
		all[i].Time = time.Time{}
	}
	assert.Equal(t, []Request{
		{Number: 1, Method: "POST", Path: "/v1/messages", Kind: "prompt", Turns: 1, Model: "c", Mode: ModeOK},
		{Number: 2, Method: "POST", Path: "/v1/responses", Kind: "title", Turns: 1, Model: "x", Mode: ModeOK, Conversation: "thread-1"},
		{Number: 3, Method: "GET", Path: "/v1/models", Kind: "other"},
	}, all)
}

func TestItListensOnLoopbackOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:0", ":0", "nonsense"} {
		require.Error(t, run(t.Context(), []string{"--addr", addr}, io.Discard), addr)
	}
}

func TestTheAddressIsWrittenOnceItAnswers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	over := make(chan error, 1)
	go func() { over <- run(ctx, []string{"--addr-file", dir + "/addr", "--save", dir}, io.Discard) }()
	var addr []byte
	require.Eventually(t, func() bool {
		var err error
		addr, err = os.ReadFile(dir + "/addr")
		return err == nil
	}, 10*time.Second, time.Millisecond)
	m := mock{T: t, url: "http://" + strings.TrimSpace(string(addr))}
	text := m.ask(http.MethodPost, "/v1/responses", codexPrompt).text
	assert.Contains(t, text, "turns=1 first=beta")
	saved, err := os.ReadFile(dir + "/1.json")
	require.NoError(t, err)
	assert.JSONEq(t, codexPrompt, string(saved))
	cancel()
	require.NoError(t, <-over)
}
