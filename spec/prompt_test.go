// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPromptIsKeptByteForByteButForItsLastNewlines(t *testing.T) {
	for given, want := range map[string]string{
		"a":                 "a",
		"a\n":               "a",
		"a\n\n\n":           "a",
		"\n\na\n\nb\n":      "\n\na\n\nb",
		"a \t\n":            "a \t",
		"  a":               "  a",
		"'\"`$(x);\\ \t#{}": "'\"`$(x);\\ \t#{}",
		"🙂 e\u0301 \u200d":  "🙂 e\u0301 \u200d",
		"\uFFFD\uFEFF":      "\uFFFD\uFEFF",
		"/clear":            "/clear",
		"\u00A0a\u00A0":     "\u00A0a\u00A0",
	} {
		clean, err := CheckPrompt(given)
		require.NoError(t, err, "%q", given)
		assert.Equal(t, want, clean)
		again, err := CheckPrompt(clean)
		require.NoError(t, err)
		assert.Equal(t, clean, again, "done again it changes nothing")
	}
	longest := strings.Repeat("🙂", MaxPromptBytes/4)
	clean, err := CheckPrompt(longest + "\n\n")
	require.NoError(t, err)
	assert.Equal(t, longest, clean)
}

// A control byte would act as a key in the client: the text says which one it is and
// where, and never what stands around it.
func TestPromptThatCannotBeSentIsRefusedWithReasonAndPlace(t *testing.T) {
	const key = ", which a terminal takes for a key: newline and tab are the only control characters that can be sent"
	for name, c := range map[string]struct{ prompt, want string }{
		"nothing":            {"", "the prompt is empty"},
		"newlines":           {"\n\n", "the prompt is empty"},
		"white space":        {" \t\n \u00A0\n", "the prompt is white space alone"},
		"too long":           {strings.Repeat("x", MaxPromptBytes+1), "the prompt has 1048577 bytes; at most 1048576 are taken: put the text into a file and name that"},
		"carriage return":    {"secret\r\nb", "the prompt has a carriage return (U+000D) at byte offset 6: convert the line ends to newlines"},
		"carriage at an end": {"a\r\n", "the prompt has a carriage return (U+000D) at byte offset 1: convert the line ends to newlines"},
		"NUL":                {"\x00", "the prompt has the control character U+0000 (NUL) at byte offset 0" + key},
		"Ctrl-C":             {"a\x03", "the prompt has the control character U+0003 (Ctrl-C) at byte offset 1" + key},
		"escape":             {"🙂secret\x1b[201~", "the prompt has the control character U+001B (escape) at byte offset 10" + key},
		"delete":             {"a\x7f", "the prompt has the control character U+007F (delete) at byte offset 1" + key},
		"C1":                 {"ab\u009b31m", "the prompt has the control character U+009B at byte offset 2" + key},
		"not UTF-8":          {"secret\xff", "the prompt is not UTF-8: a wrong byte stands at offset 6"},
		"cut character":      {"a\xf0\x9f\x99", "the prompt is not UTF-8: a wrong byte stands at offset 1"},
		"surrogate":          {"\xed\xa0\x80", "the prompt is not UTF-8: a wrong byte stands at offset 0"},
	} {
		t.Run(name, func(t *testing.T) {
			clean, err := CheckPrompt(c.prompt)
			require.EqualError(t, err, c.want)
			assert.Empty(t, clean)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestNewlineAndTabAreTheOnlyControlCharactersOfAPrompt(t *testing.T) {
	for r := rune(0); r <= 0x2FF; r++ {
		_, err := CheckPrompt("a" + string(r) + "b")
		control := r < 0x20 || r >= 0x7F && r <= 0x9F
		assert.Equal(t, control && r != '\n' && r != '\t', err != nil, "U+%04X", r)
	}
}

func FuzzCheckedPromptIsTextThatPressesNoKey(f *testing.F) {
	for _, text := range []string{"a\n", "\r", "\x1b", "🙂\t", "\xff", " "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		clean, err := CheckPrompt(prompt)
		if err != nil {
			return
		}
		require.True(t, utf8.ValidString(clean))
		require.Equal(t, prompt, clean+prompt[len(clean):])
		require.Empty(t, strings.Trim(prompt[len(clean):], "\n"))
		require.False(t, strings.HasSuffix(clean, "\n"))
		require.False(t, strings.ContainsFunc(clean, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r > '~' && r < '\u00A0' }))
	})
}

func TestPromptThatBecomesAWordOfACommandLineIsShorter(t *testing.T) {
	long := strings.Repeat("x", MaxArgumentBytes+1)
	pasted := &ClientClassSpec{Submit: ClassSubmit{Method: SubmitPaste}}
	argument := &ClientClassSpec{Submit: ClassSubmit{Method: SubmitArgument, Arguments: []string{"$(PROMPT)"}}}
	queue := &ClientClassSpec{Submit: ClassSubmit{Method: SubmitQueue, Command: []string{"agent", "queue"}}}
	word := &ClientClassSpec{Submit: ClassSubmit{Method: SubmitQueue, Command: []string{"agent", "queue", "$(PROMPT)"}}}
	for _, class := range []*ClientClassSpec{pasted, queue} {
		require.NoError(t, CheckPromptFor(class, long))
	}
	for _, class := range []*ClientClassSpec{argument, word} {
		require.NoError(t, CheckPromptFor(class, long[1:]+"\n"))
		require.EqualError(t, CheckPromptFor(class, long), "the prompt has 102401 bytes; this class gives it to its client as a word of a command line, which has at most 102400: put the text into a file and name that")
	}
	s := valid()
	s.Spec.InitialPrompt = long
	errs := ValidateForClass(s, &ClientClass{Spec: *argument})
	require.NotEmpty(t, errs)
	assert.Equal(t, "spec.initialPrompt", errs[len(errs)-1].Field)
}

func TestTurnIsJudgedBeforeItIsTaken(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	for name, c := range map[string]struct {
		change func(*Turn)
		want   string
	}{
		"good":              {func(*Turn) {}, ""},
		"deadline":          {func(t *Turn) { t.Spec.Deadline = at(time.Second) }, ""},
		"last deadline":     {func(t *Turn) { t.Spec.Deadline = at(MaxTurnDeadline) }, ""},
		"namespace":         {func(t *Turn) { t.Namespace = "default" }, ""},
		"annotation":        {func(t *Turn) { t.Annotations = map[string]string{TurnRequestAnnotation: "x"} }, ""},
		"no session":        {func(t *Turn) { t.Spec.SessionName = "" }, "spec.sessionName: is required: the session needs a name, such as checkout-bug"},
		"session":           {func(t *Turn) { t.Spec.SessionName = "A" }, `spec.sessionName: "A" cannot be a session's name: use at most 63 of a-z, 0-9 and "-", with a letter or digit at both ends (did you mean "a"?)`},
		"no prompt":         {func(t *Turn) { t.Spec.Prompt = "" }, "spec.prompt: the prompt is empty"},
		"prompt":            {func(t *Turn) { t.Spec.Prompt = "secret\r" }, "spec.prompt: the prompt has a carriage return (U+000D) at byte offset 6: convert the line ends to newlines"},
		"deadline now":      {func(t *Turn) { t.Spec.Deadline = at(0) }, "spec.deadline: the deadline has passed already: give a later one, or none for two minutes"},
		"deadline far away": {func(t *Turn) { t.Spec.Deadline = at(MaxTurnDeadline + time.Second) }, "spec.deadline: the deadline is more than 30 days ahead"},
		"other namespace":   {func(t *Turn) { t.Namespace = "x" }, `metadata.namespace: "x" does not exist here: leave the namespace out; the only one is default`},
		"annotation's key":  {func(t *Turn) { t.Annotations = map[string]string{"/": ""} }, `metadata.annotations[/]: "/" cannot be a key: use at most 63 letters, digits, "-", "_" and ".", after a prefix such as example.com/ if you like`},
	} {
		t.Run(name, func(t *testing.T) {
			turn := &Turn{Spec: TurnSpec{SessionName: "a", Prompt: "hello\n"}}
			c.change(turn)
			before := turn.DeepCopy()
			var got []string
			for _, p := range new(Tree).Problems(ValidateTurn(turn, now)) {
				got = append(got, strings.TrimPrefix(p.Error(), ": "))
			}
			assert.Equal(t, c.want, strings.Join(got, "\n"))
			assert.Equal(t, before, turn, "nothing is changed")
			assert.NotContains(t, fmt.Sprint(ValidateTurn(turn, now)), "secret")
		})
	}
}
