// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"reflect"
	"strings"
)

// maxListed is the largest number of fields that a message lists.
const maxListed = 20

// fields gives the JSON names and types of a struct's fields in their order,
// embedded ones in place.
func fields(t reflect.Type) ([]string, map[string]reflect.Type) {
	var names []string
	types := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			inner, innerTypes := fields(f.Type)
			names = append(names, inner...)
			for _, n := range inner {
				types[n] = innerTypes[n]
			}
		case name != "" && name != "-":
			names = append(names, name)
			types[name] = f.Type
		}
	}
	return names, types
}

func fieldNames(t reflect.Type) []string {
	names, _ := fields(t)
	return names
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	_, types := fields(t)
	f, known := types[name]
	return f, known
}

// nearestField is the field of t that a person most likely meant by key: one of
// the same level, else one of that very name one level down, such as
// client.command.
func nearestField(t reflect.Type, key string) string {
	names, types := fields(t)
	if name := nearest(key, names); name != "" {
		return name
	}
	for _, name := range names {
		f := types[name]
		if f.Kind() != reflect.Struct || decodesItself(f) {
			continue
		}
		if _, known := fieldOf(f, key); known {
			return name + "." + key
		}
	}
	return ""
}

// someOf names the first fields for a sentence.
func someOf(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " …"
	}
	return strings.Join(names, ", ")
}
