// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec/durable"
)

// write replaces the file in one step, unless somebody else wrote it since it
// was loaded.
func (s *source) write(edited []byte) error {
	if err := s.writable(); err != nil {
		return err
	}
	return s.readOnly(swapContent(s.path, edited, s.unchanged))
}

// swapContent gives a file another content and keeps its mode, and its owner if
// this process may. Whatever happens, the path has the old content or the new
// one. What a crash leaves beside it is hidden, and no reader takes it for a
// manifest. check is asked last, right before the new content is put in place.
func swapContent(path string, data []byte, check func() error) (err error) {
	var old unix.Stat_t
	if err := retryInterrupted(func() error { return unix.Stat(path, &old) }); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	const longest = 200 // with what is added a name stays below 255 bytes
	base := filepath.Base(path)
	temporary, err := os.CreateTemp(filepath.Dir(path), durable.TempPrefix+base[:min(len(base), longest)]+"-*")
	if err != nil {
		return fmt.Errorf("create a temporary file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(temporary.Name())))
		}
	}()
	_, err = temporary.Write(data)
	if err == nil && (int(old.Uid) != os.Geteuid() || int(old.Gid) != os.Getegid()) {
		// Who may write a file of somebody else may not always give one away.
		if denied := temporary.Chown(int(old.Uid), int(old.Gid)); denied != nil && !errors.Is(denied, fs.ErrPermission) {
			err = denied
		}
	}
	if err == nil {
		err = temporary.Chmod(fs.FileMode(old.Mode) & fs.ModePerm)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return fmt.Errorf("write a temporary file: %w", err)
	}
	if err := check(); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("rename the temporary file: %w", err)
	}
	return durable.SyncDir(filepath.Dir(path))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// unlink deletes the file that the caller named.
func (s *source) unlink() error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := os.Remove(s.file); err != nil {
		return s.readOnly(err)
	}
	return s.readOnly(durable.SyncDir(filepath.Dir(s.file)))
}

// writable refuses a file that its owner protects, although replacing it would
// only take a writable directory, and one that somebody else wrote meanwhile.
func (s *source) writable() error {
	if s.mode&0o222 == 0 {
		return s.protected(fmt.Errorf("its mode is %04o", s.mode))
	}
	// To open it for writing would look like a writer to everybody else.
	if err := retryInterrupted(func() error { return unix.Faccessat(unix.AT_FDCWD, s.path, unix.W_OK, unix.AT_EACCESS) }); err != nil {
		return s.readOnly(&fs.PathError{Op: "write", Path: s.path, Err: err})
	}
	return s.readOnly(s.unchanged())
}

// unchanged tells that the file is what was loaded, and that nobody writes it.
func (s *source) unchanged() error {
	now, err := readFinished(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrChanged
	case err != nil:
		return err
	case !bytes.Equal(now, s.data):
		return ErrChanged
	}
	return nil
}

// readOnly sorts the errors of writing.
func (s *source) readOnly(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return s.protected(err)
	}
	return fmt.Errorf("edit %s: %w", s.file, err)
}

func (s *source) protected(why error) error {
	return fmt.Errorf("edit %s: %w: %w; make it writable, or change it where it comes from", s.file, ErrReadOnly, why)
}
