// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

// terminal is a pane as tmux keeps it: lines, of which the last ones are on the
// screen.
type terminal struct {
	rows, columns, limit int
	incarnation          int64
	base                 int
	lines                []string
	dead                 bool
}

func newTerminal(rows int) *terminal {
	t := &terminal{rows: rows, columns: 20, limit: 1000, incarnation: 1}
	t.lines = make([]string, rows)
	return t
}

// history is how many lines have scrolled off.
func (t *terminal) history() int { return len(t.lines) - t.rows }

// say writes lines at the first free place of the screen.
func (t *terminal) say(lines ...string) {
	for _, line := range lines {
		row := len(t.lines)
		for row > t.history() && t.lines[row-1] == "" {
			row--
		}
		for len(line) > t.columns {
			t.put(row, line[:t.columns]+"\\")
			line = line[t.columns:]
			row = min(row+1, len(t.lines))
		}
		t.put(row, line)
	}
}

// put writes one line of the pane, and scrolls if that is beyond the screen.
func (t *terminal) put(row int, text string) {
	if row == len(t.lines) {
		if t.history() >= t.limit {
			t.lines = t.lines[max(t.limit/10, 1):]
		}
		t.lines = append(t.lines, "")
		row = len(t.lines) - 1
	}
	t.lines[row] = text
}

// draw replaces the screen.
func (t *terminal) draw(lines ...string) {
	screen := make([]string, t.rows)
	copy(screen, lines)
	t.lines = append(t.lines[:t.history()], screen...)
}

// respawn moves the screen into the history for the next incarnation.
func (t *terminal) respawn() {
	t.lines = append(t.lines, "Pane is dead (signal 9)")
	t.lines = append(t.lines, make([]string, t.rows)...)
	t.base, t.dead = t.history(), false
	t.incarnation++
}

// look is what tmux tells of the terminal.
func (t *terminal) look(depth int) observe.Screen {
	depth = min(depth, t.history())
	s := observe.Screen{
		Pane: "%1", Incarnation: t.incarnation, Attempt: fmt.Sprint("attempt ", t.incarnation), Dead: t.dead,
		Columns: t.columns, History: t.history(), HistoryLimit: t.limit, Depth: depth, Base: t.base,
	}
	joins := false
	for i, line := range t.lines[t.history()-depth:] {
		text, wraps := strings.CutSuffix(line, "\\")
		if joins {
			s.Lines[len(s.Lines)-1] += text
		} else {
			s.Lines = append(s.Lines, text)
		}
		if i == depth {
			s.Visible = len(s.Lines) - 1
		}
		joins = wraps
	}
	for len(s.Lines) > s.Visible && s.Lines[len(s.Lines)-1] == "" {
		s.Lines = s.Lines[:len(s.Lines)-1]
	}
	return s
}

// step is one look as the controller takes it: a second one when the first does
// not reach back far enough.
func step(f *Follower, t *terminal) News {
	next := t.look(overlap)
	if depth := f.Depth(next); depth > next.Depth {
		next = t.look(depth)
	}
	return f.Step(next)
}

