// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

const (
	head    = "S\t~m1~\t4711\t1700000000\t3.3a\t0\t1~m1~inst~m1~conf~m1~\n"
	row     = "%0\t@0\t$0\t4712\t0\t\t\t0\tname~m1~i~m1~u~m1~n~m1~3~m1~a~m1~client~m1~i.u~m1~4712~m1~\n"
	deadRow = "%1\t@1\t$1\t4713\t1\t\t9\t1\tother~m1~~m1~~m1~~m1~~m1~~m1~~m1~~m1~~m1~\n"
	tail    = "E\n"
)

// C4, D2, D9: the exact texts of tmux 3.2 to 3.7c, and every way in which a listing can be
// broken.
func TestAnswersAreClassifiedByTheirExactTexts(t *testing.T) {
	const path = "/run/user/0/muxlet/tmux.sock"
	for name, c := range map[string]struct {
		stdout, stderr string
		exitCode       int
		err            error
		want           observe.AnswerKind
	}{
		"complete listing":                      {head + row + deadRow + tail, "", 0, nil, observe.AnswerListed},
		"empty server":                          {head, "no current target\n", 1, nil, observe.AnswerListed},
		"empty server that ends its chain":      {head + tail, "", 0, nil, observe.AnswerListed},
		"no socket":                             {"", "error connecting to " + path + " (No such file or directory)\n", 1, nil, observe.AnswerNoSocket},
		"no socket in a path with brackets":     {"", "error connecting to /a (b)/s (No such file or directory)\n", 1, nil, observe.AnswerNoSocket},
		"nobody listens":                        {"", "no server running on " + path + "\n", 1, nil, observe.AnswerRefused},
		"nobody listens, in errno's words":      {"", "error connecting to " + path + " (Connection refused)\n", 1, nil, observe.AnswerRefused},
		"socket of another uid":                 {"", "error connecting to " + path + " (Permission denied)\n", 1, nil, observe.AnswerDenied},
		"server's access list, with code 0":     {"", "access not allowed\n", 0, nil, observe.AnswerDenied},
		"directory with a bad mode":             {"", "directory /tmp/tmux-0 has unsafe permissions\n", 1, nil, observe.AnswerDenied},
		"server dies, or is of tmux 3.6":        {"", "server exited unexpectedly\n", 1, nil, observe.AnswerFailed},
		"server dies in the middle":             {head + row, "server exited unexpectedly\n", 1, nil, observe.AnswerFailed},
		"other protocol":                        {"", "protocol version mismatch (client 8, server 7)\n", 1, nil, observe.AnswerMismatch},
		"attach without a server":               {"", "no sessions\n", 1, nil, observe.AnswerFailed},
		"backlog of a stopped server is full":   {"", "error connecting to " + path + " (Resource temporarily unavailable)\n", 1, nil, observe.AnswerFailed},
		"path too long":                         {"", "error connecting to " + path + " (File name too long)\n", 1, nil, observe.AnswerFailed},
		"locale":                                {"", "tmux: need UTF-8 locale (LC_CTYPE) but have ANSI_X3.4-1968\n", 1, nil, observe.AnswerFailed},
		"lost server":                           {"", "lost server\n", 1, nil, observe.AnswerFailed},
		"missing session":                       {head, "can't find session: x\n", 1, nil, observe.AnswerFailed},
		"two lines of which one is known":       {"", "a warning\nno server running on " + path + "\n", 1, nil, observe.AnswerFailed},
		"known words inside others":             {"", "hook: no server running on " + path + "\n", 1, nil, observe.AnswerFailed},
		"listing with words beside it":          {head + row + tail, "a warning\n", 0, nil, observe.AnswerFailed},
		"silence with code 1":                   {"", "", 1, nil, observe.AnswerFailed},
		"listing with code 1":                   {head + row + tail, "", 1, nil, observe.AnswerFailed},
		"empty server with code 0":              {head, "no current target\n", 0, nil, observe.AnswerFailed},
		"usage":                                 {"", "usage: tmux [-2CDlNuvV]\n", 1, nil, observe.AnswerFailed},
		"nothing with code 0":                   {"", "", 0, nil, observe.AnswerIncomplete},
		"empty server without its first line":   {"", "no current target\n", 1, nil, observe.AnswerIncomplete},
		"empty server with rows":                {head + row, "no current target\n", 1, nil, observe.AnswerIncomplete},
		"no end":                                {head + row, "", 0, nil, observe.AnswerIncomplete},
		"end cut in its line":                   {head + row + "E", "", 0, nil, observe.AnswerIncomplete},
		"row cut in its labels":                 {head + row[:len(row)-6], "", 0, nil, observe.AnswerIncomplete},
		"row cut in its fields":                 {head + row + "%1\t@1", "", 0, nil, observe.AnswerIncomplete},
		"row with a field too few":              {head + strings.Replace(row, "\t0\tname", "\tname", 1) + tail, "", 0, nil, observe.AnswerIncomplete},
		"row with a field too many":             {head + strings.Replace(row, "\tname", "\t0\tname", 1) + tail, "", 0, nil, observe.AnswerIncomplete},
		"row with a label too few":              {head + strings.Replace(row, "~m1~i", "", 1) + tail, "", 0, nil, observe.AnswerIncomplete},
		"row with a label too many":             {head + strings.Replace(row, "~m1~i", "~m1~i~m1~i", 1) + tail, "", 0, nil, observe.AnswerIncomplete},
		"row without its line's end":            {head + strings.TrimSuffix(row, "\n") + deadRow + tail, "", 0, nil, observe.AnswerIncomplete},
		"first line missing":                    {row + tail, "", 0, nil, observe.AnswerIncomplete},
		"first line twice":                      {head + head + row + tail, "", 0, nil, observe.AnswerIncomplete},
		"first line again at the end":           {head + row + head + tail, "", 0, nil, observe.AnswerIncomplete},
		"end twice":                             {head + row + tail + tail, "", 0, nil, observe.AnswerIncomplete},
		"end before the rows":                   {head + tail + row, "", 0, nil, observe.AnswerIncomplete},
		"first line cut":                        {"S\t~m1~\t4711", "", 0, nil, observe.AnswerIncomplete},
		"mark that is none":                     {strings.ReplaceAll(head+row+tail, "~m1~", ""), "", 0, nil, observe.AnswerIncomplete},
		"server without a pid":                  {strings.Replace(head, "4711", "", 1) + row + tail, "", 0, nil, observe.AnswerIncomplete},
		"server without its options":            {strings.Replace(head, "\t0\t1", "", 1) + row + tail, "", 0, nil, observe.AnswerIncomplete},
		"server without a start time":           {strings.Replace(head, "1700000000", "", 1) + row + tail, "", 0, nil, observe.AnswerIncomplete},
		"pane id that is none":                  {head + strings.Replace(row, "%0", "0", 1) + tail, "", 0, nil, observe.AnswerIncomplete},
		"pid that is no number":                 {head + strings.Replace(row, "4712", "x", 1) + tail, "", 0, nil, observe.AnswerIncomplete},
		"neither dead nor alive":                {head + strings.Replace(row, "4712\t0", "4712\t", 1) + tail, "", 0, nil, observe.AnswerIncomplete},
		"signal that is none":                   {head + strings.Replace(deadRow, "\t9\t", "\tNOSUCH\t", 1) + tail, "", 0, nil, observe.AnswerIncomplete},
		"longer than is kept":                   {head + row, "", 0, ErrTooLong, observe.AnswerIncomplete},
		"no answer":                             {"", "", -1, fmt.Errorf("asking: %w", ErrTimeout), observe.AnswerTimeout},
		"no answer, in the context's words":     {"", "", -1, context.DeadlineExceeded, observe.AnswerTimeout},
		"daemon stops":                          {"", "", -1, context.Canceled, observe.AnswerFailed},
		"words of a killed client do not count": {"", "no server running on " + path + "\n", -1, ErrTimeout, observe.AnswerTimeout},
		"program missing":                       {"", "", -1, fmt.Errorf("%w: tmux", ErrNoProgram), observe.AnswerNoBinary},
		"fork failed":                           {"", "", -1, fmt.Errorf("running tmux: %w", syscall.EAGAIN), observe.AnswerFailed},
		"out of memory":                         {"", "", -1, fmt.Errorf("running tmux: %w", syscall.ENOMEM), observe.AnswerFailed},
		"client crashed":                        {"", "", -1, fmt.Errorf("running tmux: signal: segmentation fault"), observe.AnswerFailed},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Classify(c.stdout, c.stderr, c.exitCode, c.err))
		})
	}
}

