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

	decoded map[string]decoded
	kept    map[string]decoded
	// open and list are the system's, except where a test needs one that fails.
	open func(path string) (*os.File, error)
	list func(path string) ([]fs.DirEntry, error)
}

// decoded is a file as it was read last.
type decoded struct {
	stamp
	documents spec.Documents
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
	r.decoded, r.kept = r.kept, nil
	return w.reading
}

func (r *Reader) prepare() {
	r.kept = map[string]decoded{}
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
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

// load decodes a file, unless its stamp says that nothing changed. The error
// matches fs.ErrNotExist for a file that vanished and errNoManifest for what is
// no file.
func (r *Reader) load(path string, seen stat) (spec.Documents, error) {
	if known, found := r.decoded[path]; found && known.stamp == seen.stamp {
		r.kept[path] = known
		return known.documents, nil
	}
	if seen.size > spec.MaxFileBytes {
		return spec.Documents{}, errTooLarge(seen.size)
	}
	data, before, err := r.slurp(path)
	if err != nil {
		return spec.Documents{}, err
	}
	docs := spec.DecodeFile(path, data)
	after, err := statPath(path)
	if err == nil && after.stamp == before.stamp && before.settled(r.Clock.Now()) {
		r.kept[path] = decoded{stamp: before.stamp, documents: docs}
	}
	return docs, nil
}

// slurp reads a regular file of at most spec.MaxFileBytes. The stat is from
// before the first byte was read.
func (r *Reader) slurp(path string) ([]byte, stat, error) {
	f, err := r.open(path)
	if err != nil {
		return nil, stat{}, err
	}
	defer func() { _ = f.Close() }()
	before, err := statFile(f)
	switch {
	case err != nil:
		return nil, stat{}, err
	case !before.isRegular():
		return nil, stat{}, errNoManifest
	}
	data, err := io.ReadAll(io.LimitReader(f, spec.MaxFileBytes+1))
	switch {
	case err != nil:
		return nil, stat{}, err
	case len(data) > spec.MaxFileBytes:
		return nil, stat{}, errTooLarge(max(before.size, int64(len(data))))
	}
	return data, before, nil
}
