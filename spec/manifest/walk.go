// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// walk collects one Reading.
type walk struct {
	reader  *Reader
	reading Reading
	// files are those that were taken, with what they may declare.
	files map[fileID]int
	// watches are indices into reading.Watches.
	watches map[fileID]int
	// documents of all files that were taken.
	documents int
}

// tree is the walk below one root. Symlinks come last, so that a file is known
// by its own path if it has one below the root.
type tree struct {
	*walk
	root  *Root
	dirs  map[fileID]struct{}
	seen  map[fileID]struct{}
	links []string
	// beyond and closed count the files and the directories that the limits leave
	// out.
	beyond, closed int
}

func (w *walk) readRoot(path string) {
	root := Root{Path: filepath.Clean(path)}
	t := &tree{walk: w, root: &root, dirs: map[fileID]struct{}{}, seen: map[fileID]struct{}{}}
	st, err := statPath(root.Path)
	switch {
	case err != nil:
		t.rootFailed(err)
	case st.isDir():
		t.rootIsDirectory(st)
	case st.isRegular():
		root.Access, root.Device = Readable, st.dev
		w.watchName(filepath.Dir(root.Path), filepath.Base(root.Path))
		t.addFile(root.Path, st)
	default:
		root.Access, root.Message = Unreadable, "it is neither a directory nor a regular file"
	}
	t.tellBeyond()
	if root.Access != Readable {
		root.Device = 0
		w.watchName(existingAncestor(root.Path))
	}
	w.watchLink(root.Path)
	w.reading.Roots = append(w.reading.Roots, root)
}

func (t *tree) rootIsDirectory(st stat) {
	t.root.Access, t.root.Device = Readable, st.dev
	if err := t.directory(t.root.Path, st.fileID); err != nil {
		t.rootFailed(err)
	}
	for len(t.links) > 0 {
		link := t.links[0]
		t.links = t.links[1:]
		t.follow(link)
	}
}

func (t *tree) rootFailed(err error) {
	t.root.Access, t.root.Message = Unreadable, cause(err)
	if vanished(err) {
		t.root.Access, t.root.Message = Missing, "it does not exist"
	}
}

// vanished tells an error that proves that the path is not there.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// cause is an error without the path, which the person reads beside it.
func cause(err error) string {
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// directory walks a directory once. What could be listed is used even if the
// listing broke off; the error is that of the listing.
func (t *tree) directory(path string, id fileID) error {
	if _, visited := t.dirs[id]; visited {
		return nil
	}
	t.dirs[id] = struct{}{}
	if len(t.watches) >= t.reader.mostDirectories {
		t.closed++
		return nil
	}
	t.watchAll(path, id)
	entries, err := t.reader.list(path)
	for _, entry := range entries {
		if !isIgnored(entry.Name()) {
			t.entry(filepath.Join(path, entry.Name()), entry)
		}
	}
	return err
}

func (t *tree) entry(path string, entry fs.DirEntry) {
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		t.links = append(t.links, path)
	case entry.IsDir(), isManifest(entry.Name()):
		t.node(path)
	}
}

// node takes a directory or a manifest by its path, after symlinks.
func (t *tree) node(path string) {
	st, err := statPath(path)
	switch {
	case err == nil && st.isDir():
		t.misnamed(path, st)
		err = t.directory(path, st.fileID)
	case err == nil && isManifest(filepath.Base(path)):
		t.addFile(path, st)
	}
	if err != nil && !vanished(err) {
		t.unread(path, err)
	}
}

// follow takes a symlink. One that leads nowhere hides what it led to: its
// target may be on a file system that is not mounted.
func (t *tree) follow(link string) {
	t.watchLink(link)
	if _, err := statPath(link); err == nil || !vanished(err) {
		t.node(link)
		return
	}
	if target, err := os.Readlink(link); err == nil {
		t.unread(link, errors.New("it is a symbolic link to "+target+", which does not exist"))
	}
}