// D9: wherever a listing breaks off, it is no listing.
func TestEveryPrefixOfAListingIsIncomplete(t *testing.T) {
	whole := head + row + deadRow + tail
	for cut := range len(whole) {
		require.Equal(t, observe.AnswerIncomplete, Classify(whole[:cut], "", 0, nil), "cut after %q", whole[:cut])
	}
}

func TestEndOfAPaneIsReadAsFarAsTmuxTellsIt(t *testing.T) {
	three := 3
	for name, c := range map[string]struct {
		dead, status, signal string
		want                 observe.Pane
	}{
		"alive":                       {"0", "", "", observe.Pane{State: observe.Present}},
		"exit":                        {"1", "3", "", observe.Pane{State: observe.Dead, ExitStatus: &three}},
		"signal":                      {"1", "", "9", observe.Pane{State: observe.Dead, ExitSignal: 9}},
		"signal by name (macOS, BSD)": {"1", "", "KILL", observe.Pane{State: observe.Dead, ExitSignal: 9}},
		"not collected, or tmux 3.2":  {"1", "", "", observe.Pane{State: observe.Dead}},
	} {
		t.Run(name, func(t *testing.T) {
			var pane observe.Pane
			require.NoError(t, parseEnd(&pane, c.dead, c.status, c.signal))
			require.Equal(t, c.want, pane)
		})
	}
}

