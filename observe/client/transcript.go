// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/muxlet/muxlet/observe"
)

const (
	// maxTranscript is how much of a transcript is searched, in bytes, and maxLine how
	// much of one of its lines. What lies beyond proves nothing.
	maxTranscript = 1 << 30
	maxLine       = 16 << 20
	// settled is how old a file's last change must be for its time to tell changes
	// apart: file systems count in steps of several milliseconds.
	settled = 2 * time.Second
	// maxRemembered is how many files are remembered.
	maxRemembered = 8192
)

// transcript looks for the file that proves that a conversation can be resumed.
func (e *Eyes) transcript(ref observe.ConversationRef) observe.Evidence {
	if ref.Class.Conversation.Transcript == "" {
		return observe.Evidence{State: observe.EvidenceResumable, Message: "its class has no transcript to look at"}
	}
	glob, err := expandTranscript(ref)
	if err != nil {
		return observe.Evidence{Message: fmt.Sprintf("its transcript cannot be looked for: %v", err)}
	}
	wanted, _ := unescape(glob)
	line, err := lineOf(ref.Class.Conversation.TranscriptPattern)
	if err != nil {
		return observe.Evidence{Path: wanted, Message: err.Error()}
	}
	if earlier := e.memory.found(glob); earlier != "" && e.examine(earlier, line) == nil {
		return resumable(earlier)
	}
	paths, doubt := expandGlob(e.files(), glob)
	var unusable string
	for _, p := range paths {
		err := e.examine(p, line)
		switch {
		case err == nil:
			e.memory.remember(glob, p)
			return resumable(p)
		case errors.Is(err, errNotBegun):
			unusable = p
		case !provesAbsence(err) && doubt == nil:
			doubt = err
		}
	}
	switch {
	case doubt != nil:
		return observe.Evidence{Path: wanted, Message: fmt.Sprintf("its transcript could not be read: %v", doubt)}
	case unusable != "":
		return observe.Evidence{State: observe.EvidenceUnusable, Path: unusable, Message: "its transcript has no turn that could be resumed"}
	case e.homeless(ref, wanted):
		return observe.Evidence{Path: wanted, Message: fmt.Sprintf("the home directory %s is not there", ref.Home)}
	case e.swept(ref, wanted):
		return observe.Evidence{Path: wanted, Message: fmt.Sprintf("the config directory %s is not there, or is empty", ref.ConfigDirectory)}
	}
	return observe.Evidence{State: observe.EvidenceAbsent, Path: wanted, Message: "there is no transcript of it"}
}

func resumable(p string) observe.Evidence {
	return observe.Evidence{State: observe.EvidenceResumable, Path: p, Message: "its transcript was found"}
}

// homeless: the whole home directory is away, as one is that is not mounted yet.
// What lies in it is then not proven gone.
func (e *Eyes) homeless(ref observe.ConversationRef, wanted string) bool {
	if ref.Home == "" || !strings.HasPrefix(wanted, path.Clean(ref.Home)+"/") {
		return false
	}
	_, err := e.files().Stat(ref.Home)
	return err != nil
}

// swept: the config directory has nothing at all, though there were turns with it. So
// looks the place of a file system that is not mounted; what lies in it is then not
// proven gone.
func (e *Eyes) swept(ref observe.ConversationRef, wanted string) bool {
	if !ref.Ran || !strings.HasPrefix(wanted, path.Clean(ref.ConfigDirectory)+"/") {
		return false
	}
	names, err := e.files().Names(ref.ConfigDirectory)
	return err != nil || len(names) == 0
}

// errNotBegun says that a transcript was read and holds no turn.
var errNotBegun = errors.New("no line of it is a turn")

// lineRule says which line of a transcript proves that the conversation has begun.
type lineRule struct {
	pattern *regexp.Regexp
	text    string
}

