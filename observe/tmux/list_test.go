// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

// A6: an empty server is a proven zero, not a failure.
func TestEmptyServerIsListedWithoutPanes(t *testing.T) {
	c := testConn(t)
	pid := startServer(t, c)
	c.TicksOf = func(of int) uint64 { return uint64(of) + 1 }
	before := time.Now()
	l := listed(t, c)
	require.Empty(t, l.Panes)
	require.Empty(t, l.Sessions)
	require.Equal(t, observe.Process{PID: pid, Ticks: uint64(pid) + 1}, l.Server.Process)
	require.Equal(t, c.Socket, l.Server.Socket)
	require.InDelta(t, before.Unix(), l.Server.StartTime, patience.Seconds())
	require.NotEmpty(t, l.Server.Version)
	require.Empty(t, l.Server.Instance)
	require.False(t, l.Began.Before(before))
	require.False(t, l.Ended.Before(l.Began))
}

func TestPaneIsListedWithItsLabels(t *testing.T) {
	c := testServer(t)
	run(t, c, "set-option", "-s", observe.OptionServerInstance, "inst-1")
	id := run(t, c, "new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "shop", "--", "sleep", "1000", ";",
		"set-option", "-p", "-t", "=shop:", observe.OptionInstance, "inst-1", ";",
		"set-option", "-p", "-t", "=shop:", observe.OptionUID, "uid-1", ";",
		"set-option", "-p", "-t", "=shop:", observe.OptionName, "shop", ";",
		"set-option", "-p", "-t", "=shop:", observe.OptionIncarnation, "7", ";",
		"set-option", "-p", "-t", "=shop:", observe.OptionAttempt, "attempt-1", ";",
		"set-option", "-p", "-t", "=shop:", observe.OptionRole, observe.RoleClient)
	unlabelled := newSession(t, c, "plain")
	l := listed(t, c)
	require.Len(t, l.Panes, 2)
	require.Equal(t, "inst-1", l.Server.Instance)
	p := paneOf(t, l, id)
	require.Equal(t, observe.Labels{
		Instance: "inst-1", UID: "uid-1", Name: "shop", Attempt: "attempt-1", Role: observe.RoleClient, Incarnation: 7,
	}, p.Labels)
	require.Equal(t, observe.Present, p.State)
	require.Equal(t, "shop", p.SessionName)
	require.Equal(t, map[string]string{"shop": p.SessionID, "plain": paneOf(t, l, unlabelled).SessionID}, l.Sessions)
	require.NoError(t, syscall.Kill(p.PID, 0))
	require.Equal(t, observe.Labels{}, paneOf(t, l, unlabelled).Labels)
}

func TestDeadPaneIsListedWithItsStatusOrItsSignal(t *testing.T) {
	c := testServer(t)
	exited := newSession(t, c, "exited", "sh", "-c", "exit 3")
	killed := newSession(t, c, "killed", "sh", "-c", "kill -9 $$")
	server := listed(t, c).Server.Process.PID
	require.Eventually(t, func() bool {
		// tmux 3.3a of Debian loses SIGCHLD: see to it that it looks.
		require.NoError(t, syscall.Kill(server, syscall.SIGCHLD))
		l := listed(t, c)
		return paneOf(t, l, exited).StatusKnown() && paneOf(t, l, killed).StatusKnown()
	}, patience, 20*time.Millisecond)
	l := listed(t, c)
	e, k := paneOf(t, l, exited), paneOf(t, l, killed)
	require.Equal(t, observe.Dead, e.State)
	require.Equal(t, 3, *e.ExitStatus)
	require.Zero(t, e.ExitSignal)
	require.Equal(t, observe.Dead, k.State)
	require.Equal(t, 9, k.ExitSignal)
	require.Nil(t, k.ExitStatus)
}