func TestPaneOfSeveralSessionsIsListedOnceWithItsOwnOrItsLowestSession(t *testing.T) {
	pane := func(id, session, name string, attached int) observe.Pane {
		return observe.Pane{PaneID: id, SessionID: session, SessionName: name, Attached: attached}
	}
	got := unique([]observe.Pane{
		pane("%1", "$10", "ten", 1), pane("%1", "$9", "nine", 2), pane("%1", "$11", "eleven", 0),
		pane("%2", "$9", "nine", 2), pane("%2", "$9", "nine", 2), // linked twice into one session
	})
	require.Equal(t, []observe.Pane{pane("%1", "$9", "nine", 3), pane("%2", "$9", "nine", 2)}, got)

	own, other := pane("%1", "$12", "twelve", 1), pane("%1", "$3", "three", 0)
	for _, p := range []*observe.Pane{&own, &other} {
		p.Labels.Instance, p.Labels.UID = "i", "u"
	}
	own.SessionLabel, other.SessionLabel = "i.u", "i.v"
	got = unique([]observe.Pane{other, own})
	require.Equal(t, []observe.Pane{own}, got, "the session that was made for it")
}

func TestLinesOfAScreenLeaveOutItsEmptyEnd(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		visible int
		last    int
		want    []string
		first   int
	}{
		"empty":            {"\n\n\n", 3, 5, nil, 0},
		"fewer than asked": {"a\nb  \n\n\n", 3, 5, []string{"a", "b"}, 1},
		"more than asked":  {"a\nb\nc\n", 1, 2, []string{"b", "c"}, 1},
		"empty inside":     {"a\n\nc\n", 3, 2, []string{"", "c"}, 0},
		"dead full screen": {"a\nbarPane is dead (signal 9, Sun Nov 29 15:39:44 2026)\n", 2, 2, []string{"a", "bar"}, 0},
		"dead pane":        {"a\nb\n\n\nPane is dead (status 1, Sun Nov 29 15:39:44 2026)\n", 5, 2, []string{"a", "b"}, 0},
		"nothing but dead": {"\n\nPane is dead (signal 9)\n", 3, 2, nil, 0},
		"says it itself":   {"Pane is dead (no)\nb\n", 2, 2, []string{"Pane is dead (no)", "b"}, 0},
		"lives":            {"a\nPane is dead (no)\n", 2, 2, []string{"a", "Pane is dead (no)"}, 0},
		"blank screen":     {"a\nb\n\n\n", 2, 5, []string{"a", "b"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var s observe.Screen
			s.Lines, s.Visible = linesOf(c.text, c.visible, strings.HasPrefix(name, "dead") || strings.HasSuffix(name, "dead"))
			s = s.Last(c.last)
			require.Equal(t, c.want, slices.Clip(append([]string(nil), s.Lines...)))
			require.Equal(t, c.first, s.Visible)
		})
	}
}

