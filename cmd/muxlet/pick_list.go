// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muxlet/muxlet/spec"
)

// picker is a list of sessions of which a person picks one.
type picker struct {
	sessions []spec.Session
	// filter is what was typed; all of its words have to be in what is shown of a session.
	filter string
	// chosen is the name of the session that is marked, and top the first line that is shown.
	chosen string
	top    int
	// front is the name of the session in front of the person.
	front string
	// problem is why the list may be old; empty when it is not.
	problem string
	colour  bool
	now     time.Time
}

// show takes a new list, in the order in which people want it, and keeps what is marked.
func (p *picker) show(sessions []spec.Session, now time.Time) {
	p.sessions, p.now, p.problem = slices.Clone(sessions), now, ""
	slices.SortFunc(p.sessions, func(a, b spec.Session) int { return spec.CompareWaiting(&a, &b) })
	p.settle()
}

// shown are the sessions that the filter lets through.
func (p *picker) shown() []*spec.Session {
	words := strings.Fields(strings.ToLower(p.filter))
	var shown []*spec.Session
	for i := range p.sessions {
		s := &p.sessions[i]
		text := strings.ToLower(strings.Join(append(p.cells(s), directory(s)), " "))
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			shown = append(shown, s)
		}
	}
	return shown
}

// index is the place of what is marked among what is shown; -1 when nothing is.
func (p *picker) index(shown []*spec.Session) int {
	return slices.IndexFunc(shown, func(s *spec.Session) bool { return s.Name == p.chosen })
}

// settle marks the first session that is not in front of the person, unless one is marked.
func (p *picker) settle() {
	shown := p.shown()
	if p.index(shown) >= 0 || len(shown) == 0 {
		return
	}
	p.chosen = shown[0].Name
	if p.chosen == p.front && len(shown) > 1 {
		p.chosen = shown[1].Name
	}
}

// move marks another session, so many lines further down.
func (p *picker) move(lines int) {
	shown := p.shown()
	if len(shown) > 0 {
		p.chosen = shown[min(max(p.index(shown)+lines, 0), len(shown)-1)].Name
	}
}

// typed takes another filter. What it finds best is marked.
func (p *picker) typed(filter string) {
	p.filter = filter
	if shown := p.shown(); len(shown) > 0 {
		p.chosen = shown[0].Name
	}
}

// selection is the name of the session that is marked; empty when there is none.
func (p *picker) selection() string {
	if shown := p.shown(); p.index(shown) >= 0 {
		return p.chosen
	}
	return ""
}

// cells are what is shown of a session: its name, its status, what it does or asks, and for
// how long it has waited.
func (p *picker) cells(s *spec.Session) []string {
	waits := ""
	if since := spec.WaitingSince(s); !since.IsZero() {
		waits = age(metaTime(since), p.now)
	}
	return []string{visible(s.Name), string(spec.DisplayStatus(s)), visible(doing(s)), waits}
}

// doing is what the session asks of a person, why it waits for one, or what its client does.
func doing(s *spec.Session) string {
	asks := meta.FindStatusCondition(s.Status.Conditions, spec.ConditionInputRequired)
	a := s.Status.Activity
	switch {
	case asks != nil && asks.Status == "True":
		return "asks: " + asks.Reason
	case a != nil && a.Failure != "":
		return a.Failure
	case a != nil && spec.AsksForAttention(s):
		return "has finished"
	case spec.WaitsForPerson(s):
		if reason, _ := primaryReason(s); reason != string(spec.DisplayStatus(s)) {
			return reason
		}
	case a != nil && a.State != spec.ActivityUnknown && spec.DisplayStatus(s) == spec.StatusRunning:
		return string(a.State)
	}
	return ""
}

// The lines around the list.
const (
	pickHead = 3
	pickFoot = 1
)

var pickColumns = []string{"NAME", "STATUS", "ACTIVITY", "WAITS"}

