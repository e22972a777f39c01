// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package lazyregexp has regular expressions that are compiled when they are first
// used. Every start of a client goes through this program, which uses none of them:
// compiled as it starts, they took an eighth of the launcher's time. What cannot be
// compiled panics at its first use, as regexp.MustCompile does at once.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled once, when it is first used. It may
// be used by several goroutines at once.
type Regexp struct{ compiled func() *regexp.Regexp }

// New takes the syntax of regexp.Compile.
func New(expression string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// Get is the compiled expression, for what this package does not have.
func (r *Regexp) Get() *regexp.Regexp { return r.compiled() }

// MatchString is that of regexp.Regexp.
func (r *Regexp) MatchString(s string) bool { return r.Get().MatchString(s) }

// FindStringSubmatch is that of regexp.Regexp.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.Get().FindStringSubmatch(s) }

// ReplaceAllString is that of regexp.Regexp.
func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.Get().ReplaceAllString(src, repl)
}
