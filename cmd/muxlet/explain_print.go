// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/muxlet/muxlet/config/schema"
)

const (
	// explainWidth is that of the text, as kubectl has it.
	explainWidth = 80
	textIndent   = 4
	valuesMark   = "\n\nPossible values:"
	itemMark     = " - "
)

// text is what kubectl explain prints, in its form.
func (e *explained) text(recursive bool) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "GROUP:      %s\nKIND:       %s\nVERSION:    %s\n\n", e.kind.Group, e.kind.Kind, e.kind.Version)
	if e.name != "" {
		fmt.Fprintf(&b, "FIELD: %s <%s>%s\n", e.name, typeName(e.schema), requiredMark(e.required))
		if words := e.schema.Element().Enum; len(words) > 0 {
			fmt.Fprintf(&b, "ENUM:\n")
			for _, word := range words {
				fmt.Fprintf(&b, "    %s\n", word)
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString("DESCRIPTION:\n" + wrapped(e.schema.Description, textIndent))
	if fields := e.schema.Fields(); len(fields) > 0 {
		b.WriteString("\nFIELDS:\n")
		if recursive {
			fieldTree(&b, e.schema, 1)
		} else {
			fieldList(&b, e.schema)
		}
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

// fieldList has each field with what it means, but for the words that it may be, whose
// meaning the field itself tells.
func fieldList(b *strings.Builder, s *schema.Schema) {
	for i, name := range s.Fields() {
		field := s.Field(name)
		if i > 0 {
			b.WriteByte('\n')
		}
		fieldLine(b, s, name, 1)
		about, _, _ := strings.Cut(field.Description, valuesMark)
		b.WriteString(wrapped(about, textIndent))
	}
}

// fieldTree has the names of all fields below.
func fieldTree(b *strings.Builder, s *schema.Schema, depth int) {
	for _, name := range s.Fields() {
		fieldLine(b, s, name, depth)
		fieldTree(b, s.Field(name), depth+1)
	}
}

func fieldLine(b *strings.Builder, s *schema.Schema, name string, depth int) {
	field, indent := s.Field(name), strings.Repeat("  ", depth)
	fmt.Fprintf(b, "%s%s\t<%s>%s\n", indent, name, typeName(field), requiredMark(s.Requires(name)))
	if words := field.Element().Enum; len(words) > 0 {
		fmt.Fprintf(b, "%senum: %s\n", indent, strings.Join(words, ", "))
	}
}

func requiredMark(required bool) string {
	if required {
		return " -required-"
	}
	return ""
}

// typeName is the word of kubectl for a type.
func typeName(s *schema.Schema) string {
	switch {
	case s.Items != nil:
		return "[]" + typeName(s.Items)
	case s.Additional != nil && s.Additional.Schema != nil:
		return "map[string]" + typeName(s.Additional.Schema)
	case len(s.Properties) > 0:
		return "Object"
	case len(s.Type) == 0:
		return "Object"
	}
	return s.Type[0]
}

// wrapped breaks a text into lines that fit behind the indent.
func wrapped(text string, indent int) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n") {
		lead := strings.Repeat(" ", indent)
		rest, isItem := strings.CutPrefix(paragraph, itemMark)
		line, next := lead, lead
		if isItem {
			line, next = lead+itemMark, lead+strings.Repeat(" ", len(itemMark))
		}
		empty := true
		for word := range strings.FieldsSeq(rest) {
			if !empty && width(line)+1+width(word) > explainWidth {
				b.WriteString(line + "\n")
				line, empty = next, true
			}
			if !empty {
				line += " "
			}
			line, empty = line+word, false
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
