// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/muxlet/muxlet/spec"
)

// leastWord is the length in letters from which on a word can be a mistyped one: of a
// shorter one any other is near.
const leastWord = 3

// didYouMean names the candidate that a person most likely meant; empty when none is near.
func didYouMean(word string, candidates []string) string {
	if len([]rune(word)) < leastWord {
		return ""
	}
	near := spec.Nearest(word, candidates)
	if near == "" || near == word {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", near)
}
