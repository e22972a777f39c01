// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// The fields are those that Claude Code 2.1.332 and Codex 0.171.0 were seen to send.
func TestWhatTheClientsTellBecomesAReport(t *testing.T) {
	t.Parallel()
	const id, file = "0d8f4e5c-6b1c-4b6e-9a55-0b6c1f5f7a11", "/h/.claude/projects/-w/0d8f4e5c-6b1c-4b6e-9a55-0b6c1f5f7a11.jsonl"
	digest := observe.PromptDigest("SECRET")
	const common = `"session_id":"` + id + `","transcript_path":"` + file + `","cwd":"/w",`
	for name, c := range map[string]struct {
		payload string
		want    observe.Report
	}{
		"claude starts":               {`"hook_event_name":"SessionStart","source":"startup","model":"opus"`, observe.Report{Event: "SessionStart", Kind: observe.ReportStarted, Source: "startup"}},
		"claude resumes":              {`"hook_event_name":"SessionStart","source":"resume"`, observe.Report{Event: "SessionStart", Kind: observe.ReportStarted, Source: "resume"}},
		"claude is cleared":           {`"hook_event_name":"SessionStart","source":"clear"`, observe.Report{Event: "SessionStart", Kind: observe.ReportStarted, Source: "clear"}},
		"claude forks":                {`"hook_event_name":"SessionStart","source":"fork"`, observe.Report{Event: "SessionStart", Kind: observe.ReportStarted, Source: "fork"}},
		"a prompt":                    {`"hook_event_name":"UserPromptSubmit","prompt":"SECRET","prompt_id":"p"`, observe.Report{Event: "UserPromptSubmit", Kind: observe.ReportPrompted, Prompt: digest}},
		"a prompt that is no text":    {`"hook_event_name":"UserPromptSubmit","prompt":["SECRET"]`, observe.Report{Event: "UserPromptSubmit", Kind: observe.ReportPrompted}},
		"a prompt of another event":   {`"hook_event_name":"Stop","prompt":"SECRET"`, observe.Report{Event: "Stop", Kind: observe.ReportDone}},
		"a tool is used":              {`"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"SECRET"},"tool_use_id":"t"`, observe.Report{Event: "PreToolUse", Kind: observe.ReportWorking}},
		"a tool was used":             {`"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{},"tool_response":"SECRET","duration_ms":3`, observe.Report{Event: "PostToolUse", Kind: observe.ReportWorking}},
		"a permission":                {`"hook_event_name":"PermissionRequest","tool_name":"Bash","permission_suggestions":["SECRET"]`, observe.Report{Event: "PermissionRequest", Kind: observe.ReportAsked}},
		"a notice of it":              {`"hook_event_name":"Notification","message":"SECRET","notification_type":"permission_prompt"`, observe.Report{Event: "Notification", Kind: observe.ReportAsked}},
		"another notice":              {`"hook_event_name":"Notification","message":"SECRET","notification_type":"idle_prompt"`, observe.Report{Event: "Notification", Kind: observe.ReportOther}},
		"a turn ends":                 {`"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"SECRET","background_tasks":[]`, observe.Report{Event: "Stop", Kind: observe.ReportDone}},
		"a turn fails":                {`"hook_event_name":"StopFailure","error":"rate_limit","last_assistant_message":"SECRET"`, observe.Report{Event: "StopFailure", Kind: observe.ReportFailed, Failure: "rate_limit"}},
		"it fails with a text":        {`"hook_event_name":"StopFailure","error":"SECRET words"`, observe.Report{Event: "StopFailure", Kind: observe.ReportFailed}},
		"it fails with an object":     {`"hook_event_name":"StopFailure","error":{"type":"SECRET"}`, observe.Report{Event: "StopFailure", Kind: observe.ReportFailed}},
		"claude ends":                 {`"hook_event_name":"SessionEnd","reason":"prompt_input_exit"`, observe.Report{Event: "SessionEnd", Kind: observe.ReportEnded, Source: "prompt_input_exit"}},
		"codex starts":                {`"hook_event_name":"SessionStart","source":"startup","model":"gpt","permission_mode":"default"`, observe.Report{Event: "SessionStart", Kind: observe.ReportStarted, Source: "startup"}},
		"codex is prompted":           {`"hook_event_name":"UserPromptSubmit","model":"gpt","permission_mode":"default","turn_id":"SECRET","prompt":"SECRET"`, observe.Report{Event: "UserPromptSubmit", Kind: observe.ReportPrompted, Prompt: digest}},
		"codex ends":                  {`"hook_event_name":"SessionEnd","reason":"other"`, observe.Report{Event: "SessionEnd", Kind: observe.ReportEnded, Source: "other"}},
		"an event of a later version": {`"hook_event_name":"PreCompact","trigger":"SECRET"`, observe.Report{Event: "PreCompact", Kind: observe.ReportOther}},
	} {
		got, err := Parse(strings.NewReader("{" + common + c.payload + "}\n"))
		require.NoError(t, err, name)
		c.want.Conversation, c.want.Transcript = id, file
		assert.Equal(t, c.want, got, name)
		line, err := encodeLine(got)
		require.NoError(t, err)
		assert.NotContains(t, string(line), "SECRET", name)
	}
}

