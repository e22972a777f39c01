// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// plainWord needs no quotes in a shell.
var plainWord = lazyregexp.New(`^[A-Za-z0-9_%+,./:=@-]+$`)

// shellWord is word as a person can paste it into a shell.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shellWords is an argv as a person can paste it into a shell.
func shellWords(argv []string) string {
	var words []string
	for _, word := range argv {
		words = append(words, shellWord(word))
	}
	return strings.Join(words, " ")
}
