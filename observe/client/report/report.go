// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package report carries what the hooks of a client tell to the daemon: by a Unix
// socket, or through a spool on disk while the daemon is away. Nothing that a
// person or a model wrote leaves a hook: no prompt but its digest, no message, no input
// of a tool.
// Who sent a report is asked of the kernel and not of the report; whether it
// counts is decided by observe.Proves and by what the session's record says. A
// report that the daemon has answered with "ok" was handled; any other is spooled
// and handled later, perhaps a second time: who handles them drops those that are
// older than the last one that counted.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/muxlet/muxlet/observe"
)

// version of a line on the socket and of a spooled file.
const version = 1

// Version that a spooled report has at most. History: 1, the first.
const Version = version

// maxLine bounds a line on the socket, in bytes: the longest transcript path, all
// of it escaped.
const maxLine = 32 << 10

// maxPath bounds the path of a transcript, in bytes.
const maxPath = 4096

// message is one line on the socket. The chain is not in it: the listener reads its
// own.
type message struct {
	Version int            `json:"version"`
	Report  observe.Report `json:"report"`
}

// SpoolLink is where a hook that was given the socket's path finds the spool: a
// link beside the socket. It is there while the daemon is away, and the daemon of
// another version makes it anew.
func SpoolLink(socket string) string {
	return strings.TrimSuffix(socket, filepath.Ext(socket))
}

func encodeLine(r observe.Report) ([]byte, error) {
	r.Chain = nil
	line, err := json.Marshal(message{Version: version, Report: r})
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return append(line, '\n'), nil
}

func decodeLine(line []byte) (observe.Report, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return observe.Report{}, errors.New("malformed")
	}
	if m.Version != version {
		return observe.Report{}, fmt.Errorf("version %d is not %d", m.Version, version)
	}
	m.Report.Chain = nil
	return m.Report, check(m.Report)
}

// isWord says whether text is a client's own word for something: one without spaces
// in it, of at most 64 bytes.
func isWord(text string) bool { return isName(text, 64, "_.:-") }

// isIdentity says whether text may become a part of a command line and of a path.
func isIdentity(text string) bool { return isName(text, 128, "_.-") }

// isName wants letters and digits of ASCII and, but for the first, the marks. No
// regular expression: this package is a part of every start of muxlet, and those
// took 0.4 ms to compile.
func isName(text string, longest int, marks string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || strings.IndexByte(marks, c) < 0) {
			return false
		}
	}
	return text != "" && len(text) <= longest
}

// check refuses a report with anything in it that a hook does not write: it may
// have come from any process of this user.
func check(r observe.Report) error {
	switch {
	case !isIdentity(r.ID), !isIdentity(r.Class), r.At.IsZero():
		return errors.New("a report without id, class or time")
	case r.Conversation != "" && !isIdentity(r.Conversation):
		return errors.New("an odd conversation id")
	case r.Transcript != "" && !isPath(r.Transcript):
		return errors.New("an odd transcript")
	case r.Prompt != "" && !observe.IsPromptDigest(r.Prompt):
		return errors.New("an odd digest of a prompt")
	}
	for _, w := range []string{string(r.Kind), r.Event} {
		if !isWord(w) {
			return errors.New("an odd word")
		}
	}
	for _, w := range []string{r.Source, r.Failure} {
		if w != "" && !isWord(w) {
			return errors.New("an odd word")
		}
	}
	return nil
}

func isPath(path string) bool {
	return len(path) <= maxPath && filepath.IsAbs(path) && !strings.ContainsAny(path, "\x00\n\r")
}
