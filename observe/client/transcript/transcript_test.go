// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

var at = time.Date(2026, 11, 29, 21, 33, 14, 476_000_000, time.UTC)

const stamp = `"timestamp":"2026-11-29T21:33:14.476Z"`

func claudeLine(kind, content string) string {
	return fmt.Sprintf(`{"type":%q,"isSidechain":false,%s,"message":{"role":%q,"content":%s}}`, kind, stamp, kind, content)
}

func codexItem(payload string) string {
	return fmt.Sprintf(`{%s,"ordinal":2,"type":"response_item","payload":{%s}}`, stamp, payload)
}

func TestALineOfATranscriptIsToldToAPerson(t *testing.T) {
	one := func(who Who, text string) []Entry { return []Entry{{at, who, text}} }
	for name, c := range map[string]struct {
		reports spec.ReportsType
		line    string
		want    []Entry
	}{
		"a prompt":               {spec.ReportsClaude, claudeLine("user", `"Look:\n\n  at this\n"`), one(User, "Look:\n\n  at this")},
		"an answer":              {spec.ReportsClaude, claudeLine("assistant", `[{"type":"thinking","thinking":"x"},{"type":"text","text":"hello"}]`), one(Assistant, "hello")},
		"an answer with a tool":  {spec.ReportsClaude, claudeLine("assistant", `[{"type":"text","text":"I look"},{"type":"tool_use","name":"Bash","input":{"description":"List","command":"ls -la |\n  head"}}]`), []Entry{{at, Assistant, "I look"}, {at, Tool, "Bash: ls -la | head"}}},
		"a tool of another kind": {spec.ReportsClaude, claudeLine("assistant", `[{"type":"tool_use","name":"Odd","input":{"x":1}}]`), one(Tool, `Odd: {"x":1}`)},
		"a result":               {spec.ReportsClaude, claudeLine("user", `[{"type":"tool_result","content":"a lot"}]`), nil},
		"a failure of a tool":    {spec.ReportsClaude, claudeLine("user", `[{"type":"tool_result","is_error":true,"content":[{"type":"text","text":"no such\nfile"}]}]`), one(Tool, "failed: no such file")},
		"a command":              {spec.ReportsClaude, claudeLine("user", `"<command-name>/clear</command-name>\n<command-message>clear</command-message>"`), one(User, "/clear")},
		"what a command adds":    {spec.ReportsClaude, claudeLine("user", `"<local-command-caveat>x"`), nil},
		"a helper of its own":    {spec.ReportsClaude, strings.Replace(claudeLine("assistant", `[{"type":"text","text":"x"}]`), `"isSidechain":false`, `"isSidechain":true`, 1), nil},
		"what it tells itself":   {spec.ReportsClaude, strings.Replace(claudeLine("user", `"x"`), `"isSidechain":false`, `"isMeta":true`, 1), nil},
		"another line":           {spec.ReportsClaude, `{"type":"last-prompt","lastPrompt":"user"}`, nil},
		"a request":              {spec.ReportsClaude, `{"type":"api-request-blob","message":{"role":"user","content":"x"}}`, nil},
		"a damaged line":         {spec.ReportsClaude, claudeLine("user", `"x"`)[:60], nil},
		"a line behind NULs":     {spec.ReportsClaude, "\x00\x00" + claudeLine("user", `"x"`) + "\n", one(User, "x")},
		"no time":                {spec.ReportsClaude, strings.Replace(claudeLine("user", `"x"`), stamp, `"timestamp":"?"`, 1), []Entry{{Who: User, Text: "x"}}},

		"a prompt to Codex":           {spec.ReportsCodex, codexItem(`"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]`), one(User, "hi")},
		"a prompt that is marked":     {spec.ReportsCodex, codexItem(`"type":"message","role":"user","content":[{"type":"input_text","text":"<b>"}],"internal_chat_message_metadata_passthrough":{"content_item_metadata":[{"provenance":{"type":"user"}}]}`), one(User, "<b>")},
		"what Codex adds":             {spec.ReportsCodex, codexItem(`"type":"message","role":"user","content":[{"type":"input_text","text":"x"}],"internal_chat_message_metadata_passthrough":{"content_item_metadata":[{"provenance":{"type":"harness"}}]}`), nil},
		"what an older one adds":      {spec.ReportsCodex, codexItem(`"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]`), nil},
		"what it is told":             {spec.ReportsCodex, codexItem(`"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]`), nil},
		"an answer of Codex":          {spec.ReportsCodex, codexItem(`"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]`), one(Assistant, "yes")},
		"a tool of Codex":             {spec.ReportsCodex, codexItem(`"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"go test ./...\"}"`), one(Tool, "exec_command: go test ./...")},
		"a tool with an argv":         {spec.ReportsCodex, codexItem(`"type":"local_shell_call","action":{"command":["ls","-l"]}`), one(Tool, "shell: ls -l")},
		"a tool with a text":          {spec.ReportsCodex, codexItem(`"type":"custom_tool_call","name":"apply_patch","input":"*** Begin\n*** End"`), one(Tool, "apply_patch: *** Begin *** End")},
		"a result of Codex":           {spec.ReportsCodex, codexItem(`"type":"function_call_output","output":"x"`), nil},
		"a turn that has failed":      {spec.ReportsCodex, `{` + stamp + `,"type":"event_msg","payload":{"type":"task_complete","error":{"message":"429"}}}`, one(Failure, "429")},
		"a turn that has gone well":   {spec.ReportsCodex, `{` + stamp + `,"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"x"}}`, nil},
		"what is said twice by Codex": {spec.ReportsCodex, `{` + stamp + `,"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage"}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, ParserOf(c.reports)([]byte(c.line)))
		})
	}
	assert.Nil(t, ParserOf(spec.ReportsNone))
}

// As they were recorded.
func TestRealTranscriptsAreUnderstood(t *testing.T) {
	for file, reports := range map[string]spec.ReportsType{"claude-transcript.jsonl": spec.ReportsClaude, "codex-rollout.jsonl": spec.ReportsCodex} {
		data, err := os.ReadFile(filepath.Join("..", "testdata", file))
		require.NoError(t, err)
		// The roles in the recording of Codex were blanked.
		text := strings.ReplaceAll(string(data), `"role":"x","content":[{"type":"output_text"`, `"role":"assistant","content":[{"type":"output_text"`)
		text = strings.ReplaceAll(text, `"role":"x"`, `"role":"user"`)
		var who []Who
		for line := range strings.Lines(text) {
			for _, e := range ParserOf(reports)([]byte(line)) {
				assert.False(t, e.At.IsZero())
				who = append(who, e.Who)
			}
		}
		want := []Who{User, Assistant}
		if reports == spec.ReportsClaude {
			want = []Who{User, Assistant, User, Assistant}
		}
		assert.Equal(t, want, who, file)
	}
}

func count(line []byte) int { return strings.Count(string(line), "x") }

// all are the lines that are there; what is too long is -.
func all(t *testing.T, f *File) (lines []string) {
	t.Helper()
	for {
		line, err := f.Next()
		switch {
		case errors.Is(err, io.EOF):
			return lines
		case errors.Is(err, ErrLongLine):
			lines = append(lines, "-")
		default:
			require.NoError(t, err)
			lines = append(lines, strings.TrimSuffix(string(line), "\n"))
		}
	}
}

func TestTheLastEntriesAreFoundFromTheEnd(t *testing.T) {
	wide := strings.Repeat("y", 3*firstBlock)
	for name, c := range map[string]struct {
		text    string
		n       int
		want    []string
		surplus int
	}{
		"all":                    {"x1\nx2\n", -1, []string{"x1", "x2"}, 0},
		"one":                    {"x1\nx2\nx3\n", 1, []string{"x3"}, 0},
		"more than there are":    {"x1\nx2\n", 9, []string{"x1", "x2"}, 0},
		"over lines of nothing":  {"x1\ny\nx2\ny\ny\n", 2, []string{"x1", "y", "x2", "y", "y"}, 0},
		"none":                   {"x1\nx2\n", 0, nil, 0},
		"a part of a line":       {"x1\nxxx\nx2\n", 2, []string{"xxx", "x2"}, 2},
		"a line that is written": {"x1\nx2\nx3", 2, []string{"x2"}, 0},
		"over wide lines":        {"x1\n" + wide + "\nx2" + wide + "\n" + wide + "\n", 1, []string{"x2" + wide, wide}, 0},
		"a wide line alone":      {"x" + wide + "\n", 1, []string{"x" + wide}, 0},
		"an empty file":          {"", 3, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			f, surplus, err := Open(path, c.n, count)
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			assert.Equal(t, c.want, all(t, f))
			assert.Equal(t, c.surplus, surplus)
		})
	}
}

func TestATranscriptIsFollowedWhileItGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("x1\nx"), 0o600))
	f, _, err := Open(path, 1, count)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	assert.Empty(t, all(t, f))
	assert.Equal(t, "x", string(f.Unended()))
	grow := func(text string) {
		t.Helper()
		out, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = out.WriteString(text)
		require.NoError(t, errors.Join(err, out.Close()))
	}
	grow("2")
	assert.Empty(t, all(t, f))
	grow("\nx3\nx4")
	assert.Equal(t, []string{"x2", "x3"}, all(t, f))
	assert.False(t, f.Replaced())
	require.NoError(t, os.Truncate(path, 3))
	assert.True(t, f.Replaced())
}

// A line that is too long is passed over, and neither it nor all of a large file is ever
// held in memory.
func TestMemoryIsBoundedByALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	out, err := os.Create(path)
	require.NoError(t, err)
	_, err = out.WriteString("x1\n")
	require.NoError(t, err)
	// Holes take no disk.
	require.NoError(t, out.Truncate(4*MaxLine))
	_, err = out.WriteAt([]byte("\nx2\n"), 4*MaxLine)
	require.NoError(t, errors.Join(err, out.Close()))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, _, err := Open(path, 2, count)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	assert.Equal(t, []string{"x1", "-", "x2"}, all(t, f))
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(2*MaxLine))
}

func TestWhatIsNoFileIsNotRead(t *testing.T) {
	_, _, err := Open(t.TempDir(), 1, count)
	require.ErrorContains(t, err, "not a regular file")
	_, _, err = Open("/no/such", 1, count)
	require.ErrorIs(t, err, os.ErrNotExist)
}