// A label may hold whatever somebody sets; no byte of it breaks the listing.
func TestStrangeLabelsAreListedAsTheyAre(t *testing.T) {
	c := testServer(t)
	strange := []string{
		"a\tb", "a\nb", "\n", "\nE\n", "S\t~m~\t1\t2\t3", "#{pid}", "#(touch /nonexistent/x)", "#[fg=red\n]", "%H%M", "a,b}c", "~x~", "é→", strings.Repeat("long", 2000),
	}
	ids := make([]string, len(strange))
	for i, label := range strange {
		ids[i] = newSession(t, c, fmt.Sprintf("s%d", i))
		run(t, c, "set-option", "-p", "-t", ids[i], observe.OptionName, label, ";",
			"set-option", "-p", "-t", ids[i], observe.OptionRole, label)
	}
	run(t, c, "set-option", "-s", observe.OptionServerInstance, "x\ty\nz")
	l := listed(t, c)
	require.Len(t, l.Panes, len(strange))
	require.Equal(t, "x\ty\nz", l.Server.Instance)
	for i, label := range strange {
		require.Equal(t, label, paneOf(t, l, ids[i]).Labels.Name)
		require.Equal(t, label, paneOf(t, l, ids[i]).Labels.Role)
	}
}

func TestIncarnationLabelThatIsNoNumberIsZero(t *testing.T) {
	c := testServer(t)
	id := newSession(t, c, "s")
	run(t, c, "set-option", "-p", "-t", id, observe.OptionIncarnation, "many")
	require.Zero(t, paneOf(t, listed(t, c), id).Labels.Incarnation)
}

// I1: names are what people write; they are listed whole and never confused.
func TestStrangeSessionNamesAreListed(t *testing.T) {
	c := testServer(t)
	names := []string{"a-1", "a-10", "@1", "%1", "=x", "*", "-lead", "héllo→", "with space", "~x~", strings.Repeat("n", 300)}
	for _, name := range names {
		newSession(t, c, name)
	}
	newSession(t, c, "tab\there")
	newSession(t, c, "dot.and:colon")
	l := listed(t, c)
	require.Len(t, l.Panes, len(names)+2)
	require.Len(t, l.Sessions, len(names)+2)
	for _, name := range names {
		require.Contains(t, l.Sessions, name)
	}
	require.Contains(t, l.Sessions, `tab\there`)
	require.Contains(t, l.Sessions, "dot_and_colon")
}

// D8: a person's own windows, splits and links change nothing about a pane.
func TestLinkedAndGroupedWindowsAreListedOnce(t *testing.T) {
	c := testServer(t)
	first := newSession(t, c, "first")
	second := newSession(t, c, "second")
	run(t, c, "link-window", "-s", first, "-t", "=second:")
	run(t, c, "new-session", "-d", "-s", "grouped", "-t", "=first:")
	split := run(t, c, "split-window", "-d", "-P", "-F", "#{pane_id}", "-t", first, "--", "sleep", "1000")
	l := listed(t, c)
	require.Len(t, l.Panes, 3)
	require.Len(t, l.Sessions, 3)
	for _, id := range []string{first, split} {
		require.Equal(t, "first", paneOf(t, l, id).SessionName)
		require.Equal(t, l.Sessions["first"], paneOf(t, l, id).SessionID)
	}
	require.Equal(t, "second", paneOf(t, l, second).SessionName)
	run(t, c, "kill-session", "-t", "=first:")
	require.Equal(t, "second", paneOf(t, listed(t, c), first).SessionName)
}

func TestFiftyPanesAreListed(t *testing.T) {
	c := testServer(t)
	var script strings.Builder
	for i := range 50 {
		fmt.Fprintf(&script, "new-session -d -s n%d -- sleep 1000 ; set -p -t =n%d: %s u%d\n", i, i, observe.OptionUID, i)
	}
	requireClean(t, c.Run(t.Context(), strings.NewReader(script.String()), "source-file", "-"))
	l := listed(t, c)
	require.Len(t, l.Panes, 50)
	seen := map[string]bool{}
	for _, p := range l.Panes {
		require.Equal(t, "u"+strings.TrimPrefix(p.SessionName, "n"), p.Labels.UID)
		seen[p.Labels.UID] = true
	}
	require.Len(t, seen, 50)
}

