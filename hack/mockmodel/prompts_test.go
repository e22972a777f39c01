// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOnlyWhatAPersonTypedIsCountedOfMessages(t *testing.T) {
	body := `{"model":"m","stream":true,"tools":[{"name":"Bash"}],"messages":[
	{"role":"user","content":[
		{"type":"text","text":"<system-reminder>\nmuch\n</system-reminder>\n"},
		{"type":"text","text":"first\nprompt"}]},
	{"role":"system","content":[{"type":"text","text":"# Environment"}]},
	{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]},
	{"role":"user","content":[
		{"type":"tool_result","tool_use_id":"t","content":"out"},
		{"type":"text","text":"<system-reminder>more</system-reminder>"}]},
	{"role":"assistant","content":"done"},
	{"role":"user","content":"<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"},
	{"role":"user","content":"[Request interrupted by user]"},
	{"role":"user","content":"Continue from where you left off."},
	{"role":"user","content":"<b>second</b> prompt<system-reminder>x</system-reminder>"}]}`
	q, err := messages{}.read([]byte(body))
	require.NoError(t, err)
	assert.Equal(t, []string{"first\nprompt", "<b>second</b> prompt"}, q.prompts)
	assert.Equal(t, "first prompt", q.first())
	assert.True(t, q.stream)
	assert.False(t, q.title)
	assert.False(t, q.answersTool, "the result was answered already")
}

func TestOnlyWhatAPersonTypedIsCountedOfResponses(t *testing.T) {
	body := `{"model":"m","stream":true,"tools":[{"type":"function","name":"exec_command"}],"input":[
	{"type":"message","role":"developer","content":[{"type":"input_text","text":"be good"}]},
	{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/</cwd>\n</environment_context>"}]},
	{"type":"message","role":"user","content":[{"type":"input_text","text":"first"}]},
	{"type":"reasoning","summary":[]},
	{"type":"message","role":"assistant","content":[{"type":"output_text","text":"turns=1"}]},
	{"type":"message","role":"user","content":[{"type":"input_text","text":"<turn_aborted>x</turn_aborted>"}]},
	{"type":"message","role":"user","content":[{"type":"input_text","text":"second"}]},
	{"type":"function_call","call_id":"c","name":"exec_command","arguments":"{}"},
	{"type":"function_call_output","call_id":"c","output":"x"}]}`
	q, err := responses{}.read([]byte(body))
	require.NoError(t, err)
	assert.Equal(t, []string{"first", "second"}, q.prompts)
	assert.True(t, q.answersTool)
	assert.False(t, q.title)
	assert.Equal(t, []string{"exec_command"}, q.tools)
}

func TestAPromptMayBeATextAlone(t *testing.T) {
	q, err := responses{}.read([]byte(`{"input":"hello"}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"hello"}, q.prompts)
	q, err = messages{}.read([]byte(`{"messages":[{"role":"user","content":"hello"}]}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"hello"}, q.prompts)
}

func TestATitleIsKnownByItsSchemaAndMissingTools(t *testing.T) {
	schema := `"text":{"format":{"type":"json_schema","schema":{}}}`
	q, err := responses{}.read([]byte(`{"input":"name it","tools":[],` + schema + `}`))
	require.NoError(t, err)
	assert.True(t, q.title)
	q, err = responses{}.read([]byte(`{"input":"do it","tools":[{"name":"exec_command"}],` + schema + `}`))
	require.NoError(t, err)
	assert.False(t, q.title)
	q, err = messages{}.read([]byte(`{"messages":[],"tools":[],"output_config":{"format":{"type":"json_schema"}}}`))
	require.NoError(t, err)
	assert.True(t, q.title)
}

func TestTheFirstPromptIsCutToOneShortLine(t *testing.T) {
	c := conversation{prompts: []string{strings.Repeat("ä\n", 100)}}
	assert.Len(t, []rune(c.first()), 60)
	assert.NotContains(t, c.first(), "\n")
	assert.Empty(t, (&conversation{}).first())
}
