// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"slices"

	"github.com/muxlet/muxlet/spec"
)

// Declaration is one document as a person wrote it.
type Declaration struct {
	spec.Document
	// Text of the document alone: without the separators around it and without a
	// byte order mark, with its comments.
	Text []byte
}

// Declarations decodes a file as spec.DecodeFile does and keeps the text of each
// document. There are Problems of the file, or Declarations. file is used in
// positions alone.
func Declarations(file string, data []byte) ([]Declaration, []spec.Problem) {
	decoded := spec.DecodeFile(file, data)
	if len(decoded.Problems) > 0 {
		return nil, decoded.Problems
	}
	declarations := make([]Declaration, 0, len(decoded.Items))
	parts, first := partsOf(data)
	for _, doc := range decoded.Items {
		for len(first) > 1 && first[1] <= doc.Line {
			parts, first = parts[1:], first[1:]
		}
		at := regionOf(data, parts[0])
		declarations = append(declarations, Declaration{doc, bytes.Clone(at.text(data))})
	}
	return declarations, nil
}

// region is a part without the separators: what a person means by a document.
type region struct {
	part
	// glued: the document begins on the line of its separator.
	glued bool
}

// regionOf a part of a file.
func regionOf(data []byte, p part) region {
	r := region{part: p}
	first := data[p.start : p.start+lineLength(data[p.start:p.end])]
	if isSeparator(first, "---") {
		rest := bytes.TrimSpace(first[bytes.Index(first, []byte("---"))+len("---"):])
		if len(rest) == 0 || rest[0] == '#' {
			r.start += len(first)
		} else {
			r.start += bytes.Index(first, rest)
			r.glued = true
		}
	}
	last := bytes.TrimRight(data[r.start:r.end], "\r\n")
	line := bytes.LastIndexAny(last, "\r\n") + 1
	if isSeparator(last[line:], "...") {
		r.end = r.start + line
	}
	return r
}

func (r region) text(data []byte) []byte { return data[r.start:r.end] }

// with gives the file with another text in the region.
func (r region) with(data, text []byte, eol string) []byte {
	before, after := data[:r.start], data[r.end:]
	text = bytes.TrimPrefix(text, byteOrderMark)
	if r.glued {
		before = slices.Concat(bytes.TrimRight(before, " \t"), []byte(eol))
	}
	if len(after) > 0 && !endsLine(text) {
		text = slices.Concat(text, []byte(eol))
	}
	return slices.Concat(before, text, after)
}

func endsLine(text []byte) bool {
	return len(text) == 0 || bytes.HasSuffix(text, []byte("\n")) || bytes.HasSuffix(text, []byte("\r"))
}

// lineEndOf is how the lines of the first text that has any end: as its first one
// does.
func lineEndOf(texts ...[]byte) string {
	for _, text := range texts {
		first := text[:lineLength(text)]
		for _, eol := range []string{"\r\n", "\n", "\r"} {
			if bytes.HasSuffix(first, []byte(eol)) {
				return eol
			}
		}
	}
	return "\n"
}

// withLineEnd gives all lines of a text one end.
func withLineEnd(text []byte, eol string) []byte {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\n"), []byte(eol))
}
