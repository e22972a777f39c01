// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// ErrDeclaredTwice is matched by the error about a session or a client class that more
// than one document declares.
var ErrDeclaredTwice = errors.New("more than one document declares it")

// Editor edits what the manifest roots declare. It reads them once; a file that
// it has written, or found to be changed, is read again. It is not safe for
// concurrent use.
type Editor struct {
	roots   []string
	reading Reading
	places  map[Ref][]spec.Position
	sources map[string]*source
	// pretended are the files as they would be.
	pretended map[string][]byte
}

// NewEditor reads the roots.
func NewEditor(roots []string) *Editor {
	e := &Editor{roots: roots, reading: Read(roots), places: map[Ref][]spec.Position{}, sources: map[string]*source{}}
	e.readPassing()
	for _, file := range e.reading.Files {
		for _, doc := range file.Items {
			if doc.Name != "" {
				e.places[RefOf(&doc)] = append(e.places[RefOf(&doc)], doc.Position)
			}
		}
	}
	return e
}

// readPassing takes the files whose writers have rested for long: this reading has
// no earlier one to know that from.
func (e *Editor) readPassing() {
	e.reading.Unread = slices.DeleteFunc(e.reading.Unread, func(u Unread) bool {
		if !u.Passing {
			return false
		}
		data, err := readFinished(u.Path)
		if err == nil {
			e.reading.Files = append(e.reading.Files, File{Path: u.Path, Documents: spec.DecodeFile(u.Path, data)})
		}
		return err == nil
	})
}

// Reading is what the roots held.
func (e *Editor) Reading() Reading { return e.reading }

// Locate tells which file declares a session or a client class. The error matches ErrNotDeclared,
// ErrDeclaredTwice, or ErrNotEditable when a file that cannot be understood may
// declare it, and ErrChanged when one may that is being written.
func (e *Editor) Locate(r Ref) (string, error) {
	switch places := e.places[r]; len(places) {
	case 0:
	case 1:
		return places[0].File, nil
	default:
		return "", fmt.Errorf("%s is declared at %s and at %s: %w; remove one of them", r, places[0], places[1], ErrDeclaredTwice)
	}
	for _, file := range e.reading.Files {
		if slices.Contains(r.namesIn(file.Documents), r.Name) {
			return "", fmt.Errorf("%w: %s may declare %s and cannot be understood: %w", ErrNotEditable, file.Path, r, whyNameless(file.Documents))
		}
	}
	for _, unread := range e.reading.Unread {
		if unread.Passing {
			return "", fmt.Errorf("find %s: %s may declare it: %w", r, unread.Path, errWriting)
		}
	}
	return "", fmt.Errorf("%s: %w", r, ErrNotDeclared)
}

// whyNameless is why a document without a name cannot be understood.
func whyNameless(d spec.Documents) error {
	problems := slices.Clone(d.Problems)
	for _, doc := range d.Items {
		if doc.Name == "" {
			problems = append(problems, doc.Problems...)
		}
	}
	return firstProblem(problems)
}

// Apply works out how the roots come to declare what is wanted: the document
// that declares it is edited as little as possible, fields that are not
// wanted are removed from it, and one that no file declares gets a file of its
// own in the first root that is a directory. Nothing is written.
//
// The error matches those of Locate, or ErrChanged: then the roots were read
// anew, and it can be asked again.
func (e *Editor) Apply(want Declaration) (*Change, error) {
	file, err := e.Locate(want.ref())
	if errors.Is(err, ErrNotDeclared) {
		return e.new(want)
	}
	if errors.Is(err, ErrChanged) {
		*e = *NewEditor(e.roots)
	}
	if err != nil {
		return nil, err
	}
	s, err := e.open(file, want.ref())
	if err != nil {
		return nil, err
	}
	return s.configure(want)
}

// Copy gives the text of a document, valid or not. The error matches
// those of Locate.
func (e *Editor) Copy(r Ref) (Copy, error) {
	file, err := e.Locate(r)
	if err != nil {
		return Copy{}, err
	}
	s, err := openSource(file, r)
	if err != nil {
		return Copy{}, err
	}
	return Copy{Ref: r, File: file, Text: slices.Clone(regionOf(s.data, s.part).text(s.data))}, nil
}

// Write makes a change and forgets what was known of the file. After an error
// that matches ErrChanged the roots were read anew, so that the change can be
// worked out again.
func (e *Editor) Write(c *Change) error {
	delete(e.sources, c.File)
	err := c.Write()
	if errors.Is(err, ErrChanged) {
		*e = *NewEditor(e.roots)
	}
	return err
}

