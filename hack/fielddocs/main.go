// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// fielddocs writes the JSON Schemas of config/schema, of which `muxlet explain` speaks
// too, into a folder. What a field is comes from its Go type, what it means from its
// comment, and its default from the code; a comment that says something else than the
// code is an error. It is run in the folder of the module, by hack/update-generated.sh.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/config/schema"
	"github.com/muxlet/muxlet/spec"
)

const module = "github.com/muxlet/muxlet"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fielddocs FOLDER")
		os.Exit(2)
	}
	if err := run(".", os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

// run reads the module in root and writes into folder.
func run(root, folder string) error {
	files, err := build(root)
	if err != nil {
		return err
	}
	for name, s := range files {
		s.Draft, s.Comment = "http://json-schema.org/draft-07/schema#", "Made by hack/update-generated.sh of the Go docs. Edit those."
		data, err := encode(s)
		if err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func encode(s *schema.Schema) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(s)
	return out.Bytes(), err
}

// build makes the schema of each file.
func build(root string) (map[string]*schema.Schema, error) {
	b := &builder{
		source:   &source{root: root, module: module, types: map[string]*typeDocs{}, read: map[string]bool{}},
		defaults: codeDefaults(),
	}
	kinds := map[string]schema.Kind{}
	for _, kind := range schema.Kinds() {
		kinds[kind.Kind] = kind
	}
	session := b.apiObject(kinds[spec.KindSession], reflect.TypeFor[spec.Session]())
	class := b.apiObject(kinds[spec.KindClientClass], reflect.TypeFor[spec.ClientClass]())
	files := map[string]*schema.Schema{
		schema.ManifestFile: {
			Title:       "A document of a muxlet manifest",
			OneOf:       []schema.Reference{{Ref: "#/definitions/" + session.Title}, {Ref: "#/definitions/" + class.Title}},
			Definitions: map[string]*schema.Schema{session.Title: session, class.Title: class},
		},
		schema.TurnFile: b.apiObject(kinds[spec.KindTurn], reflect.TypeFor[spec.Turn]()),
		schema.SettingsFile: b.root(kinds[config.GroupVersionKind.Kind], reflect.TypeFor[config.MuxletConfiguration](),
			place{path: "settings", partial: true}),
	}
	if b.err() != nil {
		return nil, errors.Join(errors.New("the Go docs of the fields do not say what they should"), b.err())
	}
	return files, nil
}

// codeDefaults are what the code fills in.
func codeDefaults() map[reflect.Type]defaults {
	out := map[reflect.Type]defaults{}
	for _, v := range []reflect.Value{
		filledIn(spec.SetDefaults), filledIn(spec.SetClassDefaults), reflect.ValueOf(config.Defaults()),
	} {
		out[v.Type()] = defaults{}
		out[v.Type()].collect(v, "")
	}
	return out
}

// filledIn is what a function makes of a value in which nobody has written anything.
func filledIn[T any](fillIn func(*T)) reflect.Value {
	v := new(T)
	fill(reflect.ValueOf(v).Elem())
	fillIn(v)
	return reflect.ValueOf(v).Elem()
}
