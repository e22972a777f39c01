// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec/durable"
)

// ErrNoState is matched by the error of Pack for a directory without any.
var ErrNoState = errors.New("there is no state")

// Pack writes the state below dir to w: a tar file, compressed by gzip, of a header, the
// files and a list of them with their checksums. It may run beside the daemon.
func Pack(ctx context.Context, w io.Writer, dir string, kinds Kinds, header Header) (Summary, error) {
	p := &packer{ctx: ctx, dir: dir, kinds: kinds, Summary: Summary{Header: header, Count: map[string]int{}}}
	zipped := gzip.NewWriter(w)
	p.out = tar.NewWriter(zipped)
	if err := p.envelope(headerName, header); err != nil {
		return Summary{}, err
	}
	if err := p.folder(""); err != nil {
		return Summary{}, err
	}
	if len(p.files) == 0 {
		return Summary{}, fmt.Errorf("export state directory %s: %w", dir, ErrNoState)
	}
	if err := p.envelope(contentsName, p.files); err != nil {
		return Summary{}, err
	}
	if err := errors.Join(p.out.Close(), zipped.Close()); err != nil {
		return Summary{}, fmt.Errorf("write export: %w", err)
	}
	return p.Summary, nil
}

type packer struct {
	Summary
	ctx   context.Context
	dir   string
	kinds Kinds
	out   *tar.Writer
	files []File
}

// looks at a folder whose files come and go, until two in a row find the same.
const looks = 5

// content is a file as it was read.
type content struct {
	name string
	data []byte
	at   time.Time
}

// folder packs the files of a folder, and then those below it.
func (p *packer) folder(name string) error {
	if err := p.ctx.Err(); err != nil {
		return fmt.Errorf("export state directory %s: %w", p.dir, err)
	}
	files, folders, err := p.steady(name)
	if err != nil {
		return fmt.Errorf("export state directory %s: %w", p.dir, err)
	}
	for _, f := range files {
		if err := p.file(f); err != nil {
			return err
		}
	}
	for _, folder := range folders {
		if err := p.folder(folder); err != nil {
			return err
		}
	}
	return nil
}

// steady reads the files of a folder so that they belong together, where that can be had:
// a turn and its prompt come and go one after the other.
func (p *packer) steady(folder string) (files []content, folders []string, err error) {
	before, folders, err := p.list(folder)
	for range looks {
		if err != nil {
			return nil, nil, err
		}
		if files, err = p.read(before); err != nil {
			return nil, nil, err
		}
		if folder == "" {
			// These are independent of each other.
			break
		}
		var now []entry
		now, folders, err = p.list(folder)
		if slices.Equal(before, now) {
			break
		}
		before = now
	}
	return files, folders, err
}

// entry is a file of a folder as far as it tells that it was changed.
type entry struct {
	name string
	size int64
	at   int64
}

func (p *packer) list(folder string) (files []entry, folders []string, err error) {
	entries, err := os.ReadDir(filepath.Join(p.dir, folder))
	if err != nil && (folder == "" || !errors.Is(err, fs.ErrNotExist)) {
		return nil, nil, err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		if strings.HasPrefix(e.Name(), durable.TempPrefix) {
			continue
		}
		_, known := p.kinds.of(name)
		switch info, err := e.Info(); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, nil, err
		case known && e.Type().IsRegular():
			files = append(files, entry{name, info.Size(), info.ModTime().UnixNano()})
		case e.IsDir() && p.kinds.folder(name):
			folders = append(folders, name)
		case folder == "":
			p.leaveOut(name)
		}
	}
	return files, folders, nil
}

func (p *packer) leaveOut(name string) {
	if !slices.Contains(p.LeftOut, name) {
		p.LeftOut = append(p.LeftOut, name)
	}
}

func (p *packer) read(files []entry) ([]content, error) {
	var all []content
	for _, f := range files {
		kind, _ := p.kinds.of(f.name)
		data, at, err := readWhole(filepath.Join(p.dir, f.name), kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, content{f.name, data, at})
	}
	return all, nil
}

// rereads of a file that looks damaged: the older of two generations of a record is
// written anew in place (see record.Store.Read), and an event's line may be half there.
const rereads = 3

func readWhole(path string, kind Kind) (data []byte, at time.Time, err error) {
	for range rereads {
		if data, at, err = readOnce(path); err != nil {
			return nil, time.Time{}, err
		}
		if kind.Version == 0 || !damaged(data) {
			break
		}
	}
	if strings.HasSuffix(path, ".jsonl") {
		data = data[:bytes.LastIndexByte(data, '\n')+1]
	}
	return data, at, nil
}

func damaged(data []byte) bool {
	var any json.RawMessage
	return durable.Decode(data, math.MaxInt, &any) != nil
}

func readOnce(path string) ([]byte, time.Time, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	data, err := io.ReadAll(f)
	return data, info.ModTime(), err
}

func (p *packer) file(c content) error {
	kind, _ := p.kinds.of(c.name)
	sum := sha256.Sum256(c.data)
	f := File{Path: c.name, Size: int64(len(c.data)), SHA256: hex.EncodeToString(sum[:])}
	isDamaged := kind.Version > 0 && damaged(c.data)
	if kind.Version > 0 {
		f.Version, _ = durable.VersionIn(c.data)
	}
	p.files = append(p.files, f)
	p.add(kind, f, isDamaged)
	return p.write(c.name, c.data, c.at)
}

func (p *packer) envelope(name string, v any) error {
	data, err := durable.Encode(Version, v)
	if err != nil {
		return err
	}
	return p.write(name, data, p.CreatedAt)
}

func (p *packer) write(name string, data []byte, at time.Time) error {
	err := p.out.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: at.UTC(), Format: tar.FormatPAX,
	})
	if err == nil {
		_, err = p.out.Write(data)
	}
	if err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return nil
}