// Pretend goes on as if the change were written: what is worked out next stands beside
// it. Nothing is written.
func (e *Editor) Pretend(c *Change) {
	if c.Outcome == Unchanged {
		return
	}
	if e.pretended == nil {
		e.pretended = map[string][]byte{}
	}
	e.pretended[c.File] = c.edited
	if c.Outcome == Configured {
		s := *c.source
		s.data, s.decoded = c.edited, spec.DecodeFile(s.file, c.edited)
		e.sources[c.File] = &s
	}
}

// Pretended are the files as they would be, by path.
func (e *Editor) Pretended() map[string][]byte { return e.pretended }

// open decodes a file once for all of its documents.
func (e *Editor) open(file string, r Ref) (*source, error) {
	known := e.sources[file]
	if known == nil {
		s, err := openSource(file, r)
		if err == nil {
			e.sources[file] = s
		}
		return s, err
	}
	s := *known
	return &s, s.locate(r)
}

// new works out the file of what none declares.
func (e *Editor) new(want Declaration) (*Change, error) {
	dir, err := e.directory()
	if err != nil {
		return nil, err
	}
	tree, err := want.tree()
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", want.ref(), err)
	}
	text := slices.Clone(want.cleaned(tree))
	if !endsLine(text) {
		text = append(text, lineEndOf(text)...)
	}
	path, own := e.freeName(dir, want.Name)
	if !own {
		// What has its own name may have been put there since the roots were read, and
		// may be its document.
		now := NewEditor(e.roots)
		if _, err := now.Locate(want.ref()); !errors.Is(err, ErrNotDeclared) {
			*e = *now
			return nil, fmt.Errorf("create %s: %w", want.ref(), ErrChanged)
		}
	}
	change := &Change{Outcome: Created, File: path, edited: text}
	got := spec.DecodeFile(change.File, text)
	if len(got.Items) != 1 || !reflect.DeepEqual(got.Items[0].Declared(), want.Declared()) {
		return nil, fmt.Errorf("create %s: %w: its text does not stand alone; write it without directives", want.ref(), ErrNotEditable)
	}
	return change, nil
}

// directory is the first root that is a directory, or is not there and may
// become one.
func (e *Editor) directory() (string, error) {
	var roots []string
	for _, root := range e.reading.Roots {
		info, err := os.Stat(root.Path)
		if err == nil && info.IsDir() || errors.Is(err, fs.ErrNotExist) && !isManifest(filepath.Base(root.Path)) {
			return root.Path, nil
		}
		roots = append(roots, root.Path)
	}
	return "", fmt.Errorf("%w: no manifest root is a directory that a new file could be put into (%s)", ErrNotEditable, joined(roots))
}

// freeName is NAME.yaml, or NAME-2.yaml and so on when that is taken; own says
// that it was not. An empty file is what a crash may leave of an earlier attempt.
func (e *Editor) freeName(dir, name string) (path string, own bool) {
	for n := 1; ; n++ {
		path := filepath.Join(dir, name+".yaml")
		if n > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", name, n))
		}
		if _, taken := e.pretended[path]; taken {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode().IsRegular() && info.Size() == 0 {
			return path, n == 1
		}
	}
}

// create makes the file, and its directory. The name is taken first, by an empty
// file that declares nothing: so nobody's file is overwritten, and the mode is
// what the person's umask leaves.
func (c *Change) create() error {
	dir := filepath.Dir(c.File)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return c.refused(err)
	}
	f, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
	case err != nil:
		return c.refused(err)
	default:
		if err := f.Close(); err != nil {
			return c.refused(err)
		}
	}
	err = swapContent(c.File, c.edited, func() error {
		if info, err := os.Lstat(c.File); err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
			return ErrChanged
		}
		return nil
	})
	if err != nil && f != nil && !errors.Is(err, ErrChanged) {
		err = errors.Join(err, ignoreMissing(os.Remove(c.File)))
	}
	if err == nil {
		err = durable.SyncDir(dir)
	}
	return c.refused(err)
}

// creatable is the error that create would have about the directory.
func (c *Change) creatable() error {
	dir := filepath.Dir(c.File)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		dir, _ = existingAncestor(dir)
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return c.refused(&fs.PathError{Op: "write", Path: dir, Err: err})
	}
	return nil
}

func (c *Change) refused(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("create %s: %w: %w; make the directory writable, or put the document where it comes from", c.File, ErrReadOnly, err)
	}
	return fmt.Errorf("create %s: %w", c.File, err)
}
