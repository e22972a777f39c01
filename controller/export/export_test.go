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
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec/durable"
)

var (
	noon   = time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)
	header = Header{Muxlet: "v0.1.0", CreatedAt: noon, Host: "here", StateDir: "/state"}
	kinds  = Kinds{
		{Pattern: "instance", Version: 1},
		{Pattern: "records/*.json", Version: 2, Name: "session"},
		{Pattern: "records/*.json.prev", Version: 2},
		{Pattern: "turns/quarantine/*"},
		{Pattern: "turns/*/*.json", Version: 1, Name: "turn"},
		{Pattern: "turns/*/*.prompt"},
		{Pattern: "events/events.jsonl"},
		{Pattern: "backup/**"},
	}
	wide = Limits{Files: 1000, Bytes: 1 << 30}
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chtimes(path, noon, noon))
}

func envelope(t *testing.T, version int, v any) string {
	t.Helper()
	data, err := durable.Encode(version, v)
	require.NoError(t, err)
	return string(data)
}

// state is a directory with a file of each kind, and with what is none.
func state(t *testing.T) (dir string, files map[string]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	files = map[string]string{
		"instance": envelope(t, 1, "i"), "records/a.json": envelope(t, 2, "a"), "records/b.json": envelope(t, 1, "b"), "records/a.json.prev": envelope(t, 2, "a-"),
		"turns/a/1.json": envelope(t, 1, "t"), "turns/a/1.prompt": "do it", "turns/quarantine/a-2.json": "{", "events/events.jsonl": "{}\n{}\n",
		"backup/1/records/a.json": envelope(t, 1, "old"),
	}
	for name, text := range files {
		put(t, dir, name, text)
	}
	for _, name := range []string{"lock", "run/muxlet.sock", "worktrees/a/main.go", "records/.tmp-a", ".tmp-x", ".probe", "records/notes/x.json"} {
		put(t, dir, name, "not state")
	}
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "records", "link.json")))
	return dir, files
}

func packed(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	_, err := Pack(t.Context(), &out, dir, kinds, header)
	require.NoError(t, err)
	return out.Bytes()
}

func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(data)
		return err
	}))
	return all
}

func TestAStateComesBackAsItWas(t *testing.T) {
	dir, files := state(t)
	var out bytes.Buffer
	told, err := Pack(t.Context(), &out, dir, kinds, header)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"session": 2, "turn": 1}, told.Count)
	require.ElementsMatch(t, []string{"lock", "run", "worktrees", ".probe"}, told.LeftOut)
	into := t.TempDir()
	require.NoError(t, os.Chmod(into, 0o700))
	found, err := Unpack(t.Context(), bytes.NewReader(out.Bytes()), into, kinds, wide)
	require.NoError(t, err)
	require.Equal(t, files, contentOf(t, into))
	told.LeftOut = nil
	require.Equal(t, told, found)
	for name := range files {
		info, err := os.Stat(filepath.Join(into, name))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode(), name)
		require.True(t, info.ModTime().Equal(noon), "how long it is kept goes by its age: %s", name)
		parent, err := os.Stat(filepath.Dir(filepath.Join(into, name)))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), parent.Mode().Perm(), name)
	}
	again, err := Unpack(t.Context(), bytes.NewReader(out.Bytes()), "", kinds, wide)
	require.NoError(t, err)
	require.Equal(t, found, again, "without a directory it is only verified")
}

func TestWhatIsDamagedIsTakenAlongAndNamed(t *testing.T) {
	dir, _ := state(t)
	put(t, dir, "records/a.json", "{")
	put(t, dir, "events/events.jsonl", "{}\n{\"half")
	var out bytes.Buffer
	told, err := Pack(t.Context(), &out, dir, kinds, header)
	require.NoError(t, err)
	require.Equal(t, []string{"records/a.json"}, told.Damaged)
	into := t.TempDir()
	found, err := Unpack(t.Context(), &out, into, kinds, wide)
	require.NoError(t, err)
	require.Equal(t, []string{"records/a.json"}, found.Damaged)
	require.Equal(t, "{", contentOf(t, into)["records/a.json"])
	require.Equal(t, "{}\n", contentOf(t, into)["events/events.jsonl"], "a line that was just being written is none")
}

