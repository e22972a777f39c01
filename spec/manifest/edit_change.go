// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/spec"
)

// Outcome says what a Change does, in the words of kubectl.
type Outcome string

// The outcomes.
const (
	// Created: it gets a file.
	Created Outcome = "created"
	// Configured: the document that declares it is edited.
	Configured Outcome = "configured"
	// Unchanged: the document says what is wanted.
	Unchanged Outcome = "unchanged"
)

// Change is an edit that was worked out and verified, and is not made yet.
type Change struct {
	Outcome Outcome
	// File that is made, edited or left alone.
	File string
	// Replaced names what is written anew, the comments in it included, although
	// only a part of it differs, and why: a field's path, or all of the document.
	// Empty when nothing is touched but what differs.
	Replaced string
	// Before is the session that the document declared before; nil when that is not
	// known, and for a client class.
	Before *spec.Session

	source *source
	edited []byte
}

// Write makes the change. The error matches ErrReadOnly or ErrChanged; the file
// is untouched then.
func (c *Change) Write() error {
	edits.Lock()
	defer edits.Unlock()
	switch c.Outcome {
	case Unchanged:
		return nil
	case Created:
		return c.create()
	case Configured:
	}
	return c.source.write(c.edited)
}

// Check is the error that Write would most likely have. It changes nothing.
func (c *Change) Check() error {
	switch c.Outcome {
	case Unchanged:
		return nil
	case Created:
		return c.creatable()
	case Configured:
	}
	return c.source.writable()
}

// Texts are the file before and after the change; before is empty for one that is made.
func (c *Change) Texts() (before, after []byte) {
	if c.source != nil {
		before = c.source.data
	}
	return before, c.edited
}

// configure makes the document say what is wanted.
func (s *source) configure(want Declaration) (*Change, error) {
	tree, err := want.tree()
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", want.ref(), err)
	}
	change := &Change{Outcome: Configured, File: s.file, Before: s.decoded.Items[s.item].DeclaredSession(), source: s}
	if s.saysAlready(tree) {
		change.Outcome, change.edited = Unchanged, s.data
		return change, nil
	}
	wanted := meanings(s.decoded.Items)
	wanted[s.item] = want.alone()
	part, anew, failed := rewritten(s.data[s.part.start:s.part.end], tree, s.lineEnd(), false)
	if failed == nil {
		change.edited = slices.Concat(s.data[:s.part.start], part, s.data[s.part.end:])
		if failed = s.verify(change.edited, wanted); failed == nil {
			change.Replaced = joined(anew)
			return change, nil
		}
	}
	change.Replaced = fmt.Sprintf("all of the document (%v)", failed)
	if change.edited, err = s.replaced(want, tree); err != nil {
		return nil, err
	}
	return change, s.verify(change.edited, wanted)
}

func (d Declaration) ref() Ref { return RefOf(&d.Document) }

// alone is what it means without any settings.
func (d Declaration) alone() meaning {
	m := meaningOf(&d.Document)
	if s := d.DeclaredSession(); s != nil && s.Spec.Workspace.Directory == "" {
		m.problems = 1
	} else if m.object != nil {
		m.problems = 0
	}
	return m
}

// tree is what the document declares.
func (d Declaration) tree() (*yaml.Node, error) {
	root, err := spec.Root(d.Text)
	if err != nil {
		return nil, err
	}
	if root == nil || d.Declared() == nil {
		return nil, firstProblem(d.Problems)
	}
	return resolved(root, "", isJSON(d.Text)), nil
}

// saysAlready tells that the document says what is wanted, word for word: what
// it leaves to a default is left to it there too.
func (s *source) saysAlready(want *yaml.Node) bool {
	if s.decoded.Items[s.item].Declared() == nil {
		return false
	}
	root, err := spec.Root(s.data[s.part.start:s.part.end])
	return err == nil && root != nil && reflect.DeepEqual(declared(root, false), spec.ValueOf(want))
}

// replaced gives the file with another text for the whole document. The comment
// at its head stays, unless the new text has its own.
func (s *source) replaced(want Declaration, tree *yaml.Node) ([]byte, error) {
	at := regionOf(s.data, s.part)
	old, eol := at.text(s.data), s.lineEnd()
	if isJSON(old) || strings.HasSuffix(s.file, ".json") {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(spec.ValueOf(tree)); err != nil {
			return nil, fmt.Errorf("write %s as JSON: %w", want.ref(), err)
		}
		return at.with(s.data, withLineEnd(text.Bytes(), eol), eol), nil
	}
	text := want.cleaned(tree)
	if isJSON(want.Text) {
		text = []byte(strings.Join(manner{step: 2}.fields(tree, 0), "\n") + "\n")
	}
	if head := headOf(old); len(headOf(text)) == 0 && !at.glued {
		text = slices.Concat(head, text)
	}
	return at.with(s.data, withLineEnd(text, eol), eol), nil
}

