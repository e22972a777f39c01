// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

func TestFaintTextIsLeftOutOfTheStrongLines(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"faint to the end", "\x1b[1m> \x1b[0m\x1b[2mTry edit\x1b[0m", ">"},
		{"faint in the middle keeps the columns", "a\x1b[2mbc\x1b[22md", "a  d"},
		{"an empty reset", "\x1b[2ma\x1b[mb", " b"},
		{"several at once", "\x1b[0;1;2;31mhint\x1b[0;39mtext", "    text"},
		{"reset and then faint", "\x1b[2;0mseen\x1b[0;2mhint", "seen"},
		{"true colour is not faint", "\x1b[38;2;1;2;3mseen\x1b[48;2;2;2;2mseen", "seenseen"},
		{"faint behind a true colour", "\x1b[38;2;1;2;3;2mhint", ""},
		{"a palette's second colour is not faint", "\x1b[38;5;2mseen\x1b[48;5;2;58;5;2mseen", "seenseen"},
		{"reset as a colour is none", "\x1b[2m\x1b[38;5;0mhint\x1b[38;2;0;22;0mhint", ""},
		{"colours with colons", "\x1b[38:2::2:2:2mseen\x1b[48:5:2;58:2::0:0:2mseen\x1b[4:2mseen", "seenseenseen"},
		{"colons keep faint", "\x1b[2m\x1b[38:2::0:22:0mhint", ""},
		{"bold off is faint off", "\x1b[2mx\x1b[22my", " y"},
		{"another underline or 20-something is not", "\x1b[21mseen\x1b[2m\x1b[24;27mhint", "seen"},
		{"colour without its parameters", "\x1b[38mseen\x1b[38;2mseen", "seenseen"},
		{"other sequences", "\x1b[Kseen\x1b(Bseen\x1b[2Jseen", "seenBseenseen"},
		{"links", "\x1b]8;;http://x/2m\x1b\\seen\x1b]8;;\x07seen", "seenseen"},
		{"line drawing", "\x0eqq\x0fseen", "qqseen"},
		{"characters of all sizes", "日本\x1b[2m日本\x1b[0mé😀", "日本  é😀"},
		{"broken off", "seen\x1b[2", "seen"},
		{"broken off at once", "seen\x1b", "seen"},
		{"a link broken off", "seen\x1b]8;;", "seen"},
		{"a link broken off in its end", "seen\x1b]8;;\x1b", "seen"},
	} {
		assert.Equal(t, strings.TrimRight(c.want, " "), strings.Join(strongOf(c.in+"\n"), "\n"), c.name)
	}
}

func TestWhatIsInForceGoesOnInTheNextLine(t *testing.T) {
	assert.Equal(t, []string{"a", "  d", "", "e"}, strongOf("a\x1b[2mb\nbc\x1b[0md\n\ne\n\n\n"))
	assert.Empty(t, strongOf("\n\n"))
}

// hand captures until done says that everything is there.
func hand(t *testing.T, c *Conn, id string, done func(observe.Screen) bool) observe.Screen {
	t.Helper()
	var s observe.Screen
	require.Eventually(t, func() bool {
		var err error
		s, err = c.CaptureHand(t.Context(), id)
		return err == nil && done(s)
	}, patience, 10*time.Millisecond, "%+v", s)
	return s
}

func TestAHandSeesTheScreenItsCursorAndItsStrongText(t *testing.T) {
	c := testServer(t)
	id := newSession(t, c, "shop", "sh", "-c", `seq 100; printf '\033[2J\033[H'
printf '\033[38;2;2;2;2mstatus\033[0m\n\n'
printf '\033[1m>\033[0m \033[2mTry "edit <file>"\033[0m\n'
printf '\033[2m  ? for shortcuts\n  and this\033[0m\n\033[48;5;2mend\033[0m'
printf '\033[3;3H'; exec sleep 1000`)
	s := hand(t, c, id, func(s observe.Screen) bool { return s.Cursor == observe.Cursor{X: 2, Y: 2} })
	assert.Equal(t, []string{"status", "", `> Try "edit <file>"`, "  ? for shortcuts", "  and this", "end"}, s.Lines)
	assert.Equal(t, []string{"status", "", ">", "", "", "end"}, s.Strong)
	assert.Zero(t, s.Visible, "the screen alone")
	assert.Equal(t, id, s.Pane)

	plain, err := c.Capture(t.Context(), id, 0)
	require.NoError(t, err)
	assert.Equal(t, s.Cursor, plain.Cursor)
	assert.Nil(t, plain.Strong, "not asked for")
}

func TestAHandSeesTheProgramAndNotWhatAPersonLooksAt(t *testing.T) {
	c := testServer(t)
	id := newSession(t, c, "shop", "sh", "-c", `seq 100; printf '\033[?1049h\033[H\033[2mfaint\033[0m strong\033[?25l\033[2;2H'; exec sleep 1000`)
	gone := observe.Cursor{X: 1, Y: 1, Hidden: true}
	hand(t, c, id, func(s observe.Screen) bool { return s.Cursor == gone })
	run(t, c, "copy-mode", "-u", "-t", id)
	s := hand(t, c, id, func(observe.Screen) bool { return true })
	assert.Equal(t, gone, s.Cursor)
	assert.Equal(t, []string{"faint strong"}, s.Lines)
	assert.Equal(t, []string{"      strong"}, s.Strong)
}

func TestALineThatIsWrappedIsStrongInItsRows(t *testing.T) {
	c := testServer(t)
	id := newSession(t, c, "shop", "sh", "-c", `printf '%0150d' 0; printf '\033[2m%050d\033[0mx' 0; exec sleep 1000`)
	s := hand(t, c, id, func(s observe.Screen) bool { return strings.Contains(strings.Join(s.Strong, ""), "x") })
	assert.Equal(t, []string{strings.Repeat("0", 200) + "x"}, s.Lines)
	assert.Equal(t, []string{strings.Repeat("0", 120), strings.Repeat("0", 30) + strings.Repeat(" ", 50) + "x"}, s.Strong)
}

func TestAHandOnAMissingPaneIsAnErrorThatNamesIt(t *testing.T) {
	c := testServer(t)
	newSession(t, c, "shop")
	for _, id := range []string{"%99", "shop", ""} {
		_, err := c.CaptureHand(t.Context(), id)
		require.ErrorContains(t, err, id)
	}
}
