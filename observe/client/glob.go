// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// disk is what a look needs of a file system.
type disk interface {
	// Names of a directory, in order.
	Names(dir string) ([]string, error)
	Stat(name string) (fs.FileInfo, error)
	// Open a regular file for reading.
	Open(name string) (file, error)
}

// file is an open file.
type file interface {
	io.ReadCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

// system is the file system of this system.
type system struct{}

// Names of a directory, in order.
func (system) Names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Stat follows symbolic links.
func (system) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Open does not wait for the writer of a pipe that has taken the file's place.
func (system) Open(name string) (file, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (e *Eyes) files() disk {
	if e.disk != nil {
		return e.disk
	}
	return system{}
}

// errNotAFile says that something else than a regular file has a transcript's name.
var errNotAFile = errors.New("it is not a regular file")

// expandTranscript returns the class's glob with the values of ref, escaped: what a
// value has of a glob's characters stands for itself, so that the id of one
// conversation never matches the file of another.
func expandTranscript(ref observe.ConversationRef) (glob string, err error) {
	values := map[string]string{
		spec.VarHome: ref.Home, spec.VarConfigDirectory: ref.ConfigDirectory, spec.VarWorkspace: ref.Directory,
		spec.VarSessionName: ref.Session, spec.VarConversationID: ref.ID,
	}
	glob = spec.Expand(ref.Class.Conversation.Transcript, func(name string) (string, bool) {
		value, known := values[name]
		if known && value == "" {
			err = fmt.Errorf("%s is not known", name)
		}
		return escape(value), known
	})
	switch {
	case err != nil:
		return "", err
	case !path.IsAbs(glob):
		return "", errors.New("the class's transcript is no absolute path")
	}
	return glob, nil
}

// escape makes a text match itself only.
func escape(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`\*?[`, text[i]) >= 0 {
			out.WriteByte('\\')
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// unescape returns what a part of a glob stands for; plain is false when it may
// stand for several.
func unescape(part string) (text string, plain bool) {
	var out strings.Builder
	plain = true
	for i := 0; i < len(part); i++ {
		switch {
		case part[i] == '\\' && i+1 < len(part):
			i++
		case strings.IndexByte(`*?[`, part[i]) >= 0:
			plain = false
		}
		out.WriteByte(part[i])
	}
	return out.String(), plain
}

// expandGlob returns the paths that exist and match. The error is the first that
// proves nothing, such as one of a directory that could not be read; what was found
// in other places is returned all the same. filepath.Glob has no use here: it takes
// what it cannot read for empty.
func expandGlob(d disk, glob string) (found []string, doubt error) {
	found = []string{"/"}
	for _, part := range strings.Split(strings.Trim(glob, "/"), "/") {
		name, plain := unescape(part)
		if plain {
			for i := range found {
				found[i] = path.Join(found[i], name)
			}
			continue
		}
		var next []string
		for _, dir := range found {
			names, err := d.Names(dir)
			if err != nil && !provesAbsence(err) && doubt == nil {
				doubt = err
			}
			for _, n := range names {
				match, err := path.Match(part, n)
				if err != nil {
					return nil, fmt.Errorf("reading the class's transcript: %w", err)
				}
				if match {
					next = append(next, path.Join(dir, n))
				}
			}
		}
		found = next
	}
	there := found[:0]
	for _, name := range found {
		_, err := d.Stat(name)
		switch {
		case err == nil:
			there = append(there, name)
		case !provesAbsence(err) && doubt == nil:
			doubt = err
		}
	}
	return there, doubt
}

func provesAbsence(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
