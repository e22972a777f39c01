// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// source is what the Go source of a module says of its types.
type source struct {
	// root folder of the module that is called so.
	root, module string
	types        map[string]*typeDocs
	read         map[string]bool
}

// typeDocs is what stands at one type.
type typeDocs struct {
	doc    comment
	fields map[string]comment
	// values are the constants of the type, in the order of the source.
	values []constant
}

type constant struct {
	name, value string
	doc         comment
}

// comment is a comment without its marks, the markers of it (+kubebuilder:…, +optional)
// apart.
type comment struct {
	text    string
	markers map[string]string
}

// of gives what stands at a type of the module; empty for any other.
func (s *source) of(t reflect.Type) (*typeDocs, error) {
	path := t.PkgPath()
	if folder, ours := strings.CutPrefix(path, s.module); ours && !s.read[path] {
		if err := s.readPackage(path, filepath.Join(s.root, folder)); err != nil {
			return nil, err
		}
		s.read[path] = true
	}
	if docs := s.types[path+"."+t.Name()]; docs != nil {
		return docs, nil
	}
	return &typeDocs{}, nil
}

func (s *source) readPackage(path, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("read %s: %w", folder, fs.ErrNotExist)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
		for _, decl := range file.Decls {
			if group, ok := decl.(*ast.GenDecl); ok {
				s.group(path, group)
			}
		}
	}
	return nil
}

// group takes in a declaration of types or constants.
func (s *source) group(path string, group *ast.GenDecl) {
	for _, one := range group.Specs {
		switch one := one.(type) {
		case *ast.TypeSpec:
			doc := one.Doc
			if doc == nil {
				doc = group.Doc
			}
			docs := s.docsOf(path + "." + one.Name.Name)
			docs.doc = commentOf(doc)
			if body, ok := one.Type.(*ast.StructType); ok {
				docs.fields = fieldComments(body)
			}
		case *ast.ValueSpec:
			if group.Tok == token.CONST {
				s.constant(path, one)
			}
		}
	}
}

func (s *source) docsOf(name string) *typeDocs {
	if s.types[name] == nil {
		s.types[name] = &typeDocs{}
	}
	return s.types[name]
}

// constant takes in one that is a word of a type.
func (s *source) constant(path string, v *ast.ValueSpec) {
	named, ok := v.Type.(*ast.Ident)
	if !ok {
		return
	}
	for i, name := range v.Names {
		if i >= len(v.Values) {
			return
		}
		literal, ok := v.Values[i].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		if value, err := strconv.Unquote(literal.Value); err == nil {
			docs := s.docsOf(path + "." + named.Name)
			docs.values = append(docs.values, constant{name: name.Name, value: value, doc: commentOf(v.Doc)})
		}
	}
}

func fieldComments(body *ast.StructType) map[string]comment {
	fields := map[string]comment{}
	for _, f := range body.Fields.List {
		for _, name := range f.Names {
			fields[name.Name] = commentOf(f.Doc)
		}
	}
	return fields
}

// commentOf sets the markers of a comment apart.
func commentOf(group *ast.CommentGroup) comment {
	c := comment{markers: map[string]string{}}
	if group == nil {
		return c
	}
	var text []string
	for line := range strings.Lines(group.Text()) {
		line = strings.TrimSuffix(line, "\n")
		if marker, ok := strings.CutPrefix(line, "+"); ok {
			name, value, _ := strings.Cut(marker, "=")
			c.markers[name] = strings.Trim(value, "`")
			continue
		}
		text = append(text, line)
	}
	c.text = strings.TrimSpace(strings.Join(text, "\n"))
	return c
}
