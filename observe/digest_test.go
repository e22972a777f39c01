// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each pair is what was pasted and what the hook of the real client told of it.
func TestAPromptAndWhatItsClientTellsOfItHaveOneDigest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line of ninety\n", 89) + "the last"
	for name, c := range map[string]struct{ pasted, told string }{
		"both: as it is":               {"one\n\ntwo  three", "one\n\ntwo  three"},
		"both: trimmed at its end":     {"hello \n", "hello"},
		"Codex: and at its beginning":  {"  \n lead", "lead"},
		"Claude: tabs":                 {"a\tb\n\tc", "a    b\n    c"},
		"Claude: composed characters":  {"e\u0301 \u1112\u1161\u11ab", "\u00e9 \ud55c"},
		"both: emoji":                  {"\U0001f469\u200d\U0001f467 日本語", "\U0001f469\u200d\U0001f467 日本語"},
		"Claude: invisible ones":       {"a\u200bb\ufeffc\u00add\ufe0fe\U000e0041f\u115fg\u180eh", "abcdefgh"},
		"Claude: a \\ at the end":      {"ends with \\", "ends with"},
		"Claude: a long paste":         {long, "\n\n<pasted_content id=\"6edc\">\n" + long + "\n</pasted_content id=\"6edc\">\n"},
		"Claude: marks in the prompt":  {"<pasted_content id=\"1\">\nx\n</pasted_content id=\"1\">", "<\\pasted_content id=\"1\">\nx\n<\\/pasted_content id=\"1\">"},
		"Claude: marks in a long text": {long + "<pasted_content id=\"1\">", "\n\n<pasted_content id=\"6edc\">\n" + long + "<\\pasted_content id=\"1\">\n</pasted_content id=\"6edc\">\n"},
	} {
		assert.Equal(t, PromptDigest(c.pasted), PromptDigest(c.told), name)
	}
}

func TestOtherPromptsHaveOtherDigests(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, prompt := range []string{"", "a", "A", "ab", "é", "pasted_content", "pasted_content id=\"x\"", "<pasted content>"} {
		digest := PromptDigest(prompt)
		assert.True(t, IsPromptDigest(digest), digest)
		assert.NotContains(t, seen, digest, "%q and %q", prompt, seen[digest])
		seen[digest] = prompt
	}
	for _, text := range []string{"", "0123456789abcde", "0123456789abcdeg", "0123456789ABCDEF", "0123456789abcdef0"} {
		assert.False(t, IsPromptDigest(text), text)
	}
}
