// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"

	"github.com/muxlet/muxlet/spec"
)

// Access says how far a manifest root could be read.
type Access string

// The kinds of access. The zero value means that nobody looked.
const (
	AccessUnknown Access = ""
	// Readable: the root was listed, or read if it is a file. Parts below it may
	// still be in Reading.Unread.
	Readable Access = "Readable"
	// Missing: the root provably does not exist.
	Missing Access = "Missing"
	// Unreadable: the root exists, or may exist, and could not be read.
	Unreadable Access = "Unreadable"
)

// Reading is what the manifest roots held at one moment. It is plain data: a
// test may make one by hand.
type Reading struct {
	// Roots in the order in which they were given.
	Roots []Root
	// Files that were read, each once, whatever number of paths lead to it.
	Files []File
	// Unread are the files and directories below readable roots that are there
	// and could not be read.
	Unread []Unread
	// Special are FIFOs, sockets, devices and directories that have the name of a
	// manifest. What is in such a directory is read.
	Special []Unread
	// Unfinished says that a file is being written: another reading soon may give
	// another answer, and no notice may come when the writing ends.
	Unfinished bool
	// Watches are the directories in which a change can change the next reading.
	Watches []Watch
}

// Root is one manifest root.
type Root struct {
	// Path as it was given, cleaned.
	Path   string
	Access Access
	// Device is st_dev of the root; 0 unless it is Readable.
	Device uint64
	// Documents below the root. A damaged file and a part that could not be read
	// count as one each, since they may hold something. 0 means empty.
	Documents int
	// Message says why the root is not Readable.
	Message string
}

// File is a manifest file that was read.
type File struct {
	// Path below the root, as it was found. It is stable from one reading to the
	// next as long as nothing is renamed.
	Path string
	spec.Documents
}

// Unread is a file or directory that could not be read.
type Unread struct {
	Path    string
	Problem spec.Problem
	// Passing is set for a file that is being written for the first time: it will
	// be read as soon as that is over.
	Passing bool
}

// Watch is a directory to be watched.
type Watch struct {
	Dir string
	// Names that matter in it; nil for all that may be manifests or directories.
	Names []string

	id fileID
	// all is set for a directory of the tree itself, where every name matters
	// and Names adds hidden ones.
	all bool
}

// documents counts what a file may declare: a damaged file may declare
// something.
func documents(d spec.Documents) int {
	return len(d.Items) + len(d.Problems)
}

// problemAt makes a problem of a file or a directory as a whole.
func problemAt(path, format string, args ...any) spec.Problem {
	return spec.Problem{Position: spec.Position{File: path}, Message: fmt.Sprintf(format, args...)}
}