func TestAListingOfOneSessionHasItsPanesAloneAndTheWholeServer(t *testing.T) {
	c := testServer(t)
	label := func(id, uid string) {
		run(t, c, "set-option", "-p", "-t", id, observe.OptionUID, uid, ";", "set-option", "-p", "-t", id, observe.OptionAttempt, "t-"+id[1:])
	}
	first, other := newSession(t, c, "a", "sleep", "1000"), newSession(t, c, "b", "sleep", "1000")
	label(first, "u-1")
	label(other, "u-11")
	run(t, c, "link-window", "-s", first, "-t", "b:")
	whole := listed(t, c)
	a := c.ListOf(t.Context(), time.Now, "u-1")
	require.Equal(t, observe.AnswerListed, a.Kind)
	require.Equal(t, whole.Server, a.Listing.Server)
	require.Len(t, a.Listing.Panes, 1)
	i := slices.IndexFunc(whole.Panes, func(p observe.Pane) bool { return p.PaneID == first })
	require.Equal(t, whole.Panes[i], a.Listing.Panes[0], "as the whole listing shows it")

	a = c.ListOf(t.Context(), time.Now, "nobody")
	require.Equal(t, observe.AnswerListed, a.Kind, "that there is none is an answer")
	require.Empty(t, a.Listing.Panes)
	a = c.ListOf(t.Context(), time.Now, "u-1},x}#{pane_id")
	require.Len(t, a.Listing.Panes, len(whole.Panes), "what a format would misread is not asked for")
}

func TestSecondServerIsToldApartFromTheFirst(t *testing.T) {
	c := testConn(t)
	first := startServer(t, c)
	firstServer := listed(t, c).Server
	require.NoError(t, os.Remove(c.Socket))
	second := startServer(t, c)
	secondServer := listed(t, c).Server
	require.NotEqual(t, first, second)
	require.Equal(t, second, secondServer.Process.PID)
	require.False(t, firstServer.Same(secondServer))
	// SIGUSR1 brings the first one's socket back, over the second's.
	require.NoError(t, syscall.Kill(first, syscall.SIGUSR1))
	require.Eventually(t, func() bool {
		a := c.List(t.Context(), time.Now)
		return a.Kind == observe.AnswerListed && a.Listing.Server.Same(firstServer)
	}, patience, 5*time.Millisecond)
}

func TestCaptureShowsTheEndOfThePane(t *testing.T) {
	c := testServer(t)
	long := strings.Repeat("x", 300)
	id := newSession(t, c, "s", "sh", "-c", "seq 1 200; echo "+long+"; printf 'last  \\n'; exec sleep 1000")
	require.Eventually(t, func() bool {
		s, err := c.Capture(t.Context(), id, 5)
		return err == nil && len(s.Lines) > 0 && s.Lines[len(s.Lines)-1] == "last"
	}, patience, 5*time.Millisecond)
	end, err := c.Capture(t.Context(), id, 4)
	require.NoError(t, err)
	require.Equal(t, []string{"199", "200", long, "last"}, end.Last(4).Lines)
	whole, err := c.Capture(t.Context(), id, 1<<30)
	require.NoError(t, err)
	require.Len(t, whole.Lines, 202)
	require.Equal(t, []string{"1", "2"}, whole.Lines[:2])
}

func TestCaptureTellsTheScreenFromTheHistory(t *testing.T) {
	c := testServer(t)
	// 120 columns and 30 rows: the last 29 lines and the cursor's are on the screen.
	id := newSession(t, c, "s", "sh", "-c", "seq 1 100; exec sleep 1000")
	run(t, c, "set-option", "-p", "-t", id, observe.OptionIncarnation, "7", ";", "set-option", "-p", "-t", id, observe.OptionAttempt, "u")
	var s observe.Screen
	require.Eventually(t, func() bool {
		var err error
		s, err = c.Capture(t.Context(), id, 10)
		return err == nil && len(s.Lines) > 0 && s.Lines[len(s.Lines)-1] == "100"
	}, patience, 5*time.Millisecond)
	require.Equal(t, "72", s.Lines[s.Visible])
	require.Equal(t, listed(t, c).Server.Process.PID, s.ServerPID)
	s.Lines, s.Visible, s.ServerPID = nil, 0, 0
	require.Equal(t, observe.Screen{Pane: id, Incarnation: 7, Attempt: "u", Columns: 120, Cursor: observe.Cursor{Y: 29}, History: 71, HistoryLimit: 2000, Depth: 10}, s)

	// A line that is on the screen in part counts as on it.
	run(t, c, "respawn-pane", "-k", "-t", id, "--", "sh", "-c", "printf %0170d 7; seq 1 29; exec sleep 1000")
	require.Eventually(t, func() bool {
		s, err := c.Capture(t.Context(), id, 10)
		return err == nil && len(s.Lines) > 0 && s.Lines[len(s.Lines)-1] == "29" && len(s.Lines[s.Visible]) == 171
	}, patience, 5*time.Millisecond)
}

