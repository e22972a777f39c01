// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"

	"github.com/muxlet/muxlet/observe"
)

// words are the strings of the last listing, each one kept once. What tmux
// answered is one string, and its fields are parts of it: a record that remembers
// the id of one pane would keep all of it, with 1,000 panes 250 KB, and each
// record another one. Listings that say the same share their strings, so that
// they cost nothing to keep and little to compare.
type words map[string]string

// own replaces every string of l by one that holds nothing else, and returns the
// words of l.
func (w words) own(l *observe.Listing) words {
	next := make(words, len(w))
	keep := func(s *string) {
		word, known := next[*s]
		if !known {
			if word, known = w[*s]; !known {
				word = strings.Clone(*s)
			}
			next[word] = word
		}
		*s = word
	}
	keep(&l.Server.Version)
	keep(&l.Server.Instance)
	for i := range l.Panes {
		p := &l.Panes[i]
		for _, s := range []*string{
			&p.PaneID, &p.WindowID, &p.SessionID, &p.SessionName, &p.SessionLabel,
			&p.Labels.Instance, &p.Labels.UID, &p.Labels.Name, &p.Labels.Attempt, &p.Labels.Role,
		} {
			keep(s)
		}
	}
	for _, m := range []*map[string]string{&l.Sessions, &l.Owned} {
		own := make(map[string]string, len(*m))
		for name, id := range *m {
			keep(&name)
			keep(&id)
			own[name] = id
		}
		*m = own
	}
	return next
}
