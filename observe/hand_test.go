// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

const screensDir = "../spec/testdata/screens/"

// screenLines reads a screen as tmux printed it.
func screenLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(screensDir + name + ".txt")
	require.NoError(t, err)
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
}

func judgeHand(class string, s Screen, prompt string) Composing {
	return JudgeHand(&spec.ResolveClass(class, nil).Spec, s, prompt).Composing
}

const (
	wrappedPrompt = "some longer words that wrap "
	shellPrompt   = "!echo hi"
)

func numbered(form string, n int) string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(form, i)
	}
	return strings.Join(lines, "\n")
}

// The screens are those of the real clients with the prompt pasted, and the same screens
// without what was written faint.
func TestThePromptIsFoundInTheInputLine(t *testing.T) {
	t.Parallel()
	symbols := "─── ● › ❯ grüße \U0001f469\u200d\U0001f469\u200d\U0001f467 日本語 e\u0301\ta"
	for name, prompt := range map[string]string{
		"claude-short": "fix the test", "claude-lines": "one\n\nthree", "claude-wrapped": strings.Repeat(wrappedPrompt, 20),
		"claude-long": numbered("line %d of ninety", 90), "claude-symbols": symbols, "claude-shell": shellPrompt, "claude-slash": "/mod",
		"claude-slash-alone": "/", "claude-question": "?", "claude-scrolled": strings.Repeat(wrappedPrompt, 20), "claude-one-letter": "O",
		"codex-short": "fix the test", "codex-lines": "one\n\n  two\nthree", "codex-wrapped": strings.Repeat(wrappedPrompt, 20),
		"codex-long": numbered("line %d of ninety", 90), "codex-symbols": symbols, "codex-shell": shellPrompt, "codex-slash": "/mod",
		"codex-slash-alone": "/", "codex-question": "?", "codex-scrolled": strings.Repeat(wrappedPrompt, 20), "codex-tall": numbered("line %d", 60),
	} {
		class, _, _ := strings.Cut(name, "-")
		s := Screen{Lines: screenLines(t, "composers/"+name)}
		plain := ComposingPrompt
		if name == "claude-shell" {
			// It proposes, faintly, how the last command went on.
			plain = ComposingOther
		}
		assert.Equal(t, plain, judgeHand(class, s, prompt), "%s: plain", name)
		s.Strong = screenLines(t, "composers/"+name+".strong")
		assert.Equal(t, ComposingPrompt, judgeHand(class, s, prompt), name)
		assert.Equal(t, ComposingOther, judgeHand(class, s, "do something else"), "%s: another prompt", name)
		assert.Equal(t, ComposingOther, judgeHand(class, s, prompt+strings.Repeat("\nand more of it", 100)), "%s: a longer one", name)
	}
}

// A hint is faint, but for the character that Claude Code draws its cursor over.
func TestAHintInTheInputLineIsNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"claude-empty", "claude-working", "claude-queued", "claude-after-turn", "claude-hint",
		"codex-empty", "codex-working", "codex-queued", "codex-after-turn",
	} {
		class, _, _ := strings.Cut(name, "-")
		s := Screen{Lines: screenLines(t, "composers/"+name), Strong: screenLines(t, "composers/"+name+".strong")}
		assert.Equal(t, ComposingNothing, judgeHand(class, s, "a prompt"), name)
	}
	hint := Screen{Lines: screenLines(t, "composers/claude-hint")}
	assert.Equal(t, ComposingOther, judgeHand("claude", hint, "a prompt"), "what is faint is not known")
}

// F5: a dialog has no input line, whatever it shows.
func TestADialogHasNoInputLine(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(screensDir + "*.txt")
	require.NoError(t, err)
	asked := 0
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		class, _, _ := strings.Cut(name, "-")
		lines := screenLines(t, name)
		if JudgeScreen(&spec.ResolveClass(class, nil).Spec, lines, time.Time{}).Attention == nil {
			continue
		}
		asked++
		assert.Contains(t, []Composing{ComposingUnknown, ComposingOther}, judgeHand(class, Screen{Lines: lines}, "a prompt"), name)
	}
	assert.GreaterOrEqual(t, asked, 20)
}

// An idle screen of the built-in classes has an input line; a class without a pattern
// has none.
func TestWhereTheInputLineIsDependsOnTheClass(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude-idle-fresh", "claude-idle-after-turn", "claude-idle-default-mode", "claude-after-clear", "claude-usage-limit", "claude-working-hang"} {
		assert.Equal(t, ComposingNothing, judgeHand("claude", Screen{Lines: screenLines(t, name)}, "a prompt"), name)
	}
	for _, name := range []string{"codex-idle-fresh", "codex-idle-after-turn", "codex-idle-resumed", "codex-working", "codex-401", "codex-usage-limit"} {
		lines := screenLines(t, name)
		assert.Equal(t, ComposingPrompt, judgeHand("codex", Screen{Lines: lines}, "Ask Codex to do anything"), "%s: its hint, when what is faint is not known", name)
	}
	lines := screenLines(t, "claude-idle-fresh")
	assert.Equal(t, ComposingUnknown, judgeHand("exec", Screen{Lines: lines}, "a prompt"))
	assert.Equal(t, ComposingUnknown, judgeHand("claude", Screen{Lines: []string{"$"}}, "a prompt"))
	assert.Equal(t, ComposingUnknown, judgeHand("claude", Screen{}, "a prompt"))
}

