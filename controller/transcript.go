// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Transcript says where the transcript of the session's conversation is, by a look of
// this moment. Its text is read by whoever asks, and never passes through the daemon.
func (c *Controller) Transcript(ctx context.Context, name string) (server.Transcript, error) {
	<-c.loaded
	ref, begun, err := c.transcriptRef(name)
	if err != nil {
		return server.Transcript{}, err
	}
	out := server.Transcript{Conversation: ref.ID, Reports: ref.Class.Reports}
	if ref.ID == "" {
		out.Message = "it has no conversation yet"
		return out, nil
	}
	found := make(chan observe.Evidence, 1)
	go func() { found <- c.Clients.Evidence(ref) }()
	var evidence observe.Evidence
	select {
	case <-ctx.Done():
		return out, ctx.Err()
	case <-c.Clock.After(answerPatience):
		evidence.Message = "its files could not be read in time"
	case evidence = <-found:
	}
	switch evidence.State {
	case observe.EvidenceResumable, observe.EvidenceUnusable:
		out.Path = evidence.Path
	case observe.EvidenceAbsent:
		out.Message = fmt.Sprintf("conversation %s has no transcript yet: its client writes one at the first turn", ref.ID)
		if begun {
			out.Message = fmt.Sprintf("the transcript of conversation %s is not there any more (%s)", ref.ID, evidence.Path)
		}
	case observe.EvidenceUnknown:
		if !begun && ref.ConfigDirectory == "" {
			out.Message = fmt.Sprintf("where the transcript of conversation %s is comes to be known when its client runs", ref.ID)
			return out, nil
		}
		return out, server.NewError(metav1.StatusReasonServiceUnavailable, name, fmt.Sprintf("session %q, conversation %s: %s", name, ref.ID, evidence.Message))
	}
	return out, nil
}

// transcriptRef is the conversation that the session has, and whether it has had a turn.
// The id is empty when there is none yet.
func (c *Controller) transcriptRef(name string) (ref observe.ConversationRef, begun bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[name]
	if s == nil {
		return ref, false, server.NewNotFound(name)
	}
	class, none := c.classInForce(s), ""
	switch {
	case class == nil || c.Clients == nil:
		none = "its client class is not known"
	case class.Spec.Conversation.Identity == "" || class.Spec.Conversation.Identity == spec.IdentityNone:
		none = fmt.Sprintf("a client of class %s has no conversation", class.Name)
	case class.Spec.Conversation.Transcript == "":
		none = fmt.Sprintf("class %s does not say where its transcripts are (spec.conversation.transcript)", class.Name)
	}
	if none != "" {
		return ref, false, server.NewError(server.ReasonNotFound, name, fmt.Sprintf("session %q: %s; \"muxlet logs %[1]s\" prints its screen", name, none))
	}
	ref = observe.ConversationRef{Class: class.Spec, Session: s.name}
	if known := s.rec.Conversation; known != nil {
		ref.ID, ref.Directory, ref.Home, ref.ConfigDirectory = known.ID, known.Directory, known.Home, known.ConfigDirectory
		begun = known.Begun
	}
	return ref, begun, nil
}
