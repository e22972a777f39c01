// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// PromptDigest tells prompts apart without keeping them: 16 hexadecimal digits of the
// SHA-256 of what clients leave as it is of a text that was pasted. It is the same for
// a prompt and for what the client's hook tells of it. Measured on Claude Code 2.1.332
// and Codex 0.171.0: both trim the end, Codex the beginning, too; Claude Code makes
// four spaces of a tab, composes characters (NFC) and puts a long text between lines
// of its own.
func PromptDigest(prompt string) string {
	sum := sha256.Sum256(norm.NFC.Bytes(withoutSpace(withoutPasteMarks(prompt))))
	return hex.EncodeToString(sum[:DigestDigits/2])
}

// DigestDigits is the length of a digest.
const DigestDigits = 16

// IsPromptDigest says whether the text has the form of one.
func IsPromptDigest(text string) bool {
	return len(text) == DigestDigits && strings.Trim(text, "0123456789abcdef") == ""
}

// withoutSpace leaves out white space.
func withoutSpace(text string) []byte {
	kept := make([]byte, 0, len(text))
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
		case r < utf8.RuneSelf:
			kept = append(kept, byte(r))
		default:
			kept = utf8.AppendRune(kept, r)
		}
	}
	return kept
}

// pasteMarks are compiled for the first long paste: a program that needs them not
// starts 0.1 ms sooner.
var pasteMarks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<\\?/?pasted_content(?: id="\w{1,32}")?>`) })

// withoutPasteMarks leaves out the lines that Claude Code puts around a long paste,
// <pasted_content id="6edc"> and </pasted_content id="6edc">; of a prompt that has such
// lines itself, too, where it writes <\pasted_content id="6edc">.
func withoutPasteMarks(text string) string {
	if !strings.Contains(text, "pasted_content") {
		return text
	}
	return pasteMarks().ReplaceAllLiteralString(text, "")
}
