// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// says is a line of Claude Code's transcript with one part of a message.
func says(message, kind, text string) string {
	return fmt.Sprintf(`{"isSidechain":false,"message":{"id":%q,"role":"assistant","content":[{"type":%q,%q:%q}]},"type":"assistant"}`+"\n", message, kind, kind, text)
}

const toolResult = `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"SECRET"}]}}` + "\n"

func TestTheLastAnswerIsReadFromATranscript(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for name, c := range map[string]struct {
		content, want string
	}{
		"one":                         {userLine + says("1", "text", "hello\nworld"), "hello\nworld"},
		"the last of two":             {userLine + says("1", "text", "old") + userLine + says("2", "text", "new"), "new"},
		"a message of several parts":  {userLine + says("1", "thinking", "SECRET") + says("1", "text", "one") + says("1", "text", "two") + says("1", "tool_use", "SECRET"), "one\ntwo"},
		"a tool comes behind it":      {userLine + says("1", "text", "I look") + says("2", "tool_use", "SECRET") + toolResult, "I look"},
		"what a helper says":          {userLine + says("1", "text", "mine") + strings.Replace(says("2", "text", "SECRET"), `"isSidechain":false`, `"isSidechain":true`, 1), "mine"},
		"more metadata than one read": {userLine + says("1", "text", "mine") + strings.Repeat(modeLine, 2000), "mine"},
		"longer than one read":        {userLine + says("1", "text", long+"\nend"), long + "\nend"},
		"the last line cut":           {userLine + says("1", "text", "mine") + says("2", "text", "SECRET")[:60], "mine"},
		"NULs appended":               {userLine + says("1", "text", "mine") + strings.Repeat("\x00", 512), "mine"},
		"messages without an id":      {userLine + says("", "text", "old") + says("", "text", "new"), "new"},
		"a prompt that quotes one":    {userLine + says("1", "text", "mine") + `{"type":"user","message":{"role":"user","content":"{\"type\":\"assistant\"}"}}` + "\n", "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			ref := claudeRef(t)
			write(t, transcriptOf(ref, "-src-web"), c.content)
			got, err := new(Eyes).Answer(ref, time.Time{}, 0)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

// Claude Code writes an answer down after it has told that its turn is done: until then
// the last one is another turn's.
func TestAnAnswerOfBeforeIsNotTakenForOneThatIsToCome(t *testing.T) {
	stamped := func(text, at string) string {
		return strings.Replace(says(text, "text", text), `{"isSidechain"`, `{"timestamp":"`+at+`","isSidechain"`, 1)
	}
	ref := claudeRef(t)
	sent := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	write(t, transcriptOf(ref, "-src-web"), userLine+stamped("old", "2026-01-02T15:04:04.999Z"))
	_, err := new(Eyes).Answer(ref, sent, 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	write(t, transcriptOf(ref, "-src-web"), userLine+stamped("old", "2026-01-02T15:04:04.999Z")+stamped("new", "2026-01-02T15:04:06Z")+says("3", "text", "whenever"))
	got, err := new(Eyes).Answer(ref, sent, 0)
	require.NoError(t, err)
	assert.Equal(t, "new", got)

	// The end of the answer before may be written after the next hand-over has begun.
	late := stamped("old", "2026-01-02T15:04:05.100Z") + userLine
	write(t, transcriptOf(ref, "-src-web"), userLine+late)
	_, err = new(Eyes).Answer(ref, sent, 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	write(t, transcriptOf(ref, "-src-web"), userLine+late+stamped("new", "2026-01-02T15:04:06Z"))
	got, err = new(Eyes).Answer(ref, sent, 0)
	require.NoError(t, err)
	assert.Equal(t, "new", got)
}

func TestTheLastLinesOfAnAnswerAreKept(t *testing.T) {
	ref := claudeRef(t)
	write(t, transcriptOf(ref, "-src-web"), userLine+says("1", "text", "a\nb\nc\n"))
	for lines, want := range map[int]string{-1: "a\nb\nc", 0: "a\nb\nc", 1: "c", 2: "b\nc", 3: "a\nb\nc", 9: "a\nb\nc"} {
		got, err := new(Eyes).Answer(ref, time.Time{}, lines)
		require.NoError(t, err)
		assert.Equal(t, want, got, lines)
	}
}

func TestTheLastAnswerIsReadFromARollout(t *testing.T) {
	ref := claudeRef(t)
	ref.Class = &spec.ResolveClass("codex", nil).Spec
	name := ref.ConfigDirectory + "/sessions/2026/11/29/rollout-2026-11-29T21-38-05-" + ref.ID + ".jsonl"
	item := func(role, kind, text string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","id":"msg_1","role":%q,"content":[{"type":%q,"text":%q}]}}`+"\n", role, kind, text)
	}
	write(t, name, item("user", "input_text", "SECRET")+item("assistant", "output_text", "turns=1\nfirst=x")+
		`{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"SECRET"}}`+"\n"+item("user", "input_text", "SECRET"))
	got, err := new(Eyes).Answer(ref, time.Time{}, 1)
	require.NoError(t, err)
	assert.Equal(t, "first=x", got)
}

func TestAConversationWithoutAnAnswerHasNone(t *testing.T) {
	none := func(name string, ref observe.ConversationRef) {
		got, err := new(Eyes).Answer(ref, time.Time{}, 10)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		assert.Empty(t, got, name)
	}
	ref := claudeRef(t)
	write(t, transcriptOf(ref, "-src-web"), userLine)
	none("no answer yet", ref)
	write(t, transcriptOf(ref, "-src-web"), modeLine)
	none("no turn yet", ref)
	absent := claudeRef(t)
	write(t, absent.ConfigDirectory+"/settings.json", "{}")
	none("no transcript", absent)
	unknown := ref
	unknown.ID = ""
	none("no conversation", unknown)
	unknown = ref
	unknown.Class = &spec.ResolveClass("exec", nil).Spec
	none("a class that tells nothing", unknown)
	unknown.Class = nil
	none("no class", unknown)
}

func TestAnAnswerThatCannotBeReadIsNotSaidToBeAbsent(t *testing.T) {
	ref := claudeRef(t)
	ref.Ran = true
	_, err := new(Eyes).Answer(ref, time.Time{}, 10)
	require.Error(t, err)
	assert.NotErrorIs(t, err, fs.ErrNotExist, "the config directory may be on a file system that is not mounted")
}