func TestADirectoryWithoutStateIsNotExported(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "lock", "1")
	_, err := Pack(t.Context(), io.Discard, dir, kinds, header)
	require.ErrorIs(t, err, ErrNoState)
	_, err = Pack(t.Context(), io.Discard, filepath.Join(dir, "missing"), kinds, header)
	require.ErrorIs(t, err, fs.ErrNotExist)
	state, _ := state(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Pack(ctx, io.Discard, state, kinds, header)
	require.ErrorIs(t, err, context.Canceled)
}

// An export beside a daemon has each file whole, and never a turn without its prompt.
func TestAnExportBesideAWriterHasEachFileWhole(t *testing.T) {
	dir, _ := state(t)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = durable.Write(filepath.Join(dir, "records", "a.json"), 2, strings.Repeat(fmt.Sprint(n%10), 5000))
			name := filepath.Join(dir, "turns", "a", fmt.Sprint(2+n%5))
			if _, err := os.Stat(name + ".json"); err == nil {
				_ = os.Remove(name + ".json")
				_ = os.Remove(name + ".prompt")
				continue
			}
			_ = durable.WriteFile(name+".prompt", []byte("x"), 0o600)
			_ = durable.Write(name+".json", 1, n)
		}
	}()
	for range 30 {
		found, err := Unpack(t.Context(), bytes.NewReader(packed(t, dir)), "", kinds, wide)
		require.NoError(t, err)
		require.Empty(t, found.Damaged)
	}
	close(stop)
	<-done
}

// part is one entry of a tar file.
type part struct {
	tar.Header
	text string
}

func file(name, text string) part {
	return part{tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o777}, text}
}

// forged is an export of these files, whose list of contents is right unless it is given.
func forged(t *testing.T, parts ...part) []byte {
	t.Helper()
	all := append([]part{file(headerName, envelope(t, Version, header))}, parts...)
	var list []File
	for _, p := range parts {
		if p.Name == contentsName {
			return raw(t, all...)
		}
		sum := sha256.Sum256([]byte(p.text))
		version, _ := durable.VersionIn([]byte(p.text))
		if known, _ := kinds.of(p.Name); known.Version == 0 {
			version = 0
		}
		list = append(list, File{p.Name, int64(len(p.text)), hex.EncodeToString(sum[:]), version})
	}
	return raw(t, append(all, file(contentsName, envelope(t, Version, list)))...)
}

func raw(t *testing.T, parts ...part) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, p := range parts {
		require.NoError(t, w.WriteHeader(&p.Header))
		_, err := io.WriteString(w, p.text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, zipped.Close())
	return out.Bytes()
}

