// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// ErrNotDeclared is matched by the error of an edit of a file that does not
// declare the session or the client class.
var ErrNotDeclared = errors.New("it is not declared there")

// ErrReadOnly is matched by the error of an edit of a file that may not be
// written: by its mode (no write bit counts for root too), by its directory or
// by its file system.
var ErrReadOnly = errors.New("the manifest is read-only")

// ErrNotEditable is matched by the error of an edit that could not be made
// without touching anything else, and of one of a document that is not valid.
var ErrNotEditable = errors.New("the manifest must be edited by hand")

// ErrChanged is matched by the error of an edit of a file that somebody else
// wrote meanwhile. The file is untouched; trying again can help.
var ErrChanged = errors.New("it was changed by somebody else in the same moment; try again")

// errWriting is the ErrChanged about a file that another program has open for
// writing. What it holds may be a beginning, and what the writer still has to
// say would go into a file that is no longer there.
var errWriting = fmt.Errorf("another program is writing it: %w", ErrChanged)

// edits keeps two edits of one file in this process from losing one another.
var edits sync.Mutex

// SetSuspend makes the document of the session in file say spec.suspend as
// given, and changes no other byte. A file that says it already is left alone.
// A symlink is followed, the mode is kept, and the file is replaced atomically.
//
// The error matches ErrNotDeclared, ErrReadOnly or ErrNotEditable; the file is
// untouched then.
func SetSuspend(file, name string, suspend bool) error {
	return again(func() error {
		s, err := openSource(file, SessionRef(name))
		if err != nil {
			return err
		}
		edited, err := s.suspended(name, suspend)
		if err != nil || bytes.Equal(edited, s.data) {
			return err
		}
		return s.write(edited)
	})
}

// again makes an edit, anew if somebody else wrote the file in the same moment:
// another process, since edits of this one wait for each other.
func again(edit func() error) error {
	edits.Lock()
	defer edits.Unlock()
	const tries = 5
	for n := 1; ; n++ {
		err := edit()
		if n == tries || !errors.Is(err, ErrChanged) || errors.Is(err, errWriting) {
			return err
		}
	}
}

// suspended gives the file with spec.suspend as wanted.
func (s *source) suspended(name string, suspend bool) ([]byte, error) {
	declared := s.decoded.Items[s.item].DeclaredSession()
	if declared == nil {
		return nil, fmt.Errorf("suspend session %q: %w: %w", name, ErrNotEditable, firstProblem(s.decoded.Items[s.item].Problems))
	}
	if declared.Spec.Suspend == suspend {
		return s.data, nil
	}
	edited, err := s.splice(suspend)
	if err != nil {
		return nil, err
	}
	want := *declared
	want.Spec.Suspend = suspend
	wanted := meanings(s.decoded.Items)
	wanted[s.item].object = &want
	return edited, s.verify(edited, wanted)
}

// Remove takes the document of the session out of file, together with the
// separator before it. A file that declares nothing else is deleted; of a
// symlink the link alone, since its target is not below a manifest root.
//
// The error matches ErrNotDeclared, ErrReadOnly or ErrNotEditable; the file is
// untouched then.
func Remove(file, name string) error { return removeFrom(file, SessionRef(name)) }

// RemoveClass does the same with the document of a client class.
func RemoveClass(file, name string) error { return removeFrom(file, ClassRef(name)) }

func removeFrom(file string, r Ref) error {
	return again(func() error {
		s, err := openSource(file, r)
		if err != nil {
			return err
		}
		if len(s.decoded.Items) == 1 {
			return s.unlink()
		}
		edited, err := s.without()
		if err != nil {
			return err
		}
		return s.write(edited)
	})
}

// without gives the file without the document.
func (s *source) without() ([]byte, error) {
	edited := slices.Concat(s.data[:s.part.start], s.data[s.part.end:])
	return edited, s.verify(edited, slices.Delete(meanings(s.decoded.Items), s.item, s.item+1))
}

// source is a file to be edited.
type source struct {
	// file as the caller named it, and path where it really is.
	file, path string
	mode       fs.FileMode
	data       []byte
	decoded    spec.Documents
	// item is the index of the document in decoded, and part its bytes.
	item int
	part part
}

