// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/muxlet/muxlet/spec"
)

// Notification is what a person is told: of one session, or of several together. It has
// nothing of a prompt, a conversation or a screen.
type Notification struct {
	Event spec.NotificationEvent
	// Sessions are their names, the one that waits longest first; what follows is about
	// that one.
	Sessions []string
	// Reason and Message of the condition, Since when it holds.
	Reason, Message string
	Since           time.Time
	// Directory in which its client runs, Labels that it has.
	Directory string
	Labels    map[string]string
	// Turn that has ended; empty when it was not sent through muxlet, or none has.
	Turn string
	// Test is true of one that a person tries.
	Test bool
}

// NotificationWay is how a person is told.
type NotificationWay struct {
	// Command is their program and its arguments; empty for none. It is killed with its
	// process group after Timeout.
	Command []string
	Timeout time.Duration
	// Terminal are the ways of the terminals that are attached to muxlet's tmux server.
	Terminal []spec.TerminalNotification
}

// None says that nobody is told.
func (w NotificationWay) None() bool { return len(w.Command) == 0 && len(w.Terminal) == 0 }

// NotificationOutcome is what came of telling a person.
type NotificationOutcome struct {
	// Took is how long the command ran; zero without one.
	Took time.Duration
	// CommandErr says why the command has told nobody; nil when it exited with 0.
	CommandErr error
	// Terminals is how many took it; TerminalErr says why others, or all, did not.
	Terminals   int
	TerminalErr error
}

// environNames and environBytes bound what stands in one variable: the kernel takes 128 KiB.
const (
	environNames = 1000
	environBytes = 64 << 10
)

// Environ is the notification as NAME=value, for the person's command.
func (n Notification) Environ() []string {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(n.Labels)) {
		labels = append(labels, name+"="+n.Labels[name])
	}
	joined := strings.Join(labels, ",")
	if len(joined) > environBytes {
		joined = ""
	}
	since := ""
	if !n.Since.IsZero() {
		since = n.Since.UTC().Format(time.RFC3339)
	}
	environ := []string{
		"MUXLET_EVENT=" + string(n.Event), "MUXLET_SESSION=" + n.first(), "MUXLET_SESSIONS=" + strings.Join(n.Sessions[:min(len(n.Sessions), environNames)], " "),
		"MUXLET_COUNT=" + strconv.Itoa(len(n.Sessions)), "MUXLET_REASON=" + n.Reason, "MUXLET_MESSAGE=" + n.Text(),
		"MUXLET_SINCE=" + since, "MUXLET_DIRECTORY=" + strings.ReplaceAll(n.Directory, "\x00", ""),
		"MUXLET_LABELS=" + joined, "MUXLET_TURN=" + n.Turn, "MUXLET_ATTACH=muxlet attach " + n.first(),
	}
	if n.Test {
		environ = append(environ, "MUXLET_TEST=true")
	}
	return environ
}

func (n Notification) first() string {
	if len(n.Sessions) == 0 {
		return ""
	}
	return n.Sessions[0]
}

// named is how many sessions are named in a text.
const named = 5

// textRunes bounds a text: notifications are small.
const textRunes = 300

// Text is one line for a person, without control characters.
func (n Notification) Text() string {
	text := fmt.Sprintf("%s %s", n.first(), n.one())
	if count := len(n.Sessions); count > 1 {
		text = fmt.Sprintf("%d sessions %s: %s", count, n.many(), strings.Join(n.Sessions[:min(count, named)], ", "))
		if count > named {
			text += fmt.Sprintf(" and %d more", count-named)
		}
	}
	return Plain(text, textRunes)
}

func (n Notification) one() string {
	verb := map[spec.NotificationEvent]string{
		spec.NotifyInputRequired: "waits for you", spec.NotifyStalled: "is stuck", spec.NotifyTurnCompleted: "has ended its turn",
	}[n.Event]
	switch {
	case n.Event == spec.NotifyTurnCompleted && n.Reason == spec.ReasonCompleted:
		return verb
	case n.Message == "":
		return fmt.Sprintf("%s (%s)", verb, n.Reason)
	}
	return fmt.Sprintf("%s (%s): %s", verb, n.Reason, n.Message)
}

func (n Notification) many() string {
	return map[spec.NotificationEvent]string{
		spec.NotifyInputRequired: "wait for you", spec.NotifyStalled: "are stuck", spec.NotifyTurnCompleted: "have ended their turns",
	}[n.Event]
}

// Plain is text in one line of at most so many characters, in which nothing tells a
// terminal to do anything: control and format characters are spaces, and what is no
// UTF-8 is replaced.
func Plain(text string, limit int) string {
	harmless := func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}
	// What comes behind is never looked at, however long it is.
	if most := 4 * limit; len(text) > most {
		text = text[:most]
	}
	runes := []rune(strings.Join(strings.Fields(strings.Map(harmless, strings.ToValidUTF8(text, "\uFFFD"))), " "))
	if len(runes) > limit {
		runes = append(runes[:limit-1], '…')
	}
	return string(runes)
}
