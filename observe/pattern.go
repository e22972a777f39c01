// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"regexp"
	"sync"
)

// compiled are the patterns of client classes: a screen is looked at several times
// a second with the same few.
var compiled sync.Map

// Compiled returns a pattern of a client class, in multi-line mode; nil when it is
// empty or no regular expression.
func Compiled(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	if known, ok := compiled.Load(pattern); ok {
		re, _ := known.(*regexp.Regexp)
		return re
	}
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		re = nil
	}
	compiled.Store(pattern, re)
	return re
}

// Matches says whether a pattern of a client class matches the text. An empty one
// matches nothing.
func Matches(pattern, text string) bool {
	re := Compiled(pattern)
	return re != nil && re.MatchString(text)
}
