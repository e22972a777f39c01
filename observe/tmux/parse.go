// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/observe"
)

// listing is a complete answer as tmux gave it.
type listing struct {
	server observe.Server
	// configuration is what the server was given last.
	configuration string
	// lapsed are the keepOptions that are not off.
	lapsed []string
	// rows as listed: a pane of a linked window has several.
	rows []observe.Pane
	// front is by how many people each pane is looked at.
	front map[string]int
}

// panes has each pane once, and who looks at it.
func (l listing) panes() []observe.Pane {
	panes := unique(l.rows)
	for i := range panes {
		panes[i].InFront = l.front[panes[i].PaneID]
	}
	return panes
}

// sessions maps the name of each tmux session to its id. A session always has a
// pane, so that the rows name them all.
func (l listing) sessions() map[string]string {
	byName := map[string]string{}
	for _, row := range l.rows {
		byName[row.SessionName] = row.SessionID
	}
	return byName
}

// owned maps the label of each tmux session that has one to its id. A pane of a
// linked window names one of its sessions only, so all rows are looked at.
func (l listing) owned() map[string]string {
	byLabel := map[string]string{}
	for _, row := range l.rows {
		if row.SessionLabel != "" {
			byLabel[row.SessionLabel] = row.SessionID
		}
	}
	return byLabel
}

// parse reads a whole answer: the line of the server, a row for each pane, the
// end. An answer of an empty server is its first line alone. Anything that does
// not fit exactly is an error, and then nothing of the answer is used.
func parse(stdout string, empty bool) (listing, error) {
	mark, err := markOf(stdout)
	if err != nil {
		return listing{}, err
	}
	parts := strings.Split(stdout[2+len(mark)+1:], mark)
	if len(parts) < 4 {
		return listing{}, errors.New("the listing of tmux broke off in its first line")
	}
	server, lapsed, err := parseServer(parts[0], parts[1])
	if err != nil {
		return listing{}, err
	}
	rest := parts[3:]
	width := 1 + len(labelOptions)
	if len(rest)%width != 1 {
		return listing{}, errors.New("the listing of tmux broke off, or a row has a wrong number of fields")
	}
	front, err := parseEndOf(rest, empty)
	if err != nil {
		return listing{}, err
	}
	l := listing{server: server, configuration: parts[2], lapsed: lapsed, front: front, rows: make([]observe.Pane, 0, len(rest)/width)}
	for at := 0; at+width <= len(rest); at += width {
		pane, err := parseRow(rest[at], rest[at+1:at+width])
		if err != nil {
			return listing{}, err
		}
		l.rows = append(l.rows, pane)
	}
	return l, nil
}

// parseEndOf reads what follows the last row: a line for each person who is attached,
// and the end.
func parseEndOf(rest []string, empty bool) (front map[string]int, err error) {
	last := rest[len(rest)-1]
	if empty {
		switch {
		case len(rest) > 1:
			return nil, errors.New("the listing of tmux has rows, but says that there are none")
		case last == "\n":
			return nil, nil
		}
		return nil, errNoEnd
	}
	lines, ends := strings.CutSuffix(last, "\nE\n")
	if !ends {
		return nil, errNoEnd
	}
	for line := range strings.SplitSeq(strings.TrimPrefix(lines, "\n"), "\n") {
		if line == "" {
			continue
		}
		pane, isClient := strings.CutPrefix(line, frontPrefix)
		if !isClient || !isID(pane, '%') {
			return nil, fmt.Errorf("the listing of tmux ends with %q, which is no client", line)
		}
		if front == nil {
			front = map[string]int{}
		}
		front[pane]++
	}
	return front, nil
}

var errNoEnd = errors.New("the listing of tmux has no end")

// markOf is the second field of the first line.
func markOf(stdout string) (string, error) {
	rest, isServer := strings.CutPrefix(stdout, "S\t")
	mark, _, more := strings.Cut(rest, "\t")
	if !isServer || !more || len(mark) < 3 || mark[0] != '~' || mark[len(mark)-1] != '~' {
		return "", fmt.Errorf("the listing of tmux does not begin with its server (%d bytes)", len(stdout))
	}
	return mark, nil
}

