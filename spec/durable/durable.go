// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package durable writes small files so that a crash at any instant leaves the
// old content or the new one, and reads them so that a damaged file is told
// from a missing one and from one of a newer version. It never removes a file
// and never repairs one.
package durable

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrCorrupt is matched by the error of Read for a file whose envelope or
// checksum is wrong.
var ErrCorrupt = errors.New("content is damaged")

// ErrNewer is matched by the error of Read for a file of a newer version.
var ErrNewer = errors.New("file was written by a newer version of muxlet")

// envelope is the format of a durable file: one JSON object. It is the same in
// every version, so that damage to the version itself is told from a newer one.
type envelope struct {
	Version  int             `json:"version"`
	Checksum string          `json:"checksum"` // of version and data
	Data     json.RawMessage `json:"data"`
}

// TempPrefix begins the names of the temporary files of WriteFile. One that is
// found while nobody writes in its directory was left by a crash.
const TempPrefix = ".tmp-"

// WriteFile replaces the content of path: temporary file in the same
// directory, fsync, rename, fsync of the directory.
func WriteFile(path string, data []byte, perm fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, TempPrefix+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("create temporary file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(tmp.Name())))
		}
	}()
	if err := fill(tmp, data, perm); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("rename temporary file: %w", err)
	}
	return SyncDir(dir)
}

// Refill writes data into the file at path, which nothing refers to that has to
// stay as it is: in place when the file is there under this name alone and may be
// written, else anew, which takes a writable directory and no more. The file is
// synced, its directory is not. After an error the content is undefined.
//
// A file that is made for each write and removed by the next one costs more than
// the write: without a journal, ext4 looks through the inodes that were freed in
// the last seconds for each new one (measured: a fifth of the time of starting 500
// sessions).
func Refill(path string, data []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err == nil && !alone(f) {
		err = errors.Join(errNotAlone, f.Close())
	}
	if err != nil {
		if err := ignoreMissing(os.Remove(path)); err != nil {
			return fmt.Errorf("remove temporary file: %w", err)
		}
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	}
	if err != nil {
		return fmt.Errorf("open temporary file: %w", err)
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return errors.Join(fmt.Errorf("write temporary file: %w", err), f.Close())
	}
	return fill(f, data, perm)
}

// errNotAlone is why a file that could be written is made anew.
var errNotAlone = errors.New("the file has another name")

// alone says whether the file has no other name.
func alone(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1
}

func fill(f *os.File, data []byte, perm fs.FileMode) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write temporary file: %w", err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Sweep removes the temporary files that crashed writes have left in a directory:
// those that were last changed before the given time, or all of them when that is
// zero and nobody writes there meanwhile. A directory that is missing has none.
func Sweep(dir string, before time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	for _, e := range entries {
		if !isTemporary(e.Name()) {
			continue
		}
		info, infoErr := e.Info()
		if infoErr == nil && (before.IsZero() || info.ModTime().Before(before)) {
			err = errors.Join(err, ignoreMissing(os.Remove(filepath.Join(dir, e.Name()))))
		}
	}
	if err != nil {
		return fmt.Errorf("remove what an interrupted write left: %w", err)
	}
	return nil
}

func isTemporary(name string) bool { return strings.HasPrefix(name, TempPrefix) }

// SyncDir makes renames and removals in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// Encode returns v as a durable file's content: JSON with a version and the
// SHA-256 of both.
func Encode(version int, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	out, err := json.Marshal(envelope{Version: version, Checksum: checksum(version, data), Data: data})
	if err != nil {
		return nil, fmt.Errorf("encode envelope: %w", err)
	}
	return append(out, '\n'), nil
}

// Decode reads what Encode wrote. The error matches ErrCorrupt for damaged
// content and ErrNewer for a version above maxVersion.
func Decode(data []byte, maxVersion int, v any) error {
	var env envelope
	if err := json.Unmarshal(data, &env); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if env.Checksum != checksum(env.Version, env.Data) {
		return fmt.Errorf("%w: checksum differs", ErrCorrupt)
	}
	if env.Version > maxVersion {
		return fmt.Errorf("%w: version %d, this one reads up to %d", ErrNewer, env.Version, maxVersion)
	}
	if err := json.Unmarshal(env.Data, v); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// Write stores v at path with mode 0600.
func Write(path string, version int, v any) error {
	data, err := Encode(version, v)
	if err != nil {
		return err
	}
	return WriteFile(path, data, 0o600)
}

// Read loads what Write stored. The error matches fs.ErrNotExist, ErrCorrupt or
// ErrNewer.
func Read(path string, maxVersion int, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return fmt.Errorf("%w: %s is empty", ErrCorrupt, filepath.Base(path))
	}
	if err := Decode(data, maxVersion, v); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return nil
}

func checksum(version int, data []byte) string {
	sum := sha256.New()
	sum.Write(fmt.Appendf(nil, "%d\n", version))
	sum.Write(data)
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