func TestAPayloadThatIsNoneIsRefusedWithoutAWordOfIt(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{
		"nothing":      "",
		"spaces":       " \n ",
		"half of one":  `{"hook_event_name":"SECRET`,
		"no JSON":      "SECRET",
		"a list":       `["SECRET"]`,
		"a text":       `"SECRET"`,
		"no event":     `{"session_id":"SECRET"}`,
		"an odd event": `{"hook_event_name":"SECRET words"}`,
		"no text":      `{"hook_event_name":["SECRET"]}`,
		"zeros":        strings.Repeat("\x00", 100),
		"too long":     `{"hook_event_name":"Stop","prompt":"` + strings.Repeat("SECRET", maxPayload/6) + `"}`,
		"deep":         strings.Repeat(`{"SECRET":`, 20_000),
	} {
		_, err := Parse(strings.NewReader(payload))
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "SECRET", name)
	}
}

func TestOddFieldsAreLeftOutAndTheRestIsReported(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]string{
		"of other types": `{"hook_event_name":"Stop","session_id":7,"transcript_path":{},"source":[]}`,
		"null":           `{"hook_event_name":"Stop","session_id":null,"transcript_path":null}`,
		"a flag":         `{"hook_event_name":"Stop","session_id":"--resume","transcript_path":"t.jsonl"}`,
		"a path":         `{"hook_event_name":"Stop","session_id":"../x","transcript_path":"/t\nx"}`,
		"too long":       `{"hook_event_name":"Stop","session_id":"` + strings.Repeat("x", 200) + `","transcript_path":"/` + strings.Repeat("x", maxPath) + `"}`,
		"text behind it": `{"hook_event_name":"Stop"} and more`,
	} {
		got, err := Parse(strings.NewReader(payload))
		require.NoError(t, err, name)
		assert.Equal(t, observe.Report{Event: "Stop", Kind: observe.ReportDone}, got, name)
	}
}

func TestNamesAreOfASCIILettersAndDigits(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "Z9", "0d8f4e5c-6b1c", "a.b_c", strings.Repeat("x", 64)} {
		assert.True(t, isWord(good), good)
		assert.True(t, isIdentity(good), good)
	}
	for _, bad := range []string{"", "-a", ".a", "..", "_", "a b", "a/b", "a\x00", "a\n", "ä", "@", "[", "{", "`", "a$", strings.Repeat("x", 129)} {
		assert.False(t, isWord(bad), bad)
		assert.False(t, isIdentity(bad), bad)
	}
	assert.True(t, isWord("mcp:x"))
	assert.False(t, isIdentity("mcp:x"))
	assert.False(t, isWord(strings.Repeat("x", 65)))
}

// Whatever a client puts into its payload, nothing of it leaves the hook but words,
// an id and a path.
func TestNothingThatAPersonWroteLeavesAHook(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	p.prepare(t)
	payload := map[string]any{"hook_event_name": "Notification", "session_id": "id-1", "transcript_path": "/t/id-1.jsonl", "SECRET key": 1}
	for _, field := range []string{
		"prompt", "message", "tool_input", "tool_response", "last_assistant_message", "error", "reason", "source", "cwd", "notification_type",
		"title", "custom_instructions", "permission_suggestions", "model",
	} {
		payload[field] = "the SECRET of " + field
	}
	text, err := json.Marshal(payload)
	require.NoError(t, err)
	require.NoError(t, ours(p, string(text)).Run())
	spooled, err := filepath.Glob(filepath.Join(p.spool, "*.json"))
	require.NoError(t, err)
	require.Len(t, spooled, 1)
	data, err := os.ReadFile(spooled[0])
	require.NoError(t, err)
	assert.NotContains(t, string(data), "SECRET")
	serve(t, p, d.handle)
	eventually(t, func() bool { return len(d.all()) == 1 }, "it is handled")
	assert.Equal(t, "id-1", d.all()[0].Conversation)
}

// The longest prompt comes with each of its characters escaped, and in pieces: the
// hook takes longer for it than for others.
func TestTheLongestPromptIsReportedByItsDigest(t *testing.T) {
	t.Parallel()
	p, d := newPlace(t), &desk{}
	serve(t, p, d.handle)
	const usual = time.Second
	text := `{"hook_event_name":"UserPromptSubmit","session_id":"id-1","prompt":"` + strings.Repeat(`\u0041`, spec.MaxPromptBytes) + `"}`
	h := ours(p, "")
	h.Patience = Patience{Payload: usual, Answer: patience, Whole: usual, Large: patience}
	h.Stdin = io.MultiReader(strings.NewReader(text[:largePayload]), pausing(2*usual), strings.NewReader(text[largePayload:]))
	require.NoError(t, h.Run())
	require.Len(t, d.all(), 1)
	assert.Equal(t, observe.PromptDigest(strings.Repeat("A", spec.MaxPromptBytes)), d.all()[0].Prompt)
}

// pausing is an empty input that ends after some time.
type pausing time.Duration

func (d pausing) Read([]byte) (int, error) {
	<-time.After(time.Duration(d))
	return 0, io.EOF
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(event("Stop", "id-1")))
	f.Add([]byte(`{"hook_event_name":"UserPromptSubmit","prompt":"x\ud800"}`))
	f.Add([]byte(`{"hook_event_name":"SessionEnd","reason":"x","session_id":"` + strings.Repeat("a", 129) + `"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := Parse(strings.NewReader(string(payload)))
		if err != nil {
			return
		}
		r.ID, r.Class, r.At = "1", "claude", at(1, r.Kind).At
		require.NoError(t, check(r), "what a hook makes of it is what a listener takes")
		line, err := encodeLine(r)
		require.NoError(t, err)
		require.LessOrEqual(t, len(line), maxLine)
		again, err := decodeLine(line)
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
