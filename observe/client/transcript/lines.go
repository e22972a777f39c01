// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
)

const (
	// MaxLine is the longest line that is read, in bytes.
	MaxLine = 16 << 20
	// firstBlock is how much is read at once from the end.
	firstBlock = 64 << 10
)

// ErrLongLine is the answer for a line of more than MaxLine. The next one can be read.
var ErrLongLine = fmt.Errorf("a line of more than %d bytes", MaxLine)

// File is a transcript that may grow while it is read.
type File struct {
	path string
	file *os.File
	in   *bufio.Reader
	// at is where the line begins that is read next, and rest what was read of it.
	at   int64
	rest []byte
	// size of that line so far.
	size int
}

// Open opens a transcript at its last entries, as entries counts those of a line; with n
// negative at its beginning. surplus is how many entries of the first line come before
// them. It does not wait for the writer of a pipe that has taken the file's place.
func Open(path string, n int, entries func(line []byte) int) (f *File, surplus int, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("open the transcript: %w", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the transcript %s: %w", path, err)
	}
	var at int64
	if n >= 0 {
		if at, surplus, err = startOfLast(file, info.Size(), n, entries); err != nil {
			return nil, 0, fmt.Errorf("read the transcript: %w", err)
		}
	}
	if _, err = file.Seek(at, io.SeekStart); err != nil {
		return nil, 0, fmt.Errorf("read the transcript: %w", err)
	}
	return &File{path: path, file: file, in: bufio.NewReaderSize(file, firstBlock), at: at}, surplus, nil
}

// Close ends the reading.
func (f *File) Close() error { return f.file.Close() }

// Next is the next whole line. The error is io.EOF when there is none yet, and ErrLongLine
// for one that is passed over. The line is good until the next call.
func (f *File) Next() ([]byte, error) {
	for {
		chunk, err := f.in.ReadSlice('\n')
		if f.size += len(chunk); f.size <= MaxLine {
			f.rest = append(f.rest, chunk...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read the transcript: %w", err)
		case err != nil:
			return nil, io.EOF
		}
		return f.take()
	}
}

// Unended is what stands behind the last whole line: one that is being written, or that
// was cut off.
func (f *File) Unended() []byte { return f.rest }

func (f *File) take() ([]byte, error) {
	line, size := f.rest, f.size
	f.at, f.rest, f.size = f.at+int64(size), f.rest[:0], 0
	if size > MaxLine {
		f.rest = nil
		return nil, ErrLongLine
	}
	return line, nil
}

// Replaced says whether another file has taken its place, or it was cut short.
func (f *File) Replaced() bool {
	now, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	mine, err := f.file.Stat()
	return err == nil && (!os.SameFile(now, mine) || now.Size() < f.at+int64(f.size))
}

// startOfLast finds, from the end, where the line begins that has the nth entry.
func startOfLast(f io.ReaderAt, size int64, n int, entries func([]byte) int) (at int64, surplus int, err error) {
	var rest []byte
	long, found, block := false, 0, int64(firstBlock)
	judge := func(line []byte, start int64) bool {
		if !long {
			found += entries(slices.Concat(line, rest))
		}
		rest, long = nil, false
		at = start
		return found >= n
	}
	for hi := size; hi > 0; {
		lo := max(0, hi-block)
		data := make([]byte, hi-lo)
		if _, err := f.ReadAt(data, lo); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		end, before := len(data), block
		for block = firstBlock; ; {
			i := bytes.LastIndexByte(data[:end], '\n')
			if i < 0 {
				break
			}
			if judge(data[i+1:end], lo+int64(i)+1) {
				return at, found - n, nil
			}
			end = i
		}
		if end == len(data) { // no line ends here: it is a long one
			block = min(2*before, MaxLine)
		}
		if long = long || len(rest)+end > MaxLine; long {
			rest = nil
		} else {
			rest = slices.Concat(data[:end], rest)
		}
		hi = lo
	}
	judge(nil, 0)
	return 0, max(0, found-n), nil
}
