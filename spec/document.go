// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"fmt"
	"regexp"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MaxFileBytes is the largest manifest that is decoded.
const MaxFileBytes = 1 << 20

// MaxDocuments is the largest number of documents in one file.
const MaxDocuments = 10_000

// Documents is what one file declares.
//
// +kubebuilder:object:generate=false
type Documents struct {
	// Items in the order of the file, good ones and bad ones. Empty documents
	// are left out.
	Items []Document
	// Problems of the file itself. There are no Items then.
	Problems []Problem
	// Names of every session that occurs in the file, as far as can be told also
	// where it does not parse. There may be too many of them, never too few: a
	// name in here guards its session against removal.
	Names []string
}

// Document is one document of a file.
//
// +kubebuilder:object:generate=false
type Document struct {
	// Name in metadata.name; empty when there is none or it cannot be told.
	Name string
	// Session, defaulted and valid; nil when there are Problems.
	Session *Session
	// Position of the first key.
	Position
	// Problems of the document.
	Problems []Problem
	// EndLine is the last line with content, without the separator that follows.
	EndLine int
}

// DecodeFile decodes the Sessions of one manifest: one or several YAML
// documents, or JSON. It is strict (an unknown or duplicate key is a problem),
// and a bad document spoils no other one. file is used in positions alone.
func DecodeFile(file string, data []byte) Documents {
	chunks, problems := chunksOf(file, data)
	if problems != nil {
		return Documents{Problems: problems, Names: scanNames(bytes.ReplaceAll(data, []byte{0}, nil))}
	}
	var docs Documents
	seen := map[string]bool{}
	for _, c := range chunks {
		doc, names := decodeDocument(file, c)
		if doc == nil {
			continue
		}
		docs.Items = append(docs.Items, *doc)
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				docs.Names = append(docs.Names, name)
			}
		}
	}
	return docs
}

// DecodeStrict decodes a file of exactly one document of the given kind into
// the struct that into points to, as strictly as DecodeFile. Fields that the
// file does not have keep their value. The Tree tells where each field is, and
// is empty for an empty file.
func DecodeStrict(file string, data []byte, gvk schema.GroupVersionKind, into any) (*Tree, []Problem) {
	chunks, problems := chunksOf(file, data)
	if problems != nil {
		return &Tree{file: file}, problems
	}
	var found *Tree
	for _, c := range chunks {
		tree, problem := parse(file, c)
		switch {
		case problem != nil:
			return &Tree{file: file}, []Problem{*problem}
		case tree == nil:
		case found != nil:
			at := Position{File: file, Line: tree.root.Line, Column: tree.root.Column}
			return found, []Problem{{Position: at, Message: "a second document; this file may hold only one"}}
		default:
			found = tree
		}
	}
	if found == nil {
		return &Tree{file: file}, nil
	}
	return found, inOrder(found.decode(gvk, into))
}

// chunksOf checks what holds for a file as a whole and splits it.
func chunksOf(file string, data []byte) ([]chunk, []Problem) {
	whole := func(format string, args ...any) []Problem {
		return []Problem{{Position: Position{File: file}, Message: fmt.Sprintf(format, args...)}}
	}
	if len(data) > MaxFileBytes {
		return nil, whole("the file has %d bytes; at most %d are read: split it", len(data), MaxFileBytes)
	}
	if bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF}) {
		return nil, whole("the file is UTF-16; save it as UTF-8")
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return nil, bad(file, data, i, "a NUL byte; this is no text file, or it was damaged while it was written")
	}
	if i := firstInvalid(data); i >= 0 {
		return nil, bad(file, data, i, "a byte that is not UTF-8; save the file as UTF-8")
	}
	chunks := split(data)
	if len(chunks) > MaxDocuments {
		return nil, whole("the file has %d documents; at most %d are read: split it", len(chunks), MaxDocuments)
	}
	return chunks, nil
}

// bad makes the problem of the byte at offset.
func bad(file string, data []byte, offset int, message string) []Problem {
	before := data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	at := Position{File: file, Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(before[start:]) + 1}
	return []Problem{{Position: at, Message: message}}
}

// firstInvalid returns the offset of the first byte that is not UTF-8, or -1.
func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// decodeDocument decodes one Session; nil for an empty document. The names are
// those that the document may declare.
func decodeDocument(file string, c chunk) (*Document, []string) {
	tree, problem := parse(file, c)
	if problem != nil {
		at := Position{File: file, Line: c.firstLine(), Column: 1}
		return &Document{Position: at, EndLine: c.endLine(), Problems: []Problem{*problem}}, scanNames([]byte(c.text()))
	}
	if tree == nil {
		return nil, nil
	}
	doc := &Document{Name: tree.text("metadata.name"), Position: tree.Position(""), EndLine: c.endLine()}
	doc.Session, doc.Problems = decodeSession(tree)
	if doc.Name == "" {
		return doc, scanNames([]byte(c.text()))
	}
	return doc, []string{doc.Name}
}

// decodeSession gives a defaulted and valid Session, or its problems.
func decodeSession(tree *Tree) (*Session, []Problem) {
	var s Session
	tree.drop("status")
	if problems := tree.decode(GroupVersion.WithKind(KindSession), &s); len(problems) > 0 {
		return nil, inOrder(problems)
	}
	keepDeclared(&s)
	SetDefaults(&s.Spec)
	if problems := tree.Problems(Validate(&s)); len(problems) > 0 {
		return nil, problems
	}
	s.Namespace = Namespace
	return &s, nil
}

// keepDeclared drops the metadata that a served object has and a file does not
// decide, so that the output of get can be put into a file.
func keepDeclared(s *Session) {
	meta := s.ObjectMeta
	s.ObjectMeta.Reset()
	s.Name, s.Namespace = meta.Name, meta.Namespace
	s.Labels, s.Annotations = meta.Labels, meta.Annotations
}

// nameLine finds what may be the value of a key called name, in block style,
// in flow style and in JSON, at any depth.
var nameLine = regexp.MustCompile(`(?:^|[\s{,\-?"'])name["']?\s*:\s*(?:[&!][^\s]*[ \t]+)*["']?([^\s"',{}\[\]#]+)`)

// scanNames finds every name in a text that does not parse.
func scanNames(text []byte) []string {
	var names []string
	seen := map[string]bool{}
	for _, m := range nameLine.FindAllSubmatch(text, -1) {
		if name := string(m[1]); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
