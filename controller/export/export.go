// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package export writes the state of muxlet into one file, and puts such a file in the
// place of a state directory. What it reads may be written meanwhile by a daemon: each
// file is exported whole, old or new. What it takes in is verified to the last byte before
// anything is touched. It never removes a state, and leaves sockets, locks, leases and
// workspaces where they are.
package export

import (
	"path"
	"strings"
	"time"
)

// Kind is one kind of files below the state directory.
type Kind struct {
	// Pattern of path.Match, or a folder with "/**" for all that is below it.
	Pattern string
	// Version that this program reads at most, of files in the envelope of package
	// durable; 0 for other files.
	Version int
	// Name by which a person is told how many there are; empty for none.
	Name string
}

// Kinds of files; the first that matches counts. What none matches is no state.
type Kinds []Kind

func (k Kinds) of(name string) (Kind, bool) {
	for _, kind := range k {
		folder, all := strings.CutSuffix(kind.Pattern, "**")
		if all && strings.HasPrefix(name, folder) && len(name) > len(folder) {
			return kind, true
		}
		if matched, _ := path.Match(kind.Pattern, name); matched {
			return kind, true
		}
	}
	return Kind{}, false
}

// folder says whether there can be state below a folder.
func (k Kinds) folder(name string) bool {
	depth := strings.Count(name, "/") + 1
	for _, kind := range k {
		if top, all := strings.CutSuffix(kind.Pattern, "/**"); all && (name == top || strings.HasPrefix(name, top+"/")) {
			return true
		}
		words := strings.Split(kind.Pattern, "/")
		if len(words) <= depth {
			continue
		}
		if matched, _ := path.Match(strings.Join(words[:depth], "/"), name); matched {
			return true
		}
	}
	return false
}

// The first and the last file of an export, which are in the envelope of package durable.
const (
	headerName   = "muxlet-state.json"
	contentsName = "contents.json"
	// Version of the format of an export. History: 1, the first.
	Version = 1
)

// Header says where an export comes from.
type Header struct {
	// Muxlet is the version of the program, CreatedAt when it began.
	Muxlet    string    `json:"muxlet"`
	CreatedAt time.Time `json:"createdAt"`
	// Host and StateDir that it is of.
	Host     string `json:"host,omitempty"`
	StateDir string `json:"stateDir"`
}

// File is one file of the contents.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Version of a file that has one; 0 where it is too damaged to tell.
	Version int `json:"version,omitempty"`
}

// Summary says what is in an export.
type Summary struct {
	Header
	// Files and Bytes of all of them, not packed.
	Files int
	Bytes int64
	// Count by the names of the kinds.
	Count map[string]int
	// Damaged are the paths of files that were damaged where they were exported.
	Damaged []string
	// LeftOut are the names of what else is in the state directory.
	LeftOut []string
}

func (s *Summary) add(kind Kind, f File, damaged bool) {
	s.Files++
	s.Bytes += f.Size
	if kind.Name != "" {
		s.Count[kind.Name]++
	}
	if damaged {
		s.Damaged = append(s.Damaged, f.Path)
	}
}
