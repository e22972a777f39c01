// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package tmux holds the configuration of muxlet's own tmux server. It writes
// nothing and is never the configuration of the person's own server.
package tmux

import (
	_ "embed"
	"strings"
	"unicode"
)

// Conf is the part of the configuration that is the same everywhere.
//
//go:embed muxlet.conf
var Conf []byte

// The keys that follow the prefix.
const (
	// KeyNext goes to the session that waits longest for a person.
	KeyNext = "N"
	// KeyPick opens the list of sessions.
	KeyPick = "g"
)

// Settings are what the rest of the configuration depends on.
type Settings struct {
	// Prefix is a key as tmux writes it, or None.
	Prefix string
	// Command is the argv by which muxlet is run: its absolute path, and the flags by which
	// it finds this daemon.
	Command []string
}

// Render is the content of the file with which the server is started, and which a running
// one can be given at any time. No byte of a path means anything to tmux or to a shell; a
// path with control characters, which tmux would change, gets no keys.
func Render(s Settings) []byte {
	var b strings.Builder
	b.Write(Conf)
	b.WriteString("\n# What follows depends on the settings and on where muxlet is.\n")
	line := func(words ...string) { b.WriteString(command(words) + "\n") }
	line("set-option", "-g", "prefix", s.Prefix)
	if s.Prefix != "None" {
		line("bind-key", "-T", "prefix", s.Prefix, "send-prefix")
	}
	if strings.ContainsFunc(strings.Join(s.Command, ""), unicode.IsControl) {
		return []byte(b.String())
	}
	// A format: each # of a path is doubled. What is printed, and an exit code, would be shown
	// over the pane.
	next := plain(shell(s.Command)) + " next --client #{q:client_name} >/dev/null 2>&1 || true"
	line("bind-key", "-N", "Go to the session that waits longest", "-T", "prefix", KeyNext, "run-shell", "-b", next)
	popup := []string{"display-popup", "-E", "-w", "80%", "-h", "70%"}
	for _, word := range s.Command {
		popup = append(popup, plain(word))
	}
	pick := command(append(popup, "pick", "--client", "#{client_name}"))
	line("bind-key", "-N", "Pick a session", "-T", "prefix", KeyPick, "run-shell", "-C", pick)
	return []byte(b.String())
}

// plain keeps tmux from expanding a word as a format.
func plain(word string) string { return strings.ReplaceAll(word, "#", "##") }

// shell is argv as a line for a shell.
func shell(argv []string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

// command is one command for tmux's parser. A ; at the end of a word would separate
// commands even when it is quoted.
func command(words []string) string { return shell(words) }

// quote makes one word for tmux's parser, and for a shell: nothing is expanded between
// single quotes, and a single quote is written outside of them.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
