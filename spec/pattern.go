// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import "regexp"

// GroupUntil is the group of a failure's pattern that catches the time at which the
// client may be used again.
const GroupUntil = "until"

// GroupText is the group of a composer's pattern that catches what stands in the input
// line.
const GroupText = "text"

// The groups of a composer's pasted that catch how many newlines or characters a long
// paste has.
const (
	GroupNewlines   = "newlines"
	GroupCharacters = "characters"
)

// CompilePattern compiles a pattern of a client class as it is meant: ^ and $ stand
// for the ends of a line, \z for the end of the screen.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile("(?m)" + pattern)
}
