// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/spec"
)

// mapping changes the entries of a mapping in block style. What comes before
// all others goes to the offset top, the line below the mapping's own key; -1
// stands for the line of its first entry.
//
// A comment above an entry that is removed stays: what it says may be about more
// than this entry, and a person can delete it, but not write it again. What
// stands behind the value or inside it goes with it.
func (r *rewrite) mapping(n, want *yaml.Node, path string, top int) error {
	own, err := r.entries(n, want, path)
	if err != nil {
		return r.place(n, err)
	}
	added := r.added(own, n, want)
	left := len(added)
	for _, e := range own {
		if e.action != remove {
			left++
		}
	}
	if left == 0 || len(own) == 0 {
		return r.place(n, errEmptied)
	}
	if err := r.addFields(added[-1], own[0], -1, top); err != nil {
		return err
	}
	for i, e := range own {
		switch e.action {
		case keep:
		case alter:
			err = r.alter(e, child(path, e.key.Value))
		case remove:
			err = r.removeEntry(e)
		}
		if err == nil {
			err = r.addFields(added[i], e, i, top)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keyPlace is where an entry in block style begins, and its indentation. It is
// an error if anything but dashes stands before it in its line.
func (r *rewrite) keyPlace(key *yaml.Node) (at, indent int, err error) {
	if at, err = r.start(key); err != nil {
		return 0, 0, err
	}
	before := r.data[r.lines[r.lineOf(at)]:at]
	if strings.Trim(string(before), " -") != "" {
		return 0, 0, r.place(key, errShape)
	}
	return at, r.columnOf(at), nil
}

// entryEnd is the end of an entry in block style: of its value or its colon.
func (r *rewrite) entryEnd(e entry) (int, error) {
	if isEmpty(e.value) {
		return r.afterColon(e.key)
	}
	return r.end(e.value)
}

// removeEntry takes the lines of an entry away.
func (r *rewrite) removeEntry(e entry) error {
	at, indent, err := r.keyPlace(e.key)
	if err != nil {
		return err
	}
	if !r.beginsLine(at) {
		return r.place(e.key, errShape)
	}
	end, err := r.entryEnd(e)
	if err != nil {
		return err
	}
	r.removeLines(r.lines[r.lineOf(at)], r.afterInner(r.lineAfter(end), indent))
	return nil
}

// addFields writes fields after an entry, or before the first one.
func (r *rewrite) addFields(fields []spec.Member, e entry, index, top int) error {
	if len(fields) == 0 {
		return nil
	}
	at, indent, err := r.keyPlace(e.key)
	if err != nil {
		return err
	}
	var lines []string
	for _, f := range fields {
		key := *f.Key
		if index >= 0 || e.key.Style != 0 {
			key.Style = e.key.Style
		}
		lines = append(lines, r.field(&key, f.Value, indent)...)
	}
	switch {
	case index >= 0:
		end, err := r.entryEnd(e)
		if err != nil {
			return err
		}
		r.insertLines(r.afterInner(r.lineAfter(end), indent), lines)
	case top >= 0:
		r.insertLines(top, lines)
	case r.beginsLine(at):
		r.insertLines(r.lines[r.lineOf(at)], lines)
	default: // behind a dash
		text := strings.Join(lines, r.eol) + r.eol + strings.Repeat(" ", indent)
		r.changes = append(r.changes, change{at: at, insert: strings.TrimLeft(text, " ")})
	}
	return nil
}

// insertLines at the beginning of a line.
func (r *rewrite) insertLines(at int, lines []string) {
	if len(lines) == 0 {
		return
	}
	text := strings.Join(lines, r.eol) + r.eol
	r.changes = append(r.changes, change{at: at, insert: text})
}

// removeLines from the beginning of a line up to the beginning of another one.
func (r *rewrite) removeLines(start, end int) {
	if start == end {
		return
	}
	r.changes = append(r.changes, change{at: start, remove: end - start})
}

// tried undoes the changes that a part made before it could not go on.
func (r *rewrite) tried(part func() error) error {
	before := len(r.changes)
	err := part()
	if err != nil {
		r.changes = r.changes[:before]
	}
	return err
}

// alter changes the value of an entry: inside, if it can be, else all of it.
func (r *rewrite) alter(e entry, path string) error {
	_, indent, err := r.keyPlace(e.key)
	if err != nil {
		return err
	}
	colon, err := r.afterColon(e.key)
	if err != nil {
		return r.place(e.key, err)
	}
	err = r.tried(func() error { return r.inside(e.value, e.want, path, r.lineAfter(colon)) })
	if err == nil {
		return nil
	}
	r.anew(e.value, path, err)
	return r.replace(e.value, e.want, colon, indent)
}

// anew notes that a collection with comments in it is written anew, and why.
func (r *rewrite) anew(n *yaml.Node, path string, why error) {
	start, err := r.start(n)
	if err != nil || !isCollection(n) || errors.Is(why, errEmptied) || errors.Is(why, errOther) {
		return
	}
	end, err := r.end(n)
	if err != nil || !bytes.Contains(r.data[start:end], []byte("#")) {
		return
	}
	r.written = append(r.written, fmt.Sprintf("%s (%v)", path, why))
}

// inside changes a collection and leaves what is equal in it alone.
func (r *rewrite) inside(n, want *yaml.Node, path string, top int) error {
	if !isCollection(n) || n.Kind != want.Kind || len(n.Content) == 0 || len(want.Content) == 0 {
		return errOther
	}
	switch {
	case isBlock(n) && n.Kind == yaml.MappingNode:
		return r.mapping(n, want, path, top)
	case isBlock(n):
		return r.list(n, want, path, top)
	}
	start, err := r.start(n)
	if err != nil {
		return err
	}
	end, err := r.end(n)
	if err != nil {
		return err
	}
	text, err := r.flow(n, want, path)
	r.changes = append(r.changes, change{at: start, remove: end - start, insert: text})
	return err
}

// standing is the text of a value in block style: what stands on the line of
// its key or dash, and whole lines below.
type standing struct{ inline, lines span }

// standing finds it. after is the offset after the colon or dash.
func (r *rewrite) standing(n *yaml.Node, after int) (standing, error) {
	s := standing{inline: span{after, after}}
	next := r.lineAfter(after)
	s.lines = span{next, next}
	if isEmpty(n) {
		return s, nil
	}
	start, err := r.start(n)
	if err != nil {
		return s, err
	}
	content, err := r.content(n)
	if err != nil {
		return s, err
	}
	end, err := r.end(n)
	if err != nil {
		return s, err
	}
	switch {
	case isBlock(n):
		if r.lineOf(content) == r.lineOf(after) {
			return s, errShape
		}
		if hasProperties(n) {
			s.inline = span{start, r.propertiesEnd(start)}
		}
		s.lines.end = r.lineAfter(end)
	case isBlockScalar(n):
		header, _, err := r.blockScalar(content)
		if err != nil {
			return s, err
		}
		s.inline = span{start, header}
		s.lines = span{r.lineAfter(header), r.lineAfter(end)}
		if end == header {
			s.lines.end = s.lines.start
		}
	default:
		s.inline = span{start, end}
		s.lines = span{r.lineAfter(end), r.lineAfter(end)}
	}
	return s, nil
}

// propertiesEnd is the end of the last word of an anchor and a tag.
func (r *rewrite) propertiesEnd(at int) int {
	end := at
	for at < len(r.data) && (r.data[at] == '&' || r.data[at] == '!') {
		for at < len(r.data) && !isWhite(r.data[at]) {
			at++
		}
		end = at
		for at < len(r.data) && (r.data[at] == ' ' || r.data[at] == '\t') {
			at++
		}
	}
	return end
}

// replace writes a value anew behind a colon or a dash.
func (r *rewrite) replace(n, want *yaml.Node, after, indent int) error {
	old, err := r.standing(n, after)
	if err != nil {
		return r.place(n, err)
	}
	model := *want
	if isCollection(n) && isCollection(want) && n.Kind != yaml.AliasNode {
		model.Style = n.Style & yaml.FlowStyle
	}
	w := r.block(&model, n, indent)
	switch {
	case old.inline.start == old.inline.end && w.inline != "":
		r.changes = append(r.changes, change{at: after, insert: " " + w.inline})
	case w.inline == "" && old.inline.start != old.inline.end:
		start := old.inline.start
		for start > after && isWhite(r.data[start-1]) {
			start--
		}
		r.changes = append(r.changes, change{at: start, remove: old.inline.end - start})
	case w.inline != "":
		r.changes = append(r.changes, change{at: old.inline.start, remove: old.inline.end - old.inline.start, insert: w.inline})
	}
	r.insertLines(old.lines.start, w.lines)
	r.removeLines(old.lines.start, old.lines.end)
	return nil
}

// list changes the items of a list in block style.
func (r *rewrite) list(n, want *yaml.Node, path string, top int) error {
	if hasProperties(n) {
		return r.place(n, errShape)
	}
	items, err := r.blockItems(n)
	if err != nil {
		return r.place(n, err)
	}
	indent := r.columnOf(items[0].dash)
	at := top
	for _, step := range align(n.Content, want.Content) {
		switch {
		case step.have < 0:
			r.insertLines(at, r.item(want.Content[step.want], indent))
			continue
		case step.want < 0:
			err = r.removeItem(items[step.have], indent)
		case !equal(n.Content[step.have], want.Content[step.want]):
			err = r.alterItem(items[step.have], want.Content[step.want], path+"[]", indent)
		}
		if err != nil {
			return err
		}
		at = r.afterInner(r.lineAfter(items[step.have].end), indent)
	}
	return nil
}

func (r *rewrite) removeItem(i item, indent int) error {
	if !r.beginsLine(i.dash) {
		return errShape
	}
	r.removeLines(r.lines[r.lineOf(i.dash)], r.afterInner(r.lineAfter(i.end), indent))
	return nil
}

// alterItem changes an item: inside, in place, or all of its lines.
func (r *rewrite) alterItem(i item, want *yaml.Node, path string, indent int) error {
	err := r.tried(func() error { return r.inside(i.value, want, path, -1) })
	if err == nil {
		return nil
	}
	r.anew(i.value, path, err)
	if !isBlock(i.value) && (!isBlock(want) || len(want.Content) == 0) {
		return r.replace(i.value, want, i.dash+1, indent)
	}
	if !r.beginsLine(i.dash) {
		return errShape
	}
	start, end := r.lines[r.lineOf(i.dash)], r.lineAfter(i.end)
	r.insertLines(start, r.item(want, indent))
	r.removeLines(start, end)
	return nil
}
