// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muxlet/muxlet/spec/lazyregexp"
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
	// ClassNames are the same for the client classes.
	ClassNames []string
}

// Document is one document of a file.
//
// +kubebuilder:object:generate=false
type Document struct {
	// Kind that it is, or is most likely meant to be: KindSession where nothing tells.
	Kind string
	// Name in metadata.name; empty when there is none or it cannot be told.
	Name string
	// Session, defaulted and valid; nil when there are Problems, or for another kind.
	// Its clientClassName is empty when neither it nor a command is given: the settings
	// say which class that is.
	Session *Session
	// Class, defaulted and valid; nil when there are Problems, or for another kind.
	Class *ClientClass
	// Position of the first key.
	Position
	// Problems of the document.
	Problems []Problem
	// EndLine is the last line with content, without the separator that follows.
	EndLine int

	// places of the fields that only the client class or the settings can judge, by path.
	places map[string]Position
	// said is what the document of a Session says by itself; nil when it does not decode.
	said *said
}

// Object is what a valid document declares; nil when there are Problems.
func (d *Document) Object() metav1.Object {
	switch {
	case d.Session != nil:
		return d.Session
	case d.Class != nil:
		return d.Class
	}
	return nil
}

// DecodeFile decodes the Sessions and ClientClasses of one manifest: one or several YAML
// documents, or JSON. It is strict (an unknown or duplicate key is a problem),
// and a bad document spoils no other one. file is used in positions alone.
func DecodeFile(file string, data []byte) Documents {
	chunks, problems := chunksOf(file, data)
	if problems != nil {
		names := scanNames(bytes.ReplaceAll(data, []byte{0}, nil))
		return Documents{Problems: problems, Names: names, ClassNames: names}
	}
	var docs Documents
	var sessions, classes nameList
	for _, c := range chunks {
		doc := decodeDocument(file, c)
		if doc == nil {
			continue
		}
		docs.Items = append(docs.Items, *doc)
		switch {
		case doc.Name == "":
			names := scanNames([]byte(c.text()))
			sessions.add(names...)
			classes.add(names...)
		case doc.Kind == KindClientClass:
			classes.add(doc.Name)
		default:
			sessions.add(doc.Name)
		}
	}
	docs.Names, docs.ClassNames = sessions.names, classes.names
	return docs
}

// nameList has each name once, in the order in which they came.
type nameList struct {
	names []string
	seen  map[string]bool
}

func (l *nameList) add(names ...string) {
	for _, name := range names {
		if l.seen[name] {
			continue
		}
		if l.seen == nil {
			l.seen = map[string]bool{}
		}
		l.seen[name] = true
		l.names = append(l.names, name)
	}
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

// decodeDocument decodes one document; nil for an empty one. Of one that does not
// parse, and of one without a name, it is not known what it may declare.
func decodeDocument(file string, c chunk) *Document {
	tree, problem := parse(file, c)
	if problem != nil {
		at := Position{File: file, Line: c.firstLine(), Column: 1}
		return &Document{Kind: KindSession, Position: at, EndLine: c.endLine(), Problems: []Problem{*problem}}
	}
	if tree == nil {
		return nil
	}
	doc := &Document{Kind: tree.kind(), Name: tree.text("metadata.name"), Position: tree.Position(""), EndLine: c.endLine()}
	tree.drop("status")
	if problem := tree.wrongKind(KindSession, KindClientClass); problem != nil {
		doc.Problems = []Problem{*problem}
		return doc
	}
	if doc.Kind == KindClientClass {
		doc.Class, doc.Problems = decodeClass(tree)
		return doc
	}
	doc.Session, doc.said, doc.Problems = decodeSession(tree)
	if doc.said != nil {
		doc.places = tree.placesForClass()
	}
	return doc
}

// kind that the document is, or is most likely meant to be.
func (t *Tree) kind() string {
	kind := t.text("kind")
	if kind == KindClientClass || nearest(kind, []string{KindSession, KindClientClass}) == KindClientClass {
		return KindClientClass
	}
	return KindSession
}

// decodeSession gives a defaulted and valid Session, or its problems, and what the
// document says unless it cannot be decoded.
func decodeSession(tree *Tree) (*Session, *said, []Problem) {
	var s Session
	if problems := tree.decode(GroupVersion.WithKind(KindSession), &s); len(problems) > 0 {
		return nil, nil, inOrder(problems)
	}
	keepDeclared(&s.ObjectMeta)
	SetDefaults(&s.Spec)
	problems := tree.Problems(Validate(&s))
	words := saying(tree, &s, problems)
	if len(problems) > 0 {
		return nil, words, problems
	}
	s.Namespace = Namespace
	return &s, words, nil
}

// decodeClass gives a defaulted and valid ClientClass, or its problems.
func decodeClass(tree *Tree) (*ClientClass, []Problem) {
	var c ClientClass
	if problems := tree.decode(GroupVersion.WithKind(KindClientClass), &c); len(problems) > 0 {
		return nil, inOrder(problems)
	}
	keepDeclared(&c.ObjectMeta)
	SetClassDefaults(&c.Spec)
	if problems := tree.Problems(ValidateClass(&c)); len(problems) > 0 {
		return nil, problems
	}
	return &c, nil
}

// keepDeclared drops the metadata that a served object has and a file does not
// decide, so that the output of get can be put into a file.
func keepDeclared(meta *metav1.ObjectMeta) {
	*meta = metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace, Labels: meta.Labels, Annotations: meta.Annotations}
}

// nameLine finds what may be the value of a key called name, in block style,
// in flow style and in JSON, at any depth.
var nameLine = lazyregexp.New(`(?:^|[\s{,\-?"'])name["']?\s*:\s*(?:[&!][^\s]*[ \t]+)*["']?([^\s"',{}\[\]#]+)`)

// scanNames finds every name in a text that does not parse.
func scanNames(text []byte) []string {
	var names []string
	seen := map[string]bool{}
	for _, m := range nameLine.Get().FindAllSubmatch(text, -1) {
		if name := string(m[1]); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