func parseServer(text, instance string) (s observe.Server, lapsed []string, err error) {
	fields := strings.Split(text, "\t")
	if want := 3 + len(keepOptions); len(fields) != want {
		return s, nil, fmt.Errorf("the server's line has %d fields instead of %d", len(fields), want)
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || pid < 1 {
		return s, nil, fmt.Errorf("the server's pid is %q", fields[0])
	}
	start, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || start < 1 {
		return s, nil, fmt.Errorf("the server's start time is %q", fields[1])
	}
	for i, option := range keepOptions {
		// tmux 3.2 to 3.7 write flags as numbers in formats.
		if fields[3+i] != "0" && fields[3+i] != "off" {
			lapsed = append(lapsed, option)
		}
	}
	return observe.Server{
		Process: observe.Process{PID: pid}, StartTime: start, Version: fields[2], Instance: instance,
	}, lapsed, nil
}

func parseRow(text string, labels []string) (observe.Pane, error) {
	line, begins := strings.CutPrefix(text, "\n")
	fields := strings.Split(line, "\t")
	if !begins || len(fields) != len(fieldFormats) || strings.Contains(line, "\n") {
		return observe.Pane{}, fmt.Errorf("a row of tmux has %d fields instead of %d", len(fields), len(fieldFormats))
	}
	for i, sigil := range []byte{'%', '@', '$'} {
		if !isID(fields[i], sigil) {
			return observe.Pane{}, fmt.Errorf("%q is no id of tmux", fields[i])
		}
	}
	pane := observe.Pane{
		PaneID: fields[0], WindowID: fields[1], SessionID: fields[2], SessionName: fields[8],
		Labels: parseLabels(labels), SessionLabel: labels[6],
	}
	var err error
	if pane.PID, err = strconv.Atoi(fields[3]); err != nil {
		return observe.Pane{}, fmt.Errorf("the pid of pane %s is %q", pane.PaneID, fields[3])
	}
	// What is no number counts as none.
	pane.LaunchedPID, _ = strconv.Atoi(labels[7])
	if pane.Attached, err = strconv.Atoi(fields[7]); err != nil {
		return observe.Pane{}, fmt.Errorf("pane %s has %q people attached", pane.PaneID, fields[7])
	}
	return pane, parseEnd(&pane, fields[4], fields[5], fields[6])
}

// parseEnd reads whether and how the pane's process ended. tmux 3.2 has no signal;
// tmux 3.3a knows neither status nor signal until it has got its SIGCHLD.
func parseEnd(pane *observe.Pane, dead, status, signal string) error {
	switch dead {
	case "0":
		pane.State = observe.Present
		return nil
	case "1":
		pane.State = observe.Dead
	default:
		return fmt.Errorf("pane %s is dead: %q", pane.PaneID, dead)
	}
	if status != "" {
		code, err := strconv.Atoi(status)
		if err != nil {
			return fmt.Errorf("the exit status of pane %s is %q", pane.PaneID, status)
		}
		pane.ExitStatus = &code
	}
	if signal == "" {
		return nil
	}
	number, err := signalNumber(signal)
	if err != nil {
		return fmt.Errorf("reading the end of pane %s: %w", pane.PaneID, err)
	}
	pane.ExitSignal = number
	return nil
}

// signalNumber reads a signal: a number on Linux, a name such as KILL where the
// C library has names.
func signalNumber(text string) (int, error) {
	if number, err := strconv.Atoi(text); err == nil {
		return number, nil
	}
	if number := unix.SignalNum("SIG" + text); number != 0 {
		return int(number), nil
	}
	return 0, fmt.Errorf("%q is no signal", text)
}

func parseLabels(labels []string) observe.Labels {
	incarnation, err := strconv.ParseInt(labels[3], 10, 64)
	if err != nil {
		incarnation = 0
	}
	return observe.Labels{
		Instance: labels[0], UID: labels[1], Name: labels[2],
		Incarnation: incarnation, Attempt: labels[4], Role: labels[5],
	}
}

// isID says whether text is an id of tmux of the kind that sigil names.
func isID(text string, sigil byte) bool {
	if len(text) < 2 || text[0] != sigil {
		return false
	}
	_, err := strconv.ParseUint(text[1:], 10, 32)
	return err == nil
}

// number of an id that isID has checked.
func idNumber(id string) uint64 {
	n, err := strconv.ParseUint(id[1:], 10, 32)
	if err != nil {
		return 0
	}
	return n
}

// unique has each pane once. A window may be linked into several sessions, and
// sessions may be grouped: the one that was made for the pane is named, else the
// one with the lowest id, and the people attached to any of them are counted, for
// all of them look at the pane.
func unique(rows []observe.Pane) []observe.Pane {
	panes := make([]observe.Pane, 0, len(rows))
	at := make(map[string]int, len(rows))
	counted := make(map[[2]string]struct{}, len(rows))
	for _, row := range rows {
		holder := [2]string{row.PaneID, row.SessionID}
		if _, again := counted[holder]; again {
			continue
		}
		counted[holder] = struct{}{}
		i, known := at[row.PaneID]
		if !known {
			at[row.PaneID] = len(panes)
			panes = append(panes, row)
			continue
		}
		attached := panes[i].Attached + row.Attached
		if comesBefore(row, panes[i]) {
			panes[i] = row
		}
		panes[i].Attached = attached
	}
	return panes
}

func comesBefore(a, b observe.Pane) bool {
	if a.Own() != b.Own() {
		return a.Own()
	}
	return idNumber(a.SessionID) < idNumber(b.SessionID)
}
