// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/config/schema"
)

// builder makes schemas of Go types. What the comments lack, and where they say something
// else than the code, is collected.
type builder struct {
	source *source
	// defaults by the type in which they are filled in.
	defaults map[reflect.Type]defaults
	errs     []error
}

// place is where in a document a type stands.
type place struct {
	// path for a person.
	path string
	// base has the defaults, and from is the path from there.
	base defaults
	from string
	// served is below a status: told by the API, and wanted of nobody.
	served bool
	// partial is where nothing has to be given, such as in the settings.
	partial bool
}

func (p place) child(name string) place {
	p.path += "." + name
	p.from += "." + name
	return p
}

// item of a list has a form of its own, whatever the list is in.
func (p place) item() place {
	p.path += "[]"
	p.from += "[]"
	p.partial = false
	return p
}

func (b *builder) complain(at place, format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf("%s: %w", at.path, fmt.Errorf(format, args...)))
}

func (b *builder) docsOf(t reflect.Type) *typeDocs {
	docs, err := b.source.of(t)
	if err != nil {
		b.errs = append(b.errs, err)
		return &typeDocs{}
	}
	return docs
}

// tagOf is the name of a field in a document, and whether the field may be left out.
func tagOf(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || options == "inline" {
		return "", true
	}
	return name, strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
}

// value is the schema of a type.
func (b *builder) value(t reflect.Type, at place) *schema.Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return &schema.Schema{Type: schema.Types{schema.String}, Format: "date-time"}
	case t == reflect.TypeFor[metav1.Duration]():
		return &schema.Schema{Type: schema.Types{schema.String}, Pattern: durationPattern}
	case t == reflect.TypeFor[resource.Quantity]():
		return &schema.Schema{Type: schema.Types{schema.String, schema.Number}, Pattern: quantityPattern}
	case t == reflect.TypeFor[metav1.Condition]():
		return condition(at.served)
	}
	switch t.Kind() {
	case reflect.Struct:
		return b.object(t, at)
	case reflect.Slice:
		return &schema.Schema{Type: schema.Types{schema.Array}, Items: b.value(t.Elem(), at.item())}
	case reflect.Map:
		return &schema.Schema{Type: schema.Types{schema.Object}, Additional: &schema.Additional{Schema: b.value(t.Elem(), at.item())}}
	case reflect.Bool:
		return &schema.Schema{Type: schema.Types{schema.Boolean}}
	case reflect.String:
		s := &schema.Schema{Type: schema.Types{schema.String}}
		for _, v := range b.docsOf(t).values {
			s.Enum = append(s.Enum, v.value)
		}
		return s
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &schema.Schema{Type: schema.Types{schema.Integer}}
	}
	b.complain(at, "a field of type %s is not known here", t)
	return &schema.Schema{}
}

