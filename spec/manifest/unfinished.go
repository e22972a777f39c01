// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/muxlet/muxlet/spec"
)

// A file that somebody is writing holds the beginning of what it will hold, and
// a beginning may be a valid document: one without its last arguments, or
// without suspend: true. Taking it would replace a client twice. Its last
// version stays in force until the writing is over.
const (
	// writerPatience is how long a file that is open for writing may rest before
	// it is taken as it is: the writer may never close it.
	writerPatience = 10 * time.Second
	// cutPatience is how long a file that was cut short in place is waited for. A
	// program that opens it for each piece looks like a person who deletes the end.
	cutPatience = time.Second
	// keptText bounds the content that is kept to recognise a cut, in bytes.
	keptText = 64 << 10
)

// errUnfinished is the answer for a file that is being written and has no
// earlier version: a new one, or one in the place of another that was moved away.
var errUnfinished = errors.New("it is being written")

// version is the content of a file as it was taken last.
type version struct {
	id        fileID
	sum       [sha256.Size]byte
	documents spec.Documents
	// text of the file; nil above keptText.
	text []byte
}

func (r *Reader) version(path string, id fileID, data []byte, last *version) version {
	v := version{id: id, sum: sha256.Sum256(data)}
	if len(data) <= keptText {
		v.text = data
	}
	if last != nil && last.sum == v.sum {
		v.documents = last.documents
		return v
	}
	v.documents = spec.DecodeFile(path, data).Under(r.under)
	return v
}

// wait is a file that is not taken yet.
type wait struct {
	stamp
	// since is when it was first seen with that stamp.
	since time.Time
}

// unfinished tells whether the content may be a part of what is being written.
// Each change of the file begins the wait anew.
func (r *Reader) unfinished(path string, c content, last *version) bool {
	patience := time.Duration(0)
	switch {
	case c.writing:
		patience = writerPatience
	case last != nil && last.cutShort(c):
		patience = cutPatience
	default:
		return false
	}
	now := r.Clock.Now()
	w, waits := r.waiting[path]
	if !waits || w.stamp != c.stamp {
		w = wait{stamp: c.stamp, since: now}
	}
	r.next.waiting[path] = w
	return now.Sub(w.since) < patience
}

// cutShort tells whether the content is a mere beginning of this version, in
// the same file.
func (v *version) cutShort(c content) bool {
	return v.id == c.fileID && len(c.data) < len(v.text) && bytes.HasPrefix(v.text, c.data) &&
		len(bytes.TrimSpace(v.text[len(c.data):])) > 0
}

// last is the version of a path that was taken last, nil when it is not known.
func (r *Reader) last(path string) *version {
	if d, found := r.decoded[path]; found {
		return &d.version
	}
	if v, found := r.recent[path]; found {
		return &v
	}
	return nil
}
