// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// input is what files hold that a person names.
type input struct {
	// documents that are valid and whose kind and name occur once.
	documents []manifest.Declaration
	// problems of all others, each one line that starts with its place.
	problems []string
	// declared has the places of each kind and name.
	declared map[manifest.Ref][]spec.Position
	// taken are the files that were read: one that is named twice is one.
	taken []os.FileInfo
	// defaults are laid under each session.
	defaults *spec.SessionDefaults
}

// readInput reads files, directories and standard input (-). Only a command line
// that makes no sense is an error.
func (g *globals) readInput(paths []string) (*input, error) {
	in := &input{declared: map[manifest.Ref][]spec.Position{}}
	if settings, err := g.settings(); err == nil { // what is wrong with them is said where they are needed
		in.defaults = settings.Sessions
	}
	stdin := false
	for _, path := range paths {
		switch {
		case path != stdinArgument:
			in.path(path)
		case stdin:
			return nil, usagef("standard input (-) can be read only once")
		default:
			stdin = true
			in.stream(stdinName, g.in)
		}
	}
	in.dropDuplicates()
	return in, nil
}

func (in *input) problem(format string, args ...any) {
	in.problems = append(in.problems, fmt.Sprintf(format, args...))
}

func (in *input) path(path string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		in.problem("%s: the file does not exist", path)
	case err != nil:
		in.problem("%s: cannot be read: %v", path, errors.Unwrap(err))
	case info.IsDir():
		in.directory(path)
	default:
		in.file(path)
	}
}

// directory reads as a manifest root is read.
func (in *input) directory(path string) {
	reading := manifest.Read([]string{path})
	for _, root := range reading.Roots {
		if root.Access != manifest.Readable {
			in.problem("%s: cannot be read: %s", root.Path, root.Message)
		}
	}
	for _, unread := range reading.Unread {
		in.problem("%s", unread.Problem)
	}
	for _, file := range reading.Files {
		in.file(file.Path)
	}
}

func (in *input) file(path string) {
	f, err := os.Open(path)
	if err != nil {
		in.problem("%s: cannot be read: %v", path, errors.Unwrap(err))
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err == nil {
		if slices.ContainsFunc(in.taken, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			return
		}
		in.taken = append(in.taken, info)
	}
	in.stream(path, f)
}

// stream decodes one file. One byte more than may be read shows that it is too
// large.
func (in *input) stream(name string, r io.Reader) {
	data, err := io.ReadAll(io.LimitReader(r, spec.MaxFileBytes+1))
	if err != nil {
		in.problem("%s: cannot be read: %v", name, err)
		return
	}
	declarations, problems := manifest.Declarations(name, unlisted(data))
	for _, problem := range problems {
		in.problem("%s", problem)
	}
	for _, d := range declarations {
		d.Document = d.Under(in.defaults)
		for _, problem := range d.Problems {
			in.problem("%s", problem)
		}
		if d.Name != "" {
			in.declared[manifest.RefOf(&d.Document)] = append(in.declared[manifest.RefOf(&d.Document)], d.Position)
		}
		if len(d.Problems) == 0 {
			in.documents = append(in.documents, d)
		}
	}
}

// unlisted makes documents of a v1 List, which is what get -o yaml and -o json
// print of several sessions; anything else stays as it is.
func unlisted(data []byte) []byte {
	var list struct {
		metav1.TypeMeta
		Items []map[string]any
	}
	if err := yaml.Unmarshal(data, &list); err != nil || list.Kind != "List" || list.APIVersion != "v1" {
		return data
	}
	var documents [][]byte
	for _, item := range list.Items {
		document, err := yaml.Marshal(item)
		if err != nil {
			return data
		}
		documents = append(documents, document)
	}
	return bytes.Join(documents, []byte("---\n"))
}

// dropDuplicates leaves out every document of a name that is there twice: which
// one is meant is the person's to say.
func (in *input) dropDuplicates() {
	in.documents = slices.DeleteFunc(in.documents, func(d manifest.Declaration) bool {
		return len(in.declared[manifest.RefOf(&d.Document)]) > 1
	})
	for _, target := range sortedRefs(in.declared) {
		places := in.declared[target]
		for _, place := range places[1:] {
			in.problem("%s: metadata.name: %s is declared at %s already; none of them is applied", place, target, places[0])
		}
	}
}