// The forms of metav1.Duration, as time.ParseDuration reads it, without a sign, and of
// resource.Quantity.
const (
	durationPattern = `^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*)$`
	quantityPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$`
)

// object is the schema of a struct.
func (b *builder) object(t reflect.Type, at place) *schema.Schema {
	if own, known := b.defaults[t]; known {
		at.base, at.from = own, ""
	}
	s := &schema.Schema{Type: schema.Types{schema.Object}, Properties: map[string]*schema.Schema{}}
	if !at.served {
		s.Additional = &schema.Additional{}
	}
	docs := b.docsOf(t)
	for f := range t.Fields() {
		name, optional := tagOf(f)
		if name == "" {
			continue
		}
		comment := docs.fields[f.Name]
		s.Properties[name] = b.field(f, comment, at.child(name))
		if _, marked := comment.markers["optional"]; marked {
			optional = true
		}
		if _, marked := comment.markers["required"]; marked {
			optional = false
		}
		if !optional && !at.served && !at.partial {
			s.Required = append(s.Required, name)
		}
	}
	slices.Sort(s.Required)
	return s
}

// field is the schema of one field with all that its comment says.
func (b *builder) field(f reflect.StructField, c comment, at place) *schema.Schema {
	name, _ := tagOf(f)
	if c.text == "" {
		b.complain(at, "it has no comment: say what it means")
	}
	s := b.value(f.Type, at)
	text := called(paragraphs(c.text), f.Name, name)
	element := elementOf(f.Type)
	typed := b.docsOf(element)
	s.Description = text
	switch {
	case len(typed.values) > 0:
		s.Description += valuesText(typed.values)
	case element.Kind() == reflect.Struct && s.Element() != s:
		s.Description = both(text, called(paragraphs(typed.doc.text), element.Name(), "Each"))
	case element.Kind() == reflect.Struct:
		s.Description = both(text, called(paragraphs(typed.doc.text), element.Name(), name))
	}
	b.marked(s, c.markers, at)
	if !at.served {
		b.withDefault(s, text, at, f.Type)
		b.withLimits(s, text, at, f.Type)
	}
	return s
}

// elementOf is what a list, a map or a pointer has.
func elementOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

func (b *builder) withDefault(s *schema.Schema, text string, at place, t reflect.Type) {
	if at.base == nil || elementOf(t).Kind() == reflect.Struct && !isWord(elementOf(t)) {
		return
	}
	value, err := said(text, at.base[at.from])
	if err != nil {
		b.complain(at, "%w", err)
	}
	s.Default = value
}

// withLimits wants bounds of each number, and has them checked where JSON Schema can.
func (b *builder) withLimits(s *schema.Schema, text string, at place, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	number := t.Kind() == reflect.Int || t.Kind() == reflect.Int32 || t.Kind() == reflect.Int64
	if t == reflect.TypeFor[metav1.Time]() || !isWord(t) || !number && t.Kind() != reflect.Struct {
		return
	}
	low, high, ok := limits(text)
	if !ok {
		b.complain(at, "its comment has no bounds: write them as in 1 to 3600")
		return
	}
	if number {
		s.Minimum, s.Maximum = b.whole(low, at), b.whole(high, at)
	}
}

func (b *builder) whole(word string, at place) *int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		b.complain(at, "the bound %q is no number", word)
	}
	return &n
}

// The markers that are known: those of controller-gen, and one for an object of a type of
// which some fields, by their paths, cannot be given where it stands.
const (
	markerWithout   = "muxlet:without"
	markerItems     = "kubebuilder:validation:items:"
	markerPattern   = "kubebuilder:validation:Pattern"
	markerMaxLength = "kubebuilder:validation:MaxLength"
	markerMaxItems  = "kubebuilder:validation:MaxItems"
	markerEnum      = "kubebuilder:validation:Enum"
)

// marked lays the markers of a comment over a schema.
func (b *builder) marked(s *schema.Schema, markers map[string]string, at place) {
	inner := map[string]string{}
	for name, value := range markers {
		if rest, ok := strings.CutPrefix(name, markerItems); ok {
			inner["kubebuilder:validation:"+rest] = value
			continue
		}
		switch name {
		case markerPattern:
			s.Pattern = value
		case markerMaxLength:
			s.MaxLength = b.whole(value, at)
		case markerMaxItems:
			s.MaxItems = b.whole(value, at)
		case markerEnum:
			s.Enum = strings.Split(value, ";")
		case markerWithout:
			for path := range strings.SplitSeq(value, ";") {
				b.without(s, strings.Split(path, "."), at)
			}
		case "optional", "required":
		default:
			b.complain(at, "the marker +%s is not known here", name)
		}
	}
	switch {
	case len(inner) == 0:
	case s.Items == nil:
		b.complain(at, "a marker for items stands at what is no list")
	default:
		b.marked(s.Items, inner, at)
	}
}

// without removes a field from an object.
func (b *builder) without(s *schema.Schema, path []string, at place) {
	for ; s != nil && len(path) > 1; path = path[1:] {
		s = s.Properties[path[0]]
	}
	if s == nil || s.Properties[path[0]] == nil {
		b.complain(at, "the marker +%s names %s, which there is not", markerWithout, path[0])
		return
	}
	delete(s.Properties, path[0])
}

func (b *builder) err() error { return errors.Join(b.errs...) }