// What a person does with the pane, and how a program draws, hides nothing.
func TestCaptureSeesThePaneInCopyModeAndOnTheAlternateScreen(t *testing.T) {
	c := testServer(t)
	id := newSession(t, c, "s", "sh", "-c", "seq 1 100; printf '\\033[?1049h\\033[2J\\033[3;1HDRAWN'; exec sleep 1000")
	shown := func(want string) func() bool {
		return func() bool {
			s, err := c.Capture(t.Context(), id, 1000)
			return err == nil && len(s.Lines) > 70 && s.Lines[0] == "1" && s.Lines[len(s.Lines)-1] == want
		}
	}
	require.Eventually(t, shown("DRAWN"), patience, 5*time.Millisecond)
	run(t, c, "copy-mode", "-t", id, ";", "send-keys", "-X", "-t", id, "history-top")
	require.Equal(t, "1", run(t, c, "display-message", "-p", "-t", id, "#{pane_in_mode}"))
	require.True(t, shown("DRAWN")())
}

// A status bar in the last row, or a prompt below a full screen.
func TestCaptureOfADeadPaneHasTheLastRowOfItsProgramAlone(t *testing.T) {
	c := testServer(t)
	run(t, c, "set-option", "-g", "remain-on-exit", "on")
	id := newSession(t, c, "s", "sh", "-c", "printf '\\033[Htop\\033[30;1Hstatus bar'; kill -9 $$")
	var s observe.Screen
	require.Eventually(t, func() bool {
		var err error
		s, err = c.Capture(t.Context(), id, 10)
		return err == nil && s.Dead
	}, patience, 5*time.Millisecond)
	require.Equal(t, "top", s.Lines[0])
	require.Equal(t, "status bar", s.Lines[len(s.Lines)-1])
}

func TestCaptureOfAMissingPaneIsAnErrorThatNamesIt(t *testing.T) {
	c := testServer(t)
	newSession(t, c, "s")
	_, err := c.Capture(t.Context(), "%"+strconv.Itoa(1<<20), 5)
	require.ErrorContains(t, err, "can't find pane: %1048576")
	for _, id := range []string{"", "%", "s", "=s:", "%1;kill-server"} {
		_, err = c.Capture(t.Context(), id, 5)
		require.ErrorContains(t, err, "not a pane id")
	}
}

// A person's own options that would end the server are told.
func TestOptionsThatWouldEndTheServerAreListed(t *testing.T) {
	c := testServer(t)
	id := newSession(t, c, "s")
	require.Empty(t, listed(t, c).Lapsed)
	run(t, c, "set-option", "-s", "exit-unattached", "on")
	run(t, c, "set-option", "-s", "exit-empty", "on", ";", "list-panes", "-t", id, ";", "set-option", "-s", "exit-unattached", "off")
	require.Equal(t, []string{"exit-empty"}, listed(t, c).Lapsed)
}

// A pane of which a person has made something else keeps its options and has
// another pid.
func TestAPaneThatWasTakenIsToldByItsPID(t *testing.T) {
	c := testServer(t)
	id := newSession(t, c, "s")
	require.False(t, paneOf(t, listed(t, c), id).Taken(), "nothing was launched in it")
	run(t, c, "set-option", "-p", "-F", "-t", id, observe.OptionLaunched, "#{pane_pid}")
	require.False(t, paneOf(t, listed(t, c), id).Taken())
	run(t, c, "respawn-pane", "-k", "-t", id, "--", "sleep", "1000")
	require.True(t, paneOf(t, listed(t, c), id).Taken())
}
