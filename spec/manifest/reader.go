// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/spec"
)

// Reader reads manifest roots. It remembers the files that it decoded, so that
// reading an unchanged tree again costs one stat a file. The zero value is ready
// to use; a Reader is not safe for concurrent use.
type Reader struct {
	// Clock tells how old a file's last change is. A file changed less than two
	// seconds ago is read again, since another change might not show. Default:
	// the real clock.
	Clock clock.PassiveClock
	// Defaults are laid under each session; nil for none. They may be others at each
	// reading.
	Defaults *spec.SessionDefaults

	// under are the Defaults by which what is remembered was decoded.
	under *spec.SessionDefaults
	memories
	// next is what the reading in progress leaves to the one after it.
	next memories
	// The most that is read in all; a test may need less.
	mostFiles, mostDocuments, mostDirectories int
	// open and list are the system's, except where a test needs one that fails.
	open func(path string) (*os.File, error)
	list func(path string) ([]fs.DirEntry, error)
}

// memories are what one reading leaves to the next, by path.
type memories struct {
	// decoded are files whose stamp tells whether they have changed.
	decoded map[string]decoded
	// recent are those whose stamp does not tell yet.
	recent map[string]version
	// waiting are those that were not taken yet.
	waiting map[string]wait
}

func newMemories() memories {
	return memories{decoded: map[string]decoded{}, recent: map[string]version{}, waiting: map[string]wait{}}
}

// underOthers is what is remembered, with other defaults below the sessions.
func (m memories) underOthers(defaults *spec.SessionDefaults) memories {
	out := memories{decoded: make(map[string]decoded, len(m.decoded)), recent: make(map[string]version, len(m.recent)), waiting: m.waiting}
	for path, d := range m.decoded {
		d.documents = d.documents.Under(defaults)
		out.decoded[path] = d
	}
	for path, v := range m.recent {
		v.documents = v.documents.Under(defaults)
		out.recent[path] = v
	}
	return out
}

// decoded is a file as it was read last.
type decoded struct {
	stamp
	version
}

// Read reads the roots once, without remembering anything.
func Read(roots []string) Reading { return new(Reader).Read(roots) }

// Read walks the roots, each a directory or a single file, and decodes the
// *.yaml, *.yml and *.json files in them. It changes nothing and never fails:
// what could not be read is part of the answer. The Sessions in it are shared
// with later readings and must not be changed.
//
// Roots should be absolute: sessions are known by the paths of their files from
// one daemon to the next.
func (r *Reader) Read(roots []string) Reading {
	r.prepare()
	w := &walk{reader: r, files: map[fileID]int{}, watches: map[fileID]int{}}
	for _, root := range roots {
		w.readRoot(root)
	}
	r.memories, r.next = r.next, memories{}
	return w.reading
}

func (r *Reader) prepare() {
	r.next = newMemories()
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	if !r.under.Same(r.Defaults) {
		r.under = r.Defaults
		r.memories = r.underOthers(r.Defaults)
	}
	if r.mostFiles == 0 {
		r.mostFiles, r.mostDocuments, r.mostDirectories = mostFiles, mostDocuments, mostDirectories
	}
	if r.open == nil {
		r.open = openManifest
	}
	if r.list == nil {
		r.list = os.ReadDir
	}
}

// openManifest does not wait for a writer if a FIFO took the file's place.
func openManifest(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// errNoManifest is the answer for what is neither read nor reported: a device, a
// socket, a FIFO.
var errNoManifest = errors.New("not a regular file")

// errTooLarge is the answer for a file above spec.MaxFileBytes.
type errTooLarge int64

func (e errTooLarge) Error() string {
	return fmt.Sprintf("the file has %d bytes; at most %d are read: split it", int64(e), spec.MaxFileBytes)
}

// load decodes a file, unless nothing in it has changed. The error matches
// fs.ErrNotExist for a file that vanished, errNoManifest for what is no file and
// errUnfinished for one that has to be looked at again soon.
func (r *Reader) load(path string, seen stat) (docs spec.Documents, waits bool, err error) {
	if known, found := r.decoded[path]; found && known.stamp == seen.stamp {
		r.next.decoded[path] = known
		return known.documents, false, nil
	}
	if seen.size > spec.MaxFileBytes {
		return spec.Documents{}, false, errTooLarge(seen.size)
	}
	c, err := r.slurp(path)
	if err != nil {
		return spec.Documents{}, false, err
	}
	last := r.last(path)
	if r.unfinished(path, c, last) {
		if last == nil {
			return spec.Documents{}, true, errUnfinished
		}
		r.next.recent[path] = *last
		return last.documents, true, nil
	}
	v := r.version(path, c.fileID, c.data, last)
	after, err := statPath(path)
	if err == nil && after.stamp == c.stamp && c.settled(r.Clock.Now()) {
		r.next.decoded[path] = decoded{stamp: c.stamp, version: v}
	} else {
		r.next.recent[path] = v
	}
	return v.documents, false, nil
}

// content is what a file held at one moment.
type content struct {
	// stat from before the first byte was read.
	stat
	data []byte
	// writing says that it was open for writing, or changed meanwhile.
	writing bool
}

// slurp reads a regular file of at most spec.MaxFileBytes.
func (r *Reader) slurp(path string) (content, error) {
	f, err := r.open(path)
	if err != nil {
		return content{}, err
	}
	defer func() { _ = f.Close() }()
	before, err := statFile(f)
	switch {
	case err != nil:
		return content{}, err
	case !before.isRegular():
		return content{}, errNoManifest
	}
	writing := hasWriter(f)
	data, err := io.ReadAll(io.LimitReader(f, spec.MaxFileBytes+1))
	switch {
	case err != nil:
		return content{}, err
	case len(data) > spec.MaxFileBytes:
		return content{}, errTooLarge(max(before.size, int64(len(data))))
	}
	after, err := statFile(f)
	if err != nil {
		return content{}, err
	}
	return content{stat: before, data: data, writing: writing || hasWriter(f) || after.stamp != before.stamp}, nil
}
