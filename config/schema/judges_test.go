// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/spec"
)

// validator of one of the files.
func validator(t testing.TB, file string) *jsonschema.Schema {
	t.Helper()
	data, err := File(file)
	require.NoError(t, err)
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource(file, parsed))
	compiled, err := compiler.Compile(file)
	require.NoError(t, err, "the file is a schema of its draft")
	return compiled
}

// documents of a YAML text, as JSON has them.
func documents(t testing.TB, text string) []any {
	t.Helper()
	var out []any
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		if document != nil {
			out = append(out, asJSON(t, document))
		}
	}
}

func asJSON(t testing.TB, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return out
}

// fileFor is the schema that an editor would be told to use for a document.
func fileFor(document any) string {
	fields, _ := document.(map[string]any)
	version, _ := fields["apiVersion"].(string)
	if strings.HasPrefix(version, config.GroupVersionKind.Group) {
		return SettingsFile
	}
	return ManifestFile
}

// fieldsOf a document that the strict decoder has something against; "" for the document.
func fieldsOf(t testing.TB, document map[string]any) []string {
	t.Helper()
	data, err := json.Marshal(document)
	require.NoError(t, err)
	var wrong []string
	if fileFor(document) == SettingsFile || document["kind"] == config.GroupVersionKind.Kind {
		settings := config.Defaults()
		_, problems := spec.DecodeStrict("f", data, config.GroupVersionKind, &settings)
		for _, p := range problems {
			wrong = append(wrong, p.Path)
		}
		for _, err := range config.Validate(&settings) {
			wrong = append(wrong, err.Field)
		}
		return wrong
	}
	// What a session lacks the settings may give.
	below := spec.NewSessionDefaults(&spec.SessionSpec{Workspace: spec.WorkspaceSpec{Directory: "/x"}}, "")
	decoded := spec.DecodeFile("f", data).Under(below)
	require.Empty(t, decoded.Problems)
	for _, item := range decoded.Items {
		for _, p := range item.Problems {
			wrong = append(wrong, p.Path)
		}
	}
	return wrong
}

// root is a kind that a person writes into a file, with a document that has no more than
// it must.
type root struct {
	kind     Kind
	schema   *Schema
	compiled *jsonschema.Schema
}

func roots(t *testing.T) []root {
	t.Helper()
	var all []root
	for _, kind := range Kinds() {
		if kind.file == TurnFile {
			continue
		}
		s, err := kind.Schema()
		require.NoError(t, err)
		all = append(all, root{kind, s, validator(t, kind.file)})
	}
	return all
}

// smallest value that a schema accepts.
func smallest(s *Schema) any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type[0] == Object:
		fields := map[string]any{}
		for _, name := range s.Required {
			fields[name] = smallest(s.Properties[name])
		}
		return fields
	case s.Type[0] == Array:
		return []any{}
	case s.Type[0] == Boolean:
		return true
	case s.Type[0] == Integer && s.Minimum != nil:
		return *s.Minimum
	case s.Type[0] == Integer:
		return 1
	}
	for _, word := range words {
		if s.accepts(word) {
			return word
		}
	}
	return "x"
}

// put gives the document with a value at a path, such as spec.client.env[].name, and the
// smallest objects on the way to it.
func (r root) put(path string, value any) map[string]any {
	document, _ := smallest(r.schema).(map[string]any)
	put(document, r.schema, strings.Split(path, "."), value)
	return document
}

func put(object map[string]any, s *Schema, path []string, value any) {
	name, inList := strings.CutSuffix(path[0], "[]")
	next := s.Field(name)
	if len(path) == 1 {
		if inList {
			value = []any{value}
		}
		object[name] = value
		return
	}
	inner, _ := smallest(next.Element()).(map[string]any)
	if there, ok := object[name].(map[string]any); ok {
		inner = maps.Clone(there)
	}
	put(inner, next, path[1:], value)
	object[name] = inner
	if inList {
		object[name] = []any{inner}
	}
}

// each calls what with every field that a person can write, and its path.
func (r root) each(what func(path string, s *Schema)) {
	var walk func(prefix string, s *Schema)
	walk = func(prefix string, s *Schema) {
		for _, name := range s.Fields() {
			field := s.Field(name)
			if prefix == "" && name == "status" || strings.Contains(field.Description, "in a file it is passed over") {
				continue
			}
			path := prefix + name
			what(path, field)
			if field.Items != nil {
				path += "[]"
				what(path, field.Items)
			}
			walk(path+".", field)
		}
	}
	walk("", r.schema)
}

// inProblems is a path as the decoder writes it.
func inProblems(path string) string { return strings.ReplaceAll(path, "[]", "[0]") }