const pickHelp = "Enter go there   ↑ ↓ choose   type to filter   Esc leave"

// lines draw the list in a terminal of that size. The cursor belongs behind the filter, on
// the first line.
func (p *picker) lines(columns, rows int) []string {
	shown := p.shown()
	room := max(rows-pickHead-pickFoot, 1)
	at := p.index(shown)
	p.top = min(max(p.top, at-room+1, 0), max(at, 0), max(len(shown)-room, 0))
	widths := p.widths(shown, columns)
	lines := []string{
		" › " + visible(p.filter),
		p.paint(quiet, " "+p.summary(len(shown))),
		p.paint(quiet, "   "+p.row(pickColumns, widths)),
	}
	for i := range room {
		if p.top+i >= len(shown) {
			lines = append(lines, "")
			continue
		}
		lines = append(lines, p.line(shown[p.top+i], p.top+i == at, widths, columns))
	}
	foot := p.paint(quiet, " "+pickHelp)
	if p.problem != "" {
		foot = p.paint(bad, " "+visible(p.problem))
	}
	lines = append(lines, foot)
	for i := range lines {
		lines[i] = clip(lines[i], columns)
	}
	return lines
}

func (p *picker) summary(shown int) string {
	waiting := 0
	for i := range p.sessions {
		if spec.WaitsForPerson(&p.sessions[i]) {
			waiting++
		}
	}
	text := count(len(p.sessions), "session")
	if shown < len(p.sessions) {
		text = fmt.Sprintf("%d of %s", shown, text)
	}
	switch waiting {
	case 0:
		return text + ", none waits for you"
	case 1:
		return text + ", 1 waits for you"
	}
	return fmt.Sprintf("%s, %d wait for you", text, waiting)
}

func (p *picker) line(s *spec.Session, marked bool, widths []int, columns int) string {
	sign := "  "
	if spec.WaitsForPerson(s) {
		sign = "● "
	}
	if s.Name == p.front {
		sign = "▸ "
	}
	text := " " + sign + p.row(p.cells(s), widths)
	switch {
	case marked:
		text = clip(text, columns)
		return "\x1b[7m" + text + strings.Repeat(" ", max(columns-width(text), 0)) + "\x1b[0m"
	case spec.WaitsForPerson(s):
		return p.paint(moving, text)
	}
	if colour := statusColours[spec.DisplayStatus(s)]; colour == quiet {
		return p.paint(quiet, text)
	}
	return text
}

// row puts cells into columns.
func (p *picker) row(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(clip(cell, widths[i]) + strings.Repeat(" ", max(widths[i]-width(cell), 0)+columnGap-1))
	}
	return strings.TrimRight(b.String(), " ")
}

// widths are those of the columns. A long name gives way so that what is asked is seen.
func (p *picker) widths(shown []*spec.Session, columns int) []int {
	widths := make([]int, len(pickColumns))
	for i, column := range pickColumns {
		widths[i] = width(column)
	}
	for _, s := range shown {
		for i, cell := range p.cells(s) {
			widths[i] = max(widths[i], width(cell))
		}
	}
	over := 3 - columns
	for _, w := range widths {
		over += w + columnGap - 1
	}
	if over > 0 {
		widths[0] = max(widths[0]-over, min(widths[0], 12))
	}
	return widths
}

func (p *picker) paint(c colour, text string) string {
	if !p.colour {
		return text
	}
	return c.paint(text)
}

// clip cuts text off behind so many columns. Colours take none.
func clip(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	if strings.HasPrefix(text, "\x1b[") {
		begin, rest, _ := strings.Cut(text, "m")
		if inner, ok := strings.CutSuffix(rest, "\x1b[0m"); ok {
			return begin + "m" + clip(inner, columns) + "\x1b[0m"
		}
	}
	if width(text) <= columns {
		return text
	}
	return terminalWidth.Truncate(text, columns, "…")
}
