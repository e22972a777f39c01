// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package schema says what each field of a document means, as JSON Schema (draft-07)
// that editors and `muxlet explain` read alike. hack/fielddocs makes it of the Go docs of
// packages spec and config. It judges no document: the strict decoder of spec does.
package schema

import (
	"encoding/json"
	"maps"
	"slices"
)

// Schema is one JSON Schema, as far as the kinds need it.
type Schema struct {
	// Draft and Comment are given at the top of a file alone.
	Draft   string `json:"$schema,omitempty"`
	Comment string `json:"$comment,omitempty"`
	Title   string `json:"title,omitempty"`
	// Description has paragraphs, each on a line of its own, with an empty one between.
	Description string `json:"description,omitempty"`
	// Type is one of the words of JSON Schema, or several.
	Type   Types  `json:"type,omitempty"`
	Format string `json:"format,omitempty"`
	// Pattern is a regular expression that RE2 and ECMA-262 read alike.
	Pattern   string `json:"pattern,omitempty"`
	MaxLength *int64 `json:"maxLength,omitempty"`
	// Enum has words alone.
	Enum    []string `json:"enum,omitempty"`
	Minimum *int64   `json:"minimum,omitempty"`
	Maximum *int64   `json:"maximum,omitempty"`
	// Default is the one value that is taken for a field that is left out; nil where it
	// depends on something else.
	Default json.RawMessage `json:"default,omitempty"`

	Items      *Schema            `json:"items,omitempty"`
	MaxItems   *int64             `json:"maxItems,omitempty"`
	Properties map[string]*Schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	// Additional is what fields may be that Properties does not name: nil for anything.
	Additional *Additional `json:"additionalProperties,omitempty"`

	OneOf       []Reference        `json:"oneOf,omitempty"`
	Definitions map[string]*Schema `json:"definitions,omitempty"`
}

// Reference points to a definition of the same file.
type Reference struct {
	Ref string `json:"$ref"`
}

// The words of a type.
const (
	Object  = "object"
	Array   = "array"
	String  = "string"
	Integer = "integer"
	Number  = "number"
	Boolean = "boolean"
)

// Types is one word, written as such, or a list of several.
type Types []string

// MarshalJSON writes one word without brackets.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// UnmarshalJSON reads both forms.
func (t *Types) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) == nil {
		*t = Types{word}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// Additional is what further fields may be: of one Schema, or, without one, nothing.
type Additional struct{ Schema *Schema }

// MarshalJSON writes the schema, or false.
func (a Additional) MarshalJSON() ([]byte, error) {
	if a.Schema == nil {
		return []byte("false"), nil
	}
	return json.Marshal(a.Schema)
}

// UnmarshalJSON reads both forms.
func (a *Additional) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		return nil
	}
	return json.Unmarshal(data, &a.Schema)
}

// Element is what a list or a map has for items, at any depth; the schema itself where
// it is neither.
func (s *Schema) Element() *Schema {
	switch {
	case s.Items != nil:
		return s.Items.Element()
	case s.Additional != nil && s.Additional.Schema != nil:
		return s.Additional.Schema.Element()
	}
	return s
}

// Fields are the names of the fields of an object, or of the items of a list of them, in
// the order of the alphabet.
func (s *Schema) Fields() []string { return slices.Sorted(maps.Keys(s.Element().Properties)) }

// Field is one of them; nil when there is none of that name.
func (s *Schema) Field(name string) *Schema { return s.Element().Properties[name] }

// Requires says whether a document must have the field.
func (s *Schema) Requires(name string) bool { return slices.Contains(s.Element().Required, name) }
