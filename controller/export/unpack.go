// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/muxlet/muxlet/spec/durable"
)

// ErrNotWhole is matched by the error of Unpack for a file that is no export, or was cut
// off or changed.
var ErrNotWhole = errors.New("it is no whole export of muxlet")

// Limits of an export, in what it is once it is unpacked.
type Limits struct {
	// Files, and Bytes of all of them.
	Files int
	Bytes int64
}

const (
	// longestEnvelope bounds a file that is read into memory to be checked, in bytes: a
	// list of contents is the longest.
	longestEnvelope = 512 << 20
	// longestRecord bounds the files in an envelope below the state directory, in bytes.
	longestRecord = 64 << 20
)

// Unpack reads an export to its end and checks it: every file is one of the kinds, is what
// the list of contents says, and of no newer version. With a directory to write into,
// which is empty, the files are there and synced when it returns; after an error there may
// be some. Names that lead elsewhere, links and devices are refused. The error matches
// ErrNotWhole or durable.ErrNewer where that is why.
func Unpack(ctx context.Context, r io.Reader, into string, kinds Kinds, limits Limits) (Summary, error) {
	u := &unpacker{ctx: ctx, into: into, kinds: kinds, limits: limits, files: map[string]File{}}
	u.Count = map[string]int{}
	zipped, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return Summary{}, fmt.Errorf("%w: %w", ErrNotWhole, err)
	}
	u.in = tar.NewReader(zipped)
	if err := u.header(); err != nil {
		return Summary{}, err
	}
	for !u.ended {
		if err := u.next(); err != nil {
			return Summary{}, err
		}
	}
	if _, err := u.in.Next(); !errors.Is(err, io.EOF) {
		return Summary{}, fmt.Errorf("%w: there is more behind its list of contents", ErrNotWhole)
	}
	// The checksum of the compressed file is behind its last block.
	if n, err := io.Copy(io.Discard, io.LimitReader(zipped, longestEnvelope)); err != nil || n == longestEnvelope {
		return Summary{}, fmt.Errorf("%w: its end is damaged", ErrNotWhole)
	}
	return u.Summary, u.syncFolders()
}

type unpacker struct {
	Summary
	ctx    context.Context
	into   string
	kinds  Kinds
	limits Limits
	in     *tar.Reader
	files  map[string]File
	ended  bool
	// folders that were made.
	folders []string
}

func (u *unpacker) header() error {
	h, err := u.in.Next()
	if err != nil || h.Name != headerName {
		return fmt.Errorf("%w: it does not begin with %s", ErrNotWhole, headerName)
	}
	return u.decode(h, &u.Header)
}

func (u *unpacker) decode(h *tar.Header, v any) error {
	if h.Typeflag != tar.TypeReg || h.Size > longestEnvelope {
		return fmt.Errorf("%w: %s is no file of it", ErrNotWhole, h.Name)
	}
	data, err := io.ReadAll(u.in)
	if err == nil {
		err = durable.Decode(data, Version, v)
	}
	switch {
	case errors.Is(err, durable.ErrNewer):
		return fmt.Errorf("read %s: %w", h.Name, err)
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrNotWhole, h.Name, err)
	}
	return nil
}

// next takes one file, or the list of contents.
func (u *unpacker) next() error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	h, err := u.in.Next()
	if err != nil {
		return fmt.Errorf("%w: it is cut off: %w", ErrNotWhole, err)
	}
	if h.Name == contentsName {
		u.ended = true
		return u.compare(h)
	}
	kind, err := u.admit(h)
	if err != nil {
		return err
	}
	f, isDamaged, err := u.take(h, kind)
	if err != nil {
		return err
	}
	u.files[f.Path] = f
	u.add(kind, f, isDamaged)
	return nil
}