// A person's own paste stands there as a prompt does: its size tells them apart.
func TestALongPasteOfAnotherSizeIsNotThePrompt(t *testing.T) {
	t.Parallel()
	for name, others := range map[string][]string{
		"claude-long": {numbered("line %d", 89), numbered("line %d", 91), "short"},
		"codex-long":  {numbered("line %d of ninety", 89), numbered("line %d", 90), "short"},
	} {
		class, _, _ := strings.Cut(name, "-")
		s := Screen{Lines: screenLines(t, "composers/"+name)}
		for _, other := range others {
			assert.Equal(t, ComposingOther, judgeHand(class, s, other), "%s: %.20q", name, other)
		}
	}
	rule := strings.Repeat("─", 80)
	for text, want := range map[string]Composing{
		"[Pasted text #3]":                 ComposingPrompt,
		"[Pasted text #3]and more":         ComposingOther,
		"mine [Pasted text #3]":            ComposingOther,
		"[Pasted text #3][Pasted text #4]": ComposingOther,
		"[Pasted text #3 +1 lines]":        ComposingOther,
		"[Pasted text #12]":                ComposingPrompt,
		strings.Repeat("x", 1000) + "mine": ComposingOther,
		"mine" + strings.Repeat("x", 1000): ComposingOther,
		strings.Repeat("x", 1000):          ComposingPrompt,
	} {
		lines := []string{rule, "❯\u00a0" + text, rule, "  hint"}
		assert.Equal(t, want, judgeHand("claude", Screen{Lines: lines}, strings.Repeat("x", 1000)), "%.30q", text)
	}
}

// F1: an input line that is too small shows the end of a prompt alone, of which short
// lines have few characters.
func TestTheEndOfAPromptOfShortLinesIsThePrompt(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{numbered("%d", 90), strings.Repeat("a\n", 119) + "a"} {
		all := strings.Split(prompt, "\n")
		screen := func(rows int) Screen {
			lines := []string{"• said before", ""}
			for i, line := range all[len(all)-rows:] {
				mark := "  "
				if i == 0 {
					mark = "› "
				}
				lines = append(lines, mark+line)
			}
			return Screen{Lines: lines}
		}
		for _, rows := range []int{4, 12, 45, 80} {
			assert.Equal(t, ComposingPrompt, judgeHand("codex", screen(rows), prompt), "%d rows of %.10q", rows, prompt)
			assert.Equal(t, ComposingOther, judgeHand("codex", screen(rows), prompt+"b"), "%d rows of another", rows)
		}
		assert.Equal(t, ComposingOther, judgeHand("codex", screen(1), prompt), "what a person may have typed")
	}
	rule := strings.Repeat("─", 40)
	words := strings.Repeat("word ", 7)
	low := Screen{Lines: []string{"─── ↑ 19 more " + rule[:len("─")*26], "  " + words, "  " + words, rule, "  hint"}}
	assert.Equal(t, ComposingPrompt, judgeHand("claude", low, strings.TrimSpace(strings.Repeat("word ", 150))))
}

func TestADigestOfAScreenIsOfWhatIsVisible(t *testing.T) {
	t.Parallel()
	class := &spec.ResolveClass("exec", nil).Spec
	cursor := Cursor{X: 3, Y: 1, Hidden: true}
	one := JudgeHand(class, Screen{Lines: []string{"old", "a", "b"}, Visible: 1, Cursor: cursor}, "x")
	assert.Equal(t, cursor, one.Cursor)
	assert.Zero(t, one.At)
	assert.Equal(t, one.Digest, JudgeHand(class, Screen{Lines: []string{"older", "a", "b"}, Visible: 1}, "y").Digest)
	assert.NotEqual(t, one.Digest, JudgeHand(class, Screen{Lines: []string{"old", "a", "c"}, Visible: 1}, "x").Digest)
	assert.NotEqual(t, one.Digest, JudgeHand(class, Screen{Lines: []string{"old", "ab"}, Visible: 1}, "x").Digest)
	assert.NotEmpty(t, JudgeHand(class, Screen{Visible: 5}, "x").Digest)
}

func TestACommandOfTheClientsOwnIsNoPrompt(t *testing.T) {
	for _, name := range []string{spec.ClassClaude, spec.ClassCodex} {
		class := &spec.ResolveClass(name, nil).Spec
		for prompt, command := range map[string]bool{
			"/clear": true, "/model opus": true, "/my-plugin:do it now": true, "!ls -l": true,
			"/etc/passwd has a line too many": false, " /clear": false, "/clear\nand more": false, "clear": false, "/": false, "what is /clear": false, "wow!": false, "!": false,
		} {
			assert.Equal(t, command, JudgeHand(class, Screen{}, prompt).Command, "%s: %q", name, prompt)
		}
	}
	assert.False(t, JudgeHand(&spec.ResolveClass(spec.ClassExec, nil).Spec, Screen{}, "/clear").Command)
}