func (t *tree) addFile(path string, st stat) {
	if _, again := t.seen[st.fileID]; again {
		return
	}
	t.seen[st.fileID] = struct{}{}
	if count, taken := t.files[st.fileID]; taken {
		t.root.Documents += count
		return
	}
	if !st.isRegular() {
		t.special(path, st)
		return
	}
	if len(t.reading.Files) >= t.reader.mostFiles || t.documents >= t.reader.mostDocuments {
		t.beyond++
		return
	}
	docs, waits, err := t.reader.load(path, st)
	t.reading.Unfinished = t.reading.Unfinished || waits
	switch {
	case err == nil:
		t.files[st.fileID] = documents(docs)
		t.documents += documents(docs)
		t.root.Documents += documents(docs)
		t.reading.Files = append(t.reading.Files, File{Path: path, Documents: docs})
	case !vanished(err) && !errors.Is(err, errNoManifest):
		t.files[st.fileID] = 1
		t.unread(path, err)
	}
}

// The most that is read: a directory that holds more than a person can mean, such
// as a checkout of something else or a home, must not take the memory of the
// daemon, or all notices that the system has.
const (
	mostFiles       = 10_000
	mostDocuments   = 10_000
	mostDirectories = 10_000
)

// tellBeyond says in one sentence each what the limits have left out.
func (t *tree) tellBeyond() {
	limit := fmt.Sprintf("at most %d files, %d documents and %d directories are read in all: keep only what muxlet is to run there",
		t.reader.mostFiles, t.reader.mostDocuments, t.reader.mostDirectories)
	for _, left := range []struct {
		count     int
		one, many string
	}{
		{t.beyond, "1 file is", "%d files are"},
		{t.closed, "1 directory is", "%d directories are"},
	} {
		if left.count == 0 {
			continue
		}
		what := left.one
		if left.count > 1 {
			what = fmt.Sprintf(left.many, left.count)
		}
		t.root.Documents++
		t.reading.Unread = append(t.reading.Unread, Unread{Path: t.root.Path, Problem: problemAt(t.root.Path, "%s not read: %s", what, limit)})
	}
}

// special notes a FIFO, a socket or a device with the name of a manifest. To
// open one could hang, or do something to what is behind it.
func (t *tree) special(path string, st stat) {
	t.reading.Special = append(t.reading.Special, Unread{Path: path, Problem: problemAt(path,
		"is not read: it is %s and no regular file; remove it, or give it another name", st.kind())})
}

// misnamed notes a directory with the name of a manifest. What is in it is read,
// as in any other; a person or a tool may have meant a file.
func (t *tree) misnamed(path string, st stat) {
	if _, visited := t.dirs[st.fileID]; visited || !isManifest(filepath.Base(path)) {
		return
	}
	t.reading.Special = append(t.reading.Special, Unread{Path: path, Problem: problemAt(path,
		"is a directory and no manifest: what is in it is read; give it another name")})
}

func (t *tree) unread(path string, err error) {
	t.root.Documents++
	p := problemAt(path, "cannot be read: %s", cause(err))
	if errors.As(err, new(errTooLarge)) {
		p.Message = err.Error()
	}
	passing := errors.Is(err, errUnfinished)
	if !slices.ContainsFunc(t.reading.Unread, func(u Unread) bool { return u.Path == path }) {
		t.reading.Unread = append(t.reading.Unread, Unread{Path: path, Problem: p, Passing: passing})
	}
}

// watchAll asks for a watch of a directory of the tree.
func (w *walk) watchAll(dir string, id fileID) {
	i := w.watchIndex(dir, id)
	w.reading.Watches[i].all = true
}

// watchName asks for a watch of one name in a directory.
func (w *walk) watchName(dir, name string) {
	st, err := statPath(dir)
	if err != nil {
		return
	}
	watch := &w.reading.Watches[w.watchIndex(dir, st.fileID)]
	if !slices.Contains(watch.Names, name) {
		watch.Names = append(watch.Names, name)
	}
}

func (w *walk) watchLink(path string) {
	if _, err := os.Readlink(path); err != nil {
		return
	}
	for _, site := range linkSites(path) {
		w.watchName(filepath.Dir(site), filepath.Base(site))
	}
}

func (w *walk) watchIndex(dir string, id fileID) int {
	i, found := w.watches[id]
	if !found {
		i = len(w.reading.Watches)
		w.watches[id] = i
		w.reading.Watches = append(w.reading.Watches, Watch{Dir: dir, id: id})
	}
	return i
}