func openSource(file string, r Ref) (*source, error) {
	s := &source{file: file}
	if err := s.load(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("find %s in %s: %w: %w", r, file, ErrNotDeclared, err)
		}
		return nil, fmt.Errorf("find %s in %s: %w", r, file, err)
	}
	return s, s.find(r)
}

// find decodes the file and locates the only document of that kind and name.
func (s *source) find(r Ref) error {
	s.decoded = spec.DecodeFile(s.file, s.data)
	return s.locate(r)
}

// locate finds the document in what is decoded.
func (s *source) locate(r Ref) error {
	s.item = -1
	for i, doc := range s.decoded.Items {
		if RefOf(&doc) != r {
			continue
		}
		if s.item >= 0 {
			first := s.decoded.Items[s.item].Line
			return fmt.Errorf("%s declares %s twice, in lines %d and %d: %w", s.file, r, first, doc.Line, ErrNotEditable)
		}
		s.item = i
	}
	if s.item < 0 {
		return s.notFound(r)
	}
	s.part = partAt(s.data, s.decoded.Items[s.item].Line)
	return nil
}

// notFound tells a file that does not declare it from one that cannot
// be understood.
func (s *source) notFound(r Ref) error {
	problems := slices.Clone(s.decoded.Problems)
	for _, doc := range s.decoded.Items {
		if doc.Name == "" {
			problems = append(problems, doc.Problems...)
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("find %s in %s: %w: %w", r, s.file, ErrNotEditable, problems[0])
	}
	return fmt.Errorf("find %s in %s: %w", r, s.file, ErrNotDeclared)
}

func firstProblem(problems []spec.Problem) error {
	if len(problems) == 0 {
		return errors.New("the document is not valid")
	}
	return problems[0]
}

func (s *source) load() (err error) {
	if s.path, err = filepath.EvalSymlinks(s.file); err != nil {
		return err
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > spec.MaxFileBytes {
		return fmt.Errorf("%w: it is no regular file of at most %d bytes", ErrNotEditable, spec.MaxFileBytes)
	}
	s.mode = info.Mode().Perm()
	s.data, err = readFinished(s.path)
	return err
}

// Whoever has a file open for writing gets a moment to close it. It may be this
// very process: a child that it forks holds, until it executes something, what was
// being written at that instant.
const (
	closePatience = time.Second
	closePoll     = 10 * time.Millisecond
)

// readFinished reads a file. The error is errWriting while another program writes
// it, for as long as a Reader waits for one.
func readFinished(path string) ([]byte, error) {
	for end := time.Now().Add(closePatience); ; time.Sleep(closePoll) {
		data, err := readUnlessWriting(path)
		if !errors.Is(err, errWriting) || time.Now().After(end) {
			return data, err
		}
	}
}

func readUnlessWriting(path string) ([]byte, error) {
	f, err := openManifest(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	writing := hasWriter(f)
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if (writing || hasWriter(f)) && time.Since(info.ModTime()) < writerPatience {
		return nil, errWriting
	}
	return data, nil
}

// meaning is what a document declares, whatever the settings give beside it.
type meaning struct {
	Ref
	// object is nil for a document that is not valid, and problems are how many it has.
	object   metav1.Object
	problems int
}

func meaningOf(d *spec.Document) meaning {
	return meaning{Ref: RefOf(d), object: d.Declared(), problems: len(d.Problems)}
}

func meanings(items []spec.Document) []meaning {
	all := make([]meaning, len(items))
	for i := range items {
		all[i] = meaningOf(&items[i])
	}
	return all
}

// verify decodes the edited file again: it must declare exactly what is wanted.
func (s *source) verify(edited []byte, want []meaning) error {
	if err := sameMeaning(want, spec.DecodeFile(s.file, edited)); err != nil {
		return fmt.Errorf("edit %s: %w: %w", s.file, ErrNotEditable, err)
	}
	return nil
}

// sameMeaning compares what is declared, not where.
func sameMeaning(want []meaning, got spec.Documents) error {
	if len(got.Problems) > 0 {
		return got.Problems[0]
	}
	if len(want) != len(got.Items) {
		return fmt.Errorf("the edit would leave %d documents instead of %d", len(got.Items), len(want))
	}
	for i, w := range want {
		if !reflect.DeepEqual(w, meaningOf(&got.Items[i])) {
			return fmt.Errorf("the edit would change more of document %d than it should", i+1)
		}
	}
	return nil
}