func TestLinesAreToldOnceWhenTheyStandOrHaveScrolledAway(t *testing.T) {
	type act = func(*terminal)
	say := func(lines ...string) act { return func(t *terminal) { t.say(lines...) } }
	draw := func(lines ...string) act { return func(t *terminal) { t.draw(lines...) } }
	nothing := func(*terminal) {}
	for name, c := range map[string]struct {
		// acts come one before each look; news are what the looks bring.
		acts []act
		news [][]string
	}{
		"nothing new":           {[]act{nothing, nothing}, [][]string{nil, nil}},
		"a line that stands":    {[]act{say("a"), nothing, nothing}, [][]string{nil, {"a"}, nil}},
		"one line at each look": {[]act{say("a"), say("b"), say("c"), nothing}, [][]string{nil, {"a"}, {"b"}, {"c"}}},
		"the same line again":   {[]act{say("a", "a"), nothing, say("a"), nothing}, [][]string{nil, {"a", "a"}, nil, {"a"}}},
		"lines that scroll away are told at once": {
			[]act{say("a", "b", "c", "d", "e", "f", "g"), nothing}, [][]string{{"a", "b"}, {"c", "d", "e", "f", "g"}},
		},
		"equal lines that scroll away": {
			[]act{say("x", "x", "x", "x", "x"), nothing, say("x", "x"), nothing}, [][]string{nil, {"x", "x", "x", "x", "x"}, nil, {"x", "x"}},
		},
		"an empty line between":       {[]act{say("a"), draw("a", "", "b"), nothing}, [][]string{nil, {"a"}, {"", "b"}}},
		"a prompt without a line end": {[]act{draw("name? "), draw("name? "), draw("name? bob", "hi bob"), nothing}, [][]string{nil, {"name? "}, nil, {"name? bob", "hi bob"}}},
		"a spinner is not told until it stands": {
			[]act{draw("work", "/"), draw("work", "-"), draw("work", "\\ "), draw("work", "done"), nothing},
			[][]string{nil, {"work"}, nil, nil, {"done"}},
		},
		"a box that moves down is told once": {
			[]act{draw("one", "+--+", "|> |"), nothing, draw("one", "two", "+--+", "|> |"), nothing},
			[][]string{nil, {"one", "+--+", "|> |"}, nil, {"two"}},
		},
		"a screen that is drawn anew is not told anew": {
			[]act{draw("a", "b", "c"), nothing, draw(), draw("a"), draw("a", "b", "c"), nothing, nothing},
			[][]string{nil, {"a", "b", "c"}, nil, nil, nil, nil, nil},
		},
		"a page that is turned": {
			[]act{draw("1", "2", "3", "4", "5"), nothing, draw("4", "5", "6", "7", "8"), nothing},
			[][]string{nil, {"1", "2", "3", "4", "5"}, nil, {"6", "7", "8"}},
		},
		"a line that comes again after a while is new": {
			[]act{draw("a"), nothing, draw("b"), nothing, nothing, nothing, draw("a"), nothing},
			[][]string{nil, {"a"}, nil, {"b"}, nil, nil, nil, {"a"}},
		},
		"the last words are told as they are": {
			[]act{say("a"), func(t *terminal) { t.say("b", "c"); t.dead = true }, nothing},
			[][]string{nil, {"a", "b", "c"}, nil},
		},
		"the next incarnation": {
			[]act{func(t *terminal) { t.say("1", "2", "3", "4", "5", "6", "bye"); t.dead = true }, func(t *terminal) { t.respawn(); t.say("bye") }, nothing},
			[][]string{{"1", "2", "3", "4", "5", "6", "bye"}, nil, {"bye"}},
		},
		"a wrapped line is one": {
			[]act{say(strings.Repeat("w", 50), "x"), nothing, say("1", "2", "3", "4", "5"), nothing},
			[][]string{nil, {strings.Repeat("w", 50), "x"}, {}, {"1", "2", "3", "4", "5"}},
		},
		"a cleared history": {
			[]act{say("1", "2", "3", "4", "5", "6", "7"), nothing, func(t *terminal) { t.lines = []string{"new", "", "", "", ""} }, nothing},
			[][]string{{"1", "2"}, {"3", "4", "5", "6", "7"}, nil, {"new"}},
		},
		"a screen that grows": {
			[]act{say("1", "2", "3", "4", "5", "6", "7"), nothing, func(t *terminal) { t.rows = 7 }, nothing, say("8"), nothing},
			[][]string{{"1", "2"}, {"3", "4", "5", "6", "7"}, nil, nil, {}, {"8"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			term := newTerminal(5)
			var f Follower
			f.Begin(term.look(overlap), 0)
			for i, act := range c.acts {
				act(term)
				news := step(&f, term)
				want := c.news[i]
				if len(want) == 0 {
					want = nil
				}
				if len(news.Lines) == 0 {
					news.Lines = nil
				}
				require.Equal(t, want, news.Lines, "look %d", i+1)
				require.False(t, news.Gap)
			}
		})
	}
}

// However much comes between two looks, and however alike the lines are: what a
// program prints line by line is told whole and in order.
func TestWhatIsPrintedLineByLineIsToldWholeAndInOrder(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		term := newTerminal(2 + random.IntN(10))
		words := []string{"tick", "tock", "tick tock", strings.Repeat("long ", 10), "x"}
		var f Follower
		f.Begin(term.look(overlap), 0)
		var said, heard []string
		for range 20 {
			for range random.IntN(30) {
				line := words[random.IntN(1+random.IntN(len(words)))]
				term.say(line)
				said = append(said, line)
			}
			news := step(&f, term)
			require.False(t, news.Gap)
			heard = append(heard, news.Lines...)
		}
		term.dead = true
		heard = append(heard, step(&f, term).Lines...)
		require.Equal(t, said, heard, "seed %d", seed)
	}
}

func TestABeginningTellsTheLastLines(t *testing.T) {
	term := newTerminal(3)
	term.say("1", "2", "3", "4", "5")
	var f Follower
	assert.Equal(t, []string{"4", "5"}, f.Begin(term.look(overlap), 2))
	assert.Empty(t, f.Begin(term.look(overlap), 0))
	assert.Equal(t, []string{"1", "2", "3", "4", "5"}, f.Begin(term.look(overlap), 100))
	assert.Empty(t, step(&f, term).Lines)
}

// A full history forgets its first tenth at once.
func TestAFullHistoryIsFollowed(t *testing.T) {
	term := newTerminal(5)
	term.limit = 200
	var f Follower
	f.Begin(term.look(overlap), 0)
	var said, heard []string
	for i := range 1000 {
		line := fmt.Sprint("line ", i)
		term.say(line)
		said = append(said, line)
		if i%7 == 0 {
			heard = append(heard, step(&f, term).Lines...)
		}
	}
	term.dead = true
	heard = append(heard, step(&f, term).Lines...)
	assert.Equal(t, said, heard)
}

func TestWhatNoLookCanReachIsAGap(t *testing.T) {
	term := newTerminal(5)
	var f Follower
	f.Begin(term.look(overlap), 0)
	for i := range 300 {
		term.say(fmt.Sprint(i))
	}
	// As if no more could be asked for.
	news := f.Step(term.look(overlap))
	assert.True(t, news.Gap)
	assert.Equal(t, "245", news.Lines[0])
	assert.Equal(t, 350-5, f.Depth(observe.Screen{Pane: "%1", Attempt: "attempt 1", History: 295 + 295, HistoryLimit: 1000}))
}

func TestANewPaneIsNewFromItsBeginning(t *testing.T) {
	term := newTerminal(3)
	term.say("1", "2", "3", "4", "5")
	var f Follower
	f.Begin(term.look(overlap), 0)
	next := term.look(overlap)
	next.Attempt = "another"
	for i, pane := range []string{"%2", "%2", "%1"} {
		// The second one is that of another server, which uses the id again.
		next.Pane, next.ServerPID = pane, i
		assert.Equal(t, next.History, f.Depth(next))
		assert.Equal(t, []string{"1", "2"}, f.Step(next).Lines)
		assert.Equal(t, []string{"3", "4", "5"}, f.Step(next).Lines)
	}
}