// lineEnd is how the lines of the document end.
func (s *source) lineEnd() string {
	return lineEndOf(regionOf(s.data, s.part).text(s.data), s.data)
}

// headOf is what stands before the first key.
func headOf(text []byte) []byte {
	at := 0
	for at < len(text) {
		length := lineLength(text[at:])
		line := bytes.TrimSpace(text[at : at+length])
		if len(line) > 0 && line[0] != '#' {
			break
		}
		at += length
	}
	return text[:at]
}

// cleaned is the text without what declares nothing, such as the status that an
// output of get has.
func (d Declaration) cleaned(tree *yaml.Node) []byte {
	root, err := spec.Root(d.Text)
	if err != nil || reflect.DeepEqual(spec.ValueOf(root), spec.ValueOf(tree)) {
		return d.Text
	}
	text, _, err := rewritten(d.Text, tree, lineEndOf(d.Text), true)
	if err != nil {
		return d.Text // what declares nothing does no harm
	}
	return text
}

// Copy is the text of a document, to be edited by a person.
type Copy struct {
	// Ref is what it declares.
	Ref
	// File that declares it.
	File string
	// Text of the document, with its comments.
	Text []byte
	// Judge, when it is given, says what is wrong with an edited document, by its class
	// and with what the settings give it. Without it a document must be valid by itself.
	Judge func(*spec.Document) []spec.Problem
}

// Check is the error that an edit of the document would have whatever it says,
// such as one that matches ErrReadOnly. It changes nothing.
func (c Copy) Check() error {
	s, err := openSource(c.File, c.Ref)
	if err != nil {
		return err
	}
	return s.writable()
}

// InvalidError says what is wrong with an edited text.
type InvalidError struct{ Problems []spec.Problem }

// Error is the first problem.
func (e *InvalidError) Error() string { return firstProblem(e.Problems).Error() }

// Replace puts an edited text in the place of the one that was copied. Line ends
// are made those of the file, and nothing around the document changes.
//
// The error is an *InvalidError for a text that is not one valid document of the
// same kind and name, and matches ErrChanged when the document is not what it was when
// it was copied.
func (c Copy) Replace(edited []byte) (*Change, error) {
	want, err := c.declaration(edited)
	if err != nil {
		return nil, err
	}
	s, err := openSource(c.File, c.Ref)
	if errors.Is(err, ErrNotDeclared) {
		return nil, fmt.Errorf("edit %s: %w: %w", c.File, ErrChanged, err)
	}
	if err != nil {
		return nil, err
	}
	at := regionOf(s.data, s.part)
	if !bytes.Equal(at.text(s.data), c.Text) {
		return nil, fmt.Errorf("edit %s: %w", c.File, ErrChanged)
	}
	change := &Change{Outcome: Configured, File: c.File, Before: s.decoded.Items[s.item].DeclaredSession(), source: s}
	eol := s.lineEnd()
	change.edited = at.with(s.data, withLineEnd(edited, eol), eol)
	if bytes.Equal(change.edited, s.data) {
		change.Outcome = Unchanged
		return change, nil
	}
	wanted := meanings(s.decoded.Items)
	wanted[s.item] = want.alone()
	return change, s.verify(change.edited, wanted)
}

// argument names it on a command line.
func (c Copy) argument() string {
	if c.Kind == spec.KindClientClass {
		return "clientclass " + c.Name
	}
	return c.Name
}

// declaration decodes the edited text, which must be one valid document of the
// same kind and name.
func (c Copy) declaration(edited []byte) (Declaration, error) {
	declarations, problems := Declarations("", edited)
	at := func(line int, path, message string) error {
		return &InvalidError{[]spec.Problem{{Position: spec.Position{Line: line, Column: 1}, Path: path, Message: message}}}
	}
	switch {
	case len(problems) > 0:
		return Declaration{}, &InvalidError{problems}
	case len(declarations) == 0:
		return Declaration{}, at(1, "", fmt.Sprintf("the document is empty; \"muxlet delete %s\" removes a %s", c.argument(), c.What()))
	case len(declarations) > 1:
		return Declaration{}, at(declarations[1].Line, "", "a second document; edit one at a time")
	}
	d := declarations[0]
	switch {
	case d.Declared() == nil, c.Judge == nil && len(d.Problems) > 0:
		return d, &InvalidError{d.Problems}
	case d.Kind != c.Kind:
		return d, at(d.Line, "kind", fmt.Sprintf("the kind cannot be changed: put %s back", c.Kind))
	case d.Name != c.Name:
		return d, at(d.Line, "metadata.name", fmt.Sprintf("a %[1]s cannot be renamed: put %[2]q back, or make a new %[1]s with \"muxlet apply\" and delete this one", c.What(), c.Name))
	}
	if c.Judge != nil {
		if problems := c.Judge(&d.Document); len(problems) > 0 {
			return d, &InvalidError{problems}
		}
	}
	return d, nil
}
