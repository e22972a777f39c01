// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// BackupDir is where below the state directory the old bytes of files are kept that were
// written anew in a newer version: backup/<version>/<path in the state directory>.
const BackupDir = "backup"

// Backup keeps the bytes of files of an older version before they are written in a newer
// one: the muxlet that wrote them can be put back, and have them. State is the state
// directory.
type Backup struct{ State string }

// Before comes before path, which is below the state directory, is replaced by a file of
// the given version, or removed in favour of one. What is there of an older version is on
// disk a second time when it returns. The error matches ErrNewer, and the file must be
// left as it is, when it is of a newer version. One that is missing, or too damaged to
// tell its version, is nobody's loss.
func (b Backup) Before(path string, version int) error {
	found, err := VersionOf(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt) || err == nil && found == version:
		return nil
	case err != nil:
		return fmt.Errorf("look at the version of %s: %w", filepath.Base(path), err)
	case found > version:
		return fmt.Errorf("write %s: %w: version %d, this one writes version %d", filepath.Base(path), ErrNewer, found, version)
	}
	if err := b.keep(path, found); err != nil {
		return fmt.Errorf("keep %s as version %d before it is written in version %d: %w", filepath.Base(path), found, version, err)
	}
	return nil
}

// Write is the Write of a file that another version of muxlet may have written.
func (b Backup) Write(path string, version int, v any) error {
	if err := b.Before(path, version); err != nil {
		return err
	}
	return Write(path, version, v)
}

func (b Backup) keep(path string, version int) error {
	within, err := filepath.Rel(b.State, path)
	if err != nil || !filepath.IsLocal(within) {
		return fmt.Errorf("%s is not in the state directory %s", path, b.State)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	kept := filepath.Join(b.State, BackupDir, strconv.Itoa(version), within)
	if there, err := os.ReadFile(kept); err == nil && bytes.Equal(there, data) {
		return nil
	}
	if err := b.makeDirs(filepath.Dir(kept)); err != nil {
		return err
	}
	return WriteFile(kept, data, 0o600)
}

// makeDirs makes a directory below the state directory, durably.
func (b Backup) makeDirs(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Clean(b.State) {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := b.makeDirs(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// Prune removes the copies that were made before the given time, and the oldest of those
// that are more than the given number of files or bytes (0: no limit), and what
// interrupted writes have left.
func (b Backup) Prune(before time.Time, files int, size int64) error {
	type aged struct {
		path string
		at   time.Time
		size int64
	}
	var found []aged
	var dirs []string
	err := filepath.WalkDir(filepath.Join(b.State, BackupDir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, path)
			return Sweep(path, time.Now().Add(-time.Hour))
		}
		if info, err := d.Info(); err == nil && d.Type().IsRegular() && !isTemporary(d.Name()) {
			found = append(found, aged{path, info.ModTime(), info.Size()})
		}
		return nil
	})
	slices.SortFunc(found, func(a, b aged) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.path, b.path)) })
	total := int64(0)
	for i, f := range found {
		total += f.size
		if f.at.Before(before) || i >= files || size > 0 && total > size {
			err = errors.Join(err, ignoreMissing(os.Remove(f.path)))
		}
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		_ = os.Remove(dir) // those that are empty
	}
	if err != nil {
		return fmt.Errorf("prune the copies of files of older versions: %w", err)
	}
	return nil
}

// headBytes are enough for the version in what Encode writes.
const headBytes = 48

// VersionOf is the version in a durable file, whose checksum it does not look at. The
// error matches fs.ErrNotExist, or ErrCorrupt when there is no version in it.
func VersionOf(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if version, ok := headVersion(head[:n]); ok {
		return version, nil
	}
	rest, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	return VersionIn(append(head[:n:n], rest...))
}

// headVersion reads the version where Encode puts it.
func headVersion(head []byte) (version int, ok bool) {
	rest, ok := bytes.CutPrefix(head, []byte(`{"version":`))
	digits, _, found := bytes.Cut(rest, []byte(`,"checksum":"`))
	if !ok || !found {
		return 0, false
	}
	version, err := strconv.Atoi(string(digits))
	return version, err == nil
}

// VersionIn is the version in the content of a durable file; see VersionOf.
func VersionIn(data []byte) (int, error) {
	if version, ok := headVersion(data[:min(len(data), headBytes)]); ok {
		return version, nil
	}
	var env struct {
		Version  *int    `json:"version"`
		Checksum *string `json:"checksum"`
	}
	if err := json.Unmarshal(data, &env); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if env.Version == nil || env.Checksum == nil {
		return 0, fmt.Errorf("%w: it has no version", ErrCorrupt)
	}
	return *env.Version, nil
}
