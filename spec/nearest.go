// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import "strings"

// Nearest is the candidate that a person most likely meant by word; empty when none is
// near.
func Nearest(word string, candidates []string) string { return nearest(word, candidates) }

// nearest returns the candidate that a person most likely meant by word: the
// one with the smallest edit distance, when it is small against the length of
// the word, else the only one that extends the word or is extended by it. It is
// empty when nothing is near. Letter case does not count.
func nearest(word string, candidates []string) string {
	folded := strings.ToLower(word)
	best, bestDistance := "", max(1, (len([]rune(word))+1)/3)+1
	for _, candidate := range candidates {
		if d := distance(folded, strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	if best != "" {
		return best
	}
	return extension(folded, candidates)
}

// extension returns the only candidate of at least three letters that begins
// with word or that word begins with.
func extension(word string, candidates []string) string {
	const shortest = 3
	found := ""
	for _, candidate := range candidates {
		c := strings.ToLower(candidate)
		if min(len(word), len(c)) < shortest || (!strings.HasPrefix(c, word) && !strings.HasPrefix(word, c)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = candidate
	}
	return found
}

// longestWord bounds the work of distance. No field or value is longer.
const longestWord = 64

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b (restricted Damerau-Levenshtein). Words over
// longestWord are infinitely far.
func distance(a, b string) int {
	if len(a) > longestWord || len(b) > longestWord {
		return longestWord
	}
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