// admit says whether a file may be in an export.
func (u *unpacker) admit(h *tar.Header) (Kind, error) {
	kind, known := u.kinds.of(h.Name)
	_, twice := u.files[h.Name]
	switch {
	case !fs.ValidPath(h.Name) || strings.ContainsAny(h.Name, "\\\x00") || strings.HasPrefix(path.Base(h.Name), durable.TempPrefix):
		return kind, fmt.Errorf("%w: it has the name %q, which leads elsewhere", ErrNotWhole, h.Name)
	case h.Typeflag != tar.TypeReg:
		return kind, fmt.Errorf("%w: %q is no regular file", ErrNotWhole, h.Name)
	case !known:
		return kind, fmt.Errorf("%w: %q is no file of a state", ErrNotWhole, h.Name)
	case twice:
		return kind, fmt.Errorf("%w: %q is there twice", ErrNotWhole, h.Name)
	case h.Size < 0 || kind.Version > 0 && h.Size > longestRecord:
		return kind, fmt.Errorf("%w: %q is too long", ErrNotWhole, h.Name)
	case u.Files >= u.limits.Files || h.Size > u.limits.Bytes-u.Bytes:
		return kind, fmt.Errorf("%w: it is more than %d files or %d bytes", ErrTooLarge, u.limits.Files, u.limits.Bytes)
	}
	return kind, nil
}

// ErrTooLarge is matched by the error of Unpack for more than its limits.
var ErrTooLarge = errors.New("the export is too large")

// take reads one file, and writes it where there is a directory for it.
func (u *unpacker) take(h *tar.Header, kind Kind) (f File, isDamaged bool, err error) {
	sum := sha256.New()
	f = File{Path: h.Name, Size: h.Size}
	if kind.Version == 0 {
		err = u.store(h, io.TeeReader(u.in, sum))
	} else {
		var data []byte
		if data, err = io.ReadAll(u.in); err == nil {
			sum.Write(data)
			isDamaged = damaged(data)
			f.Version, _ = durable.VersionIn(data)
			if f.Version > kind.Version {
				return f, false, fmt.Errorf("read %s: %w: version %d, this one reads up to %d", h.Name, durable.ErrNewer, f.Version, kind.Version)
			}
			err = u.store(h, strings.NewReader(string(data)))
		}
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) {
		err = fmt.Errorf("%w: it is cut off or damaged in %s: %w", ErrNotWhole, h.Name, err)
	}
	return f, isDamaged, err
}

func (u *unpacker) store(h *tar.Header, r io.Reader) error {
	if u.into == "" {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	name := filepath.Join(u.into, filepath.FromSlash(h.Name))
	if err := u.makeFolder(path.Dir(h.Name)); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// How long it is kept goes by its age.
	return os.Chtimes(name, time.Time{}, h.ModTime)
}

func (u *unpacker) makeFolder(folder string) error {
	if folder == "." {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(u.into, folder)); err == nil {
		return nil
	}
	if err := u.makeFolder(path.Dir(folder)); err != nil {
		return err
	}
	u.folders = append(u.folders, folder)
	return os.Mkdir(filepath.Join(u.into, folder), 0o700)
}

func (u *unpacker) syncFolders() error {
	if u.into == "" {
		return nil
	}
	err := durable.SyncDir(u.into)
	for _, folder := range u.folders {
		err = errors.Join(err, durable.SyncDir(filepath.Join(u.into, folder)))
	}
	return err
}

// compare wants the files to be those of the list.
func (u *unpacker) compare(h *tar.Header) error {
	var listed []File
	if err := u.decode(h, &listed); err != nil {
		return err
	}
	for _, f := range listed {
		if u.files[f.Path] != f {
			return fmt.Errorf("%w: %s is not as its list of contents says", ErrNotWhole, f.Path)
		}
	}
	if len(listed) != len(u.files) {
		return fmt.Errorf("%w: it has %d files, and its list of contents %d", ErrNotWhole, len(u.files), len(listed))
	}
	return nil
}
