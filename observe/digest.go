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
// four spaces of a tab, composes characters (NFC), drops invisible ones and a \ at the
// end, and puts a long text between lines of its own.
func PromptDigest(prompt string) string {
	sum := sha256.Sum256([]byte(strings.TrimRight(plain(withoutPasteMarks(prompt), told), `\`)))
	return hex.EncodeToString(sum[:DigestDigits/2])
}

// DigestDigits is the length of a digest.
const DigestDigits = 16

// IsPromptDigest says whether the text has the form of one.
func IsPromptDigest(text string) bool {
	return len(text) == DigestDigits && strings.Trim(text, "0123456789abcdef") == ""
}

// plain composes the characters of a text that are kept.
func plain(text string, keep func(rune) bool) string {
	kept := make([]byte, 0, len(text))
	for _, r := range norm.NFC.String(text) {
		switch {
		case !keep(r):
		case r < utf8.RuneSelf:
			kept = append(kept, byte(r))
		default:
			kept = utf8.AppendRune(kept, r)
		}
	}
	return string(norm.NFC.Bytes(kept))
}

// told says whether a client's hook tells of a character: white space may have been
// added and dropped, and what takes no place on a screen dropped.
func told(r rune) bool {
	return !unicode.IsSpace(r) && (r < utf8.RuneSelf ||
		!unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point))
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
