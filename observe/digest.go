// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// PromptDigest tells prompts apart without keeping them: 16 hexadecimal digits of the
// SHA-256 of the text without any white space, since clients trim and wrap what was
// pasted.
func PromptDigest(prompt string) string {
	sum := sha256.Sum256([]byte(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, prompt)))
	return hex.EncodeToString(sum[:8])
}