func TestAnExportOfBadIntentIsRefused(t *testing.T) {
	link := func(kind byte, name, to string) part {
		return part{tar.Header{Typeflag: kind, Name: name, Linkname: to}, ""}
	}
	good := file("instance", envelope(t, 1, "i"))
	_, err := Unpack(t.Context(), bytes.NewReader(forged(t, good)), t.TempDir(), kinds, wide)
	require.NoError(t, err, "what is not of bad intent is taken")
	for name, data := range map[string][]byte{
		"a name with dots":          forged(t, file("records/../../x.json", "x")),
		"a name of the root":        forged(t, file("/etc/cron.d/x", "x")),
		"a name below another kind": forged(t, file("backup/../instance", "x")),
		"a folder with dots":        forged(t, file("backup/../../../x", "x")),
		"a name with a backslash":   forged(t, file(`backup/..\x`, "x")),
		"an unclean name":           forged(t, file("backup//x", "x")),
		"a temporary file":          forged(t, file("records/.tmp-x.json", "x")),
		"a lock":                    forged(t, file("lock", "1")),
		"a socket's place":          forged(t, file("run/muxlet.sock", "1")),
		"a program":                 forged(t, file("hooks/x.sh", "1")),
		"a link":                    forged(t, link(tar.TypeSymlink, "records/a.json", "/etc/passwd"), file("records/a.json", "x")),
		"a folder that is a link":   forged(t, link(tar.TypeSymlink, "backup", "/tmp")),
		"a hard link":               forged(t, link(tar.TypeLink, "instance", "/etc/passwd")),
		"a device":                  forged(t, link(tar.TypeChar, "instance", "")),
		"a pipe":                    forged(t, link(tar.TypeFifo, "instance", "")),
		"a folder":                  forged(t, link(tar.TypeDir, "records", "")),
		"a file twice":              forged(t, good, good),
		"a file that is a folder":   forged(t, file("backup/x", "x"), file("backup/x/y", "y")),
		"no header":                 raw(t, good),
		"nothing":                   nil,
		"no gzip":                   []byte("hello, world, this is text"),
		"an empty tar":              raw(t),
		"no list":                   raw(t, file(headerName, envelope(t, Version, header)), good),
		"an odd list":               forged(t, good, file(contentsName, "[]")),
		"a list of less":            forged(t, good, file(contentsName, envelope(t, Version, []File{}))),
		"a list of more":            forged(t, good, file(contentsName, envelope(t, Version, []File{{Path: "instance"}, {Path: "x"}}))),
		"more behind the list":      forged(t, good, file(contentsName, envelope(t, Version, []File{})), good),
	} {
		into := t.TempDir()
		outside, err := os.ReadDir(filepath.Dir(into))
		require.NoError(t, err)
		_, err = Unpack(t.Context(), bytes.NewReader(data), into, kinds, wide)
		require.Error(t, err, name)
		if name != "a file that is a folder" {
			require.ErrorIs(t, err, ErrNotWhole, name)
		}
		after, err := os.ReadDir(filepath.Dir(into))
		require.NoError(t, err)
		require.Len(t, after, len(outside), name)
	}
}

func TestAnExportThatIsCutOffOrChangedIsRefused(t *testing.T) {
	dir, _ := state(t)
	good := packed(t, dir)
	for n := 0; n < len(good); n += 7 {
		_, err := Unpack(t.Context(), bytes.NewReader(good[:n]), "", kinds, wide)
		require.ErrorIs(t, err, ErrNotWhole, "cut off at %d", n)
	}
	for n := 12; n < len(good); n += 5 {
		bad := bytes.Clone(good)
		bad[n] ^= 0x20
		_, err := Unpack(t.Context(), bytes.NewReader(bad), "", kinds, wide)
		require.Error(t, err, "changed at %d", n)
	}
}

func TestANewerStateIsRefused(t *testing.T) {
	for name, data := range map[string][]byte{
		"a record":   forged(t, file("records/a.json", envelope(t, 3, map[string]string{"novelty": "x"}))),
		"the format": raw(t, file(headerName, envelope(t, Version+1, header))),
		"the list":   forged(t, file("instance", envelope(t, 1, "i")), file(contentsName, envelope(t, Version+1, []File{}))),
	} {
		_, err := Unpack(t.Context(), bytes.NewReader(data), t.TempDir(), kinds, wide)
		require.ErrorIs(t, err, durable.ErrNewer, name)
	}
}

// A small file may be a large one once it is unpacked.
func TestAnExportThatIsTooLargeIsRefused(t *testing.T) {
	large := forged(t, file("backup/a", strings.Repeat("x", 1<<20)), file("backup/b", strings.Repeat("x", 1<<20)))
	require.Less(t, len(large), 10<<10)
	for _, limits := range []Limits{{Files: 10, Bytes: 2<<20 - 1}, {Files: 1, Bytes: 1 << 30}} {
		_, err := Unpack(t.Context(), bytes.NewReader(large), "", kinds, limits)
		require.ErrorIs(t, err, ErrTooLarge)
	}
	_, err := Unpack(t.Context(), bytes.NewReader(large), "", kinds, Limits{Files: 2, Bytes: 2 << 20})
	require.NoError(t, err)
}
