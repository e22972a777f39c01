// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"sync"
)

//go:embed classes/*.yaml
var builtInFiles embed.FS

// BuiltInClasses are the client classes that come with muxlet, defaulted, in the
// order of their names. They belong to the caller.
func BuiltInClasses() []ClientClass {
	classes := builtIn()
	out := make([]ClientClass, 0, len(classes))
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		out = append(out, *classes[name].DeepCopy())
	}
	return out
}

// builtIn are the same by name; they are shared and must not be changed.
var builtIn = sync.OnceValue(func() map[string]*ClientClass {
	classes := map[string]*ClientClass{}
	for _, name := range []string{ClassExec, ClassClaude, ClassCodex} {
		class, err := decodeBuiltIn(name)
		if err != nil {
			// The files are part of the program, and a test decodes them.
			panic(err)
		}
		classes[name] = class
	}
	return classes
})

func decodeBuiltIn(name string) (*ClientClass, error) {
	file := "classes/" + name + ".yaml"
	text, err := builtInFiles.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read built-in class %s: %w", name, err)
	}
	var class ClientClass
	if _, problems := DecodeStrict(file, text, GroupVersion.WithKind(KindClientClass), &class); len(problems) > 0 {
		return nil, fmt.Errorf("decode built-in class %s: %w", name, problems[0])
	}
	SetClassDefaults(&class.Spec)
	class.Status.BuiltIn = true
	return &class, nil
}

// IsBuiltInClass says whether a class of that name comes with muxlet.
func IsBuiltInClass(name string) bool { return builtIn()[name] != nil }

// ResolveClass gives the class of a name: the declared one, else the one that is
// built in, else nil. It is shared and must not be changed.
func ResolveClass(name string, declared map[string]*ClientClass) *ClientClass {
	if class := declared[name]; class != nil {
		return class
	}
	return builtIn()[name]
}

// ClassNames are the names of all classes that there are, sorted.
func ClassNames(declared map[string]*ClientClass) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(declared)), maps.Keys(builtIn()))
	slices.Sort(names)
	return slices.Compact(names)
}