// A program may write what it likes: without the mark, which it cannot know, it
// is not taken for tmux.
func TestAScreenIsCutOutOfWhatElseACommandLinePrints(t *testing.T) {
	const mark = "~M~"
	head := mark + "\t1000\t%5\t1\t200\t40\t50000\t99\t30\t7\tu\t3\t9\t0\tshop-1/0\n"
	want := observe.Screen{
		Pane: "%5", ServerPID: 99, Base: 30, Incarnation: 7, Attempt: "u", Turn: "shop-1/0", Dead: true, Columns: 200, Cursor: observe.Cursor{X: 3, Y: 9, Hidden: true}, History: 40, HistoryLimit: 50000, Depth: 40,
		Lines: []string{"old", "muxlet-done %1 2", "S\t~x~"}, Visible: 1,
	}
	text := "old\nmuxlet-done %1 2\nS\t~x~\n\n"
	whole := head + text + mark + "\nmuxlet-done %1 2\nS\t~x~\n\n" + mark + ".\n"
	got, rest, err := CutScreen("before\n"+whole+"muxlet-ran %5 10\n", mark)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, "before\nmuxlet-ran %5 10\n", rest)

	for name, c := range map[string]struct{ stdout, rest string }{
		"none":            {"muxlet-ran %5 10\n", "muxlet-ran %5 10\n"},
		"in part":         {"before\n" + head + text, "before\n"},
		"without its end": {"before\n" + head + text + mark + "\nmuxlet-done\n", "before\n"},
		"capture failed":  {"before\n" + head + mark + ".\nend\n", "before\nend\n"},
		"no numbers":      {mark + "\t1\t%5\tx\ty\tz\t1\t\t\t\t\t\t\n" + mark + "\n" + mark + ".\nend\n", "end\n"},
		"no pane":         {mark + "\t1\t\t\t\t\t\t\t\t\t\t\t\t\n" + mark + "\n" + mark + ".\nend\n", "end\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, rest, err := CutScreen(c.stdout, mark)
			require.Error(t, err)
			require.Equal(t, c.rest, rest)
		})
	}
}

func FuzzListingIsReadWithoutPanic(f *testing.F) {
	f.Add(head+row+deadRow+tail, "", 0)
	f.Add(head, emptyServer, 1)
	f.Add("S\t~~\t", "", 0)
	f.Fuzz(func(t *testing.T, stdout, stderr string, code int) {
		l, kind := judge(stdout, stderr, code, nil)
		if kind == observe.AnswerListed {
			require.Positive(t, l.server.Process.PID)
			require.LessOrEqual(t, len(unique(l.rows)), len(l.rows))
		}
	})
}
