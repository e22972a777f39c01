// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// verify looks for the conversation that is to be resumed where the client itself
// will look for it. Only here its environment is known: a profile may say where its
// config directory is. A client that finds nothing there would end, ask, or begin
// another conversation under the old id.
func (l *launcher) verify(order actuate.Order) *fault {
	if order.Class == nil || order.Class.Resume == nil || l.Evidence == nil {
		return nil
	}
	resume := order.Class.Resume
	found := l.Evidence(observe.ConversationRef{
		Class: &spec.ClientClassSpec{
			Reports: resume.Reports, ConfigDirectory: order.Class.ConfigDirectory,
			Conversation: spec.ClassConversation{Transcript: resume.Transcript, TranscriptPattern: resume.TranscriptPattern},
		},
		ID: resume.ID, Session: order.Session, Directory: order.Directory,
		Home: l.dirs.home, ConfigDirectory: l.dirs.config,
	})
	if found.Holder != 0 && found.Holder != l.self.PID {
		return &fault{reason: spec.ReasonConversationInUse, file: found.Path, message: fmt.Sprintf(
			"The client was not executed: the process %d has the conversation %s open; end that process, or leave the conversation there.", found.Holder, resume.ID)}
	}
	switch found.State {
	case observe.EvidenceResumable:
		return nil
	case observe.EvidenceAbsent, observe.EvidenceUnusable:
		return l.missing(order, found)
	case observe.EvidenceUnknown:
	}
	return &fault{reason: spec.ReasonConversationUnknown, file: found.Path, message: fmt.Sprintf(
		"The client was not executed: whether the conversation %s exists could not be read%s; give access to its files.", resume.ID, inBrackets(found.Message))}
}

// missing tells a conversation that is no more from one that was left in another
// config directory.
func (l *launcher) missing(order actuate.Order, found observe.Evidence) *fault {
	resume := order.Class.Resume
	if was := resume.ConfigDirectory; was != "" && was != l.dirs.config {
		return &fault{reason: spec.ReasonConversationElsewhere, file: found.Path, message: fmt.Sprintf(
			"The client was not executed: the conversation %s is in the config directory %s, and the client's is %s now; set %s and try again with `muxlet resume %s`, or begin a new conversation with `muxlet resume %s --fresh`.",
			resume.ID, was, orElse(l.dirs.config, "not known"), back(order.Class.ConfigDirectory.Env), order.Session, order.Session)}
	}
	what := "does not exist"
	if found.State == observe.EvidenceUnusable {
		what = "cannot be resumed"
	}
	return &fault{reason: spec.ReasonConversationMissing, file: found.Path, message: fmt.Sprintf(
		"The client was not executed: the conversation %s %s%s; put %s back, or begin a new conversation with `muxlet resume %s --fresh`.",
		resume.ID, what, inBrackets(found.Message), orElse(found.Path, "its file"), order.Session)}
}

func inBrackets(message string) string {
	if message == "" {
		return ""
	}
	return " (" + message + ")"
}

func orElse(path, unknown string) string {
	if path == "" {
		return unknown
	}
	return path
}

// back names what a person sets to have the old config directory back.
func back(variable string) string {
	if variable == "" {
		return "the old one again"
	}
	return variable + " to the old one again"
}
