// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"

	"github.com/muxlet/muxlet/observe"
)

// overlap is how much history two captures should have in common, so that they
// can be laid upon each other by their text.
const overlap = 50

// Follower makes lines that appear once out of looks at a pane, as `tail -f`
// would show them if the terminal were a file:
//
//   - A line that has scrolled off the screen is told at once, and once.
//   - A line on the screen is told when two looks found it the same. What a program
//     draws over and over (a spinner, a clock, a bar) is not told until it stands.
//   - A line that has only moved is not told again; one that has changed is.
//   - The last lines of an incarnation that has ended are told as they are.
//
// It does no I/O, and forgets all but the last look. The zero value has seen
// nothing.
type Follower struct {
	last observe.Screen
	// told are the lines since last.Lines[last.Visible] that the reader has.
	told []toldLine
}

// toldLine is a line on the screen that the reader has. A program that draws its
// screen anew may be caught while it is blank: a line is only forgotten when it
// was not there for some looks.
type toldLine struct {
	text   string
	absent int
}

// forgetAfter is the number of looks after which a line that is not on the screen
// any more is forgotten: when it comes again, it is new.
const forgetAfter = 4

// News is what a look has brought.
type News struct {
	// Lines that are new.
	Lines []string
	// Gap says that there were lines before these which no look has caught.
	Gap bool
}

// Begin takes everything in s for told, and returns the last n lines of it.
func (f *Follower) Begin(s observe.Screen, n int) []string {
	f.last, f.told = s, nil
	for _, line := range s.Lines[s.Visible:] {
		f.told = append(f.told, toldLine{text: line})
	}
	return s.Last(n).Lines
}

// Depth is how many lines of history a look needs to have, now that one has found
// a history of that size, so that it begins where the last look ended.
func (f *Follower) Depth(next observe.Screen) int {
	if !f.last.SamePane(next) {
		return next.History
	}
	return min(max(f.scrolled(next), 0)+overlap, next.History)
}

// scrolled is by how many lines the pane has scrolled since the last look.
func (f *Follower) scrolled(next observe.Screen) int {
	if since, ok := next.Since(); ok && f.last.Attempt != next.Attempt {
		return since
	}
	by := next.History - f.last.History
	if by >= 0 || f.last.History < next.HistoryLimit-next.HistoryLimit/10 {
		return by
	}
	// A full history loses its first tenth at once.
	tenth := max(next.HistoryLimit/10, 1)
	for by < 0 {
		by += tenth
	}
	return by
}

// Step takes the next look at the same session.
func (f *Follower) Step(next observe.Screen) News {
	from, aligned := f.place(next)
	before, told := f.last, f.told
	if before.Attempt != next.Attempt {
		// A respawn moves the screen into the history.
		told = nil
	}
	news := News{Gap: from < 0 || !aligned && next.History >= before.History}
	from = max(from, 0)
	f.last, f.told = next, nil
	// Lines that are on the screen again, since it has grown.
	for i := next.Visible; i < from; i++ {
		f.told = append(f.told, toldLine{text: next.Lines[i]})
	}
	var found []foundLine
	for i := from; i < len(next.Lines); i++ {
		if i < next.Visible || next.Dead || (aligned && before.Attempt == next.Attempt && stands(before, i-from+before.Visible, next.Lines[i])) {
			found = append(found, foundLine{next.Lines[i], i < next.Visible})
		}
	}
	lines, left := merge(told, found)
	f.told = append(f.told, left...)
	news.Lines = lines
	return news
}

// stands says whether the line was there before, at that place.
func stands(before observe.Screen, i int, line string) bool {
	return i >= 0 && i < len(before.Lines) && before.Lines[i] == line
}

// place is the index in next of the first line that was on the screen at the last
// look: everything before it is known. Negative: lines are missing in between. It
// is the beginning of next's screen, and not aligned, when the looks cannot be laid
// upon each other: somebody has cleared the history, or more has scrolled by than
// can be told.
func (f *Follower) place(next observe.Screen) (from int, aligned bool) {
	if !f.last.SamePane(next) {
		return 0, true
	}
	moved := f.scrolled(next)
	if moved > next.Depth {
		return -1, true
	}
	guess := f.guess(next, moved)
	if f.last.Attempt != next.Attempt {
		return guess, true
	}
	// Wrapped and wide lines make that a guess: the text near to it decides.
	for away := 0; away <= len(next.Lines); away++ {
		for _, i := range []int{guess - away, guess + away} {
			if i >= 0 && i <= len(next.Lines) && (away == 0 || min(i, f.last.Visible) >= evidence) && f.fits(next, i) {
				return i, true
			}
		}
	}
	return next.Visible, false
}

// guess is the place by the number of lines of the pane that have scrolled.
func (f *Follower) guess(next observe.Screen, moved int) int {
	whole := f.last.Depth == f.last.History && next.Depth == next.History
	switch {
	case moved < 0:
		return min(next.Visible-moved, len(next.Lines))
	case whole && f.last.Attempt == next.Attempt:
		// Both begin with the first line of all.
		return min(f.last.Visible, len(next.Lines))
	}
	guess := next.Visible
	for by := moved; by > 0 && guess > 0; {
		guess--
		by -= observe.Height(next.Lines[guess], next.Columns)
	}
	return guess
}

// evidence is how many lines have to be the same to correct a guess.
const evidence = 3

// fits says whether the history before the last look's screen is what is before
// next.Lines[from]. The first line of a look may be the end of a longer one.
func (f *Follower) fits(next observe.Screen, from int) bool {
	for i := 1; i <= min(f.last.Visible, from, overlap); i++ {
		was, is := f.last.Lines[f.last.Visible-i], next.Lines[from-i]
		cut := i == f.last.Visible && strings.HasSuffix(is, was) || i == from && strings.HasSuffix(was, is)
		if was != is && !cut {
			return false
		}
	}
	return true
}

// foundLine is a line of a look that will not change, or did not.
type foundLine struct {
	text string
	// history says that it has left the screen for good.
	history bool
}

// merge lays the found lines upon the told ones, so that as few as possible are
// new, and returns those, and what is told of the screen then.
func merge(told []toldLine, found []foundLine) (news []string, left []toldLine) {
	common := commonLengths(told, found)
	keep := func(l toldLine) {
		if l.absent++; l.absent < forgetAfter {
			left = append(left, l)
		}
	}
	take := func(l foundLine) {
		if l.history {
			// Whatever stood above it is not on the screen either.
			left = nil
			return
		}
		left = append(left, toldLine{text: l.text})
	}
	i, j := 0, 0
	for i < len(told) || j < len(found) {
		switch {
		case i < len(told) && j < len(found) && told[i].text == found[j].text:
			take(found[j])
			i, j = i+1, j+1
		case j == len(found) || i < len(told) && common[i+1][j] >= common[i][j+1]:
			keep(told[i])
			i++
		default:
			news = append(news, found[j].text)
			take(found[j])
			j++
		}
	}
	return news, left
}

// commonLengths has the length of the longest common subsequence of told[i:] and
// found[j:] at [i][j].
func commonLengths(told []toldLine, found []foundLine) [][]int32 {
	common := make([][]int32, len(told)+1)
	for i := range common {
		common[i] = make([]int32, len(found)+1)
	}
	for i := len(told) - 1; i >= 0; i-- {
		for j := len(found) - 1; j >= 0; j-- {
			if told[i].text == found[j].text {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}