func lineOf(pattern string) (lineRule, error) {
	if pattern == "" {
		return lineRule{}, nil
	}
	re := observe.Compiled(pattern)
	if re == nil {
		return lineRule{}, errors.New("the class's transcriptPattern is no regular expression")
	}
	return lineRule{re, pattern}, nil
}

// proves says whether the line counts. One that was cut off, or that another was
// glued to after a crash, is none of the client's: both are invalid JSON or have
// NULs inside.
func (r lineRule) proves(line []byte, jsonLines bool) bool {
	line = bytes.TrimRight(line, "\x00\r\n\t ")
	if len(line) == 0 || bytes.IndexByte(line, 0) >= 0 {
		return false
	}
	if r.pattern != nil && !r.pattern.Match(line) {
		return false
	}
	return !jsonLines || json.Valid(line)
}

// examine returns nil when a line of the file proves that the conversation has
// begun, errNotBegun when it was read and none does.
func (e *Eyes) examine(name string, rule lineRule) error {
	info, err := e.files().Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("reading %s: %w", name, errNotAFile)
	}
	f, err := e.files().Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("reading %s: %w", name, errNotAFile)
	}
	jsonLines := path.Ext(name) == ".jsonl"
	counts := func(line []byte) bool { return rule.proves(line, jsonLines) }
	key := memoryKey{name, rule.text}
	known, ok := e.memory.of(key)
	if ok && known.same(info) {
		if known.length == 0 && known.unchanged(info) {
			return errNotBegun
		}
		if known.length > 0 && known.standsIn(f, counts) {
			return nil
		}
	}
	return e.search(f, key, info, counts)
}

func (e *Eyes) search(f file, key memoryKey, info fs.FileInfo, counts func([]byte) bool) error {
	began := time.Now()
	at, length, err := findLine(io.LimitReader(f, maxTranscript), counts)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", key.name, err)
	case length == 0 && info.Size() > maxTranscript:
		return fmt.Errorf("reading %s: no turn in its first %d bytes", key.name, maxTranscript)
	case length > 0 || began.Sub(info.ModTime()) > settled:
		e.memory.keep(key, finding{info, at, length})
	}
	if length == 0 {
		return errNotBegun
	}
	return nil
}

// errLongLine says that a line was too long to be judged.
var errLongLine = fmt.Errorf("no turn, but a line of more than %d bytes", maxLine)

// findLine returns where the first line that counts is; length is 0 when none does.
func findLine(r io.Reader, counts func([]byte) bool) (at int64, length int, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	var size int
	long, blank := false, true
	for {
		chunk, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		if size += len(chunk); size <= maxLine {
			line = append(line, chunk...)
		}
		// A file of nothing but NULs is one long line, and leaves no doubt.
		blank = blank && len(bytes.TrimLeft(chunk, "\x00")) == 0
		long = long || size > maxLine && !blank
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if size <= maxLine && counts(line) {
			return at, size, nil
		}
		at, size, line, blank = at+int64(size), 0, line[:0], true
		if err != nil {
			break
		}
	}
	if long {
		return 0, 0, errLongLine
	}
	return 0, 0, nil
}

// finding is what is remembered of a file.
type finding struct {
	info fs.FileInfo
	// at and length of the line that counts; length 0: none does.
	at     int64
	length int
}

func (k finding) same(info fs.FileInfo) bool {
	return inode(k.info) == inode(info)
}

func (k finding) unchanged(info fs.FileInfo) bool {
	return k.info.Size() == info.Size() && k.info.ModTime().Equal(info.ModTime())
}

// standsIn reads the line again: a file that was emptied or overwritten is still the
// same file.
func (k finding) standsIn(f io.ReaderAt, counts func([]byte) bool) bool {
	line := make([]byte, k.length)
	n, err := f.ReadAt(line, k.at)
	return n == k.length && (err == nil || errors.Is(err, io.EOF)) && counts(line)
}

// place identifies a file, whatever it is called.
type place struct{ device, inode uint64 }

func inode(info fs.FileInfo) place {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return place{uint64(st.Dev), st.Ino}
	}
	return place{}
}
