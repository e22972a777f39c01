// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// credential says which sessions fail together: those of one client class whose key
// comes from the same place or, without a key of their own, those that share a config
// directory. It never holds a key.
type credential string

// credentialOf is that of a session. A key in the shell's profile is not seen from
// here: there the config directory stands for it.
func credentialOf(class *plan.Class, sp *spec.SessionSpec, r record.Record, base []string) credential {
	source := keySource(class.Spec.Credentials.Env, &sp.Client)
	if source == "" {
		source = "directory:" + configDirectoryOf(class.Spec, &sp.Client, r, base)
	}
	return credential(class.Name + " " + source)
}

// keySource is where the session's own environment has a key from; empty when it has
// none. Which variables are in an env file is not looked at: whoever shares the files
// shares the key.
func keySource(names []string, client *spec.ClientSpec) string {
	for _, name := range names {
		for _, v := range slices.Backward(client.Env) {
			switch {
			case v.Name != name:
			case v.ValueFrom != nil && v.ValueFrom.FileRef != nil:
				return "file:" + v.ValueFrom.FileRef.Path
			default:
				sum := sha256.Sum256([]byte(v.Value))
				return "value:" + hex.EncodeToString(sum[:])
			}
		}
	}
	if len(names) == 0 || len(client.EnvFrom) == 0 {
		return ""
	}
	var files []string
	for _, from := range client.EnvFrom {
		if from.FileRef != nil {
			files = append(files, from.FileRef.Path)
		}
	}
	return "files:" + strings.Join(files, "\x00")
}

// configDirectoryOf is the config directory of the session's client: as its launcher
// has found it, else as the spec and the class have it.
func configDirectoryOf(class *spec.ClientClassSpec, client *spec.ClientSpec, r record.Record, base []string) string {
	if known := r.Conversation; known != nil && known.ConfigDirectory != "" {
		return known.ConfigDirectory
	}
	lookup := func(name string) (string, bool) {
		for _, v := range slices.Backward(client.Env) {
			if v.Name == name && v.ValueFrom == nil {
				return v.Value, true
			}
		}
		for _, pair := range base {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
	if dir, set := lookup(class.ConfigDirectory.Env); set && dir != "" {
		return dir
	}
	return spec.Expand(class.ConfigDirectory.Default, lookup)
}

// hold is a failure by which every client with one credential fails. It lives in
// memory: a client that has failed still shows it to the next daemon.
type hold struct {
	// reason of the failure, session that has failed, and since when.
	reason, session string
	since           time.Time
	// until is when one may be started again; stated says that the failure has told it.
	until  time.Time
	stated bool
	// trial is the session that may try meanwhile; empty when none may.
	trial string
}

// clamp moves a hold that lies in the future to now: the clock was set back, and no
// wait may grow by that. A time that the failure has stated is one of the clock.
func (h *hold) clamp(now time.Time) {
	ahead := h.since.Sub(now)
	if ahead <= 0 {
		return
	}
	h.since = now
	if !h.stated {
		h.until = h.until.Add(-ahead)
	}
}

// holds are the credentials that are held, and when the hold of each ended or a turn
// went well last: a failure from before that begins no other.
type holds struct {
	held  map[credential]*hold
	ended map[credential]time.Time
}

// credentialFor is the credential of a session by the spec in force. c.mu is held.
func (c *Controller) credentialFor(s *session, class *plan.Class) (credential, bool) {
	sp, _ := c.declared(s)
	if sp == nil || class == nil || class.Spec == nil {
		return "", false
	}
	return credentialOf(class, sp, s.rec, c.Base), true
}

// noteFailure begins a hold when a client shows a failure by which others would fail
// alike. Only that it is new counts: a failure stays on a screen for days. c.mu is
// held.
func (c *Controller) noteFailure(s *session, class *plan.Class, before, sight observe.Sight) {
	failure := sight.Failure
	key, ok := c.credentialFor(s, class)
	if !ok {
		return
	}
	if failure == nil || failure.Retry != spec.RetryHold {
		if h := c.holds.held[key]; h != nil && h.session == s.name && failure == nil && before.Failure != nil {
			c.endHold(key, fmt.Sprintf("session %s has gone on without the failure", s.name))
		}
		return
	}
	h := c.holds.held[key]
	until, stated := failure.Until, !failure.Until.IsZero()
	if !stated {
		until = failure.At.Add(c.policy().BackOffMax)
	}
	switch {
	case !failure.At.After(c.holds.ended[key]), stated && !until.After(c.now()):
		return
	case h != nil:
		if until.After(h.until) {
			h.until, h.stated, h.trial = until, stated, ""
		}
		return
	}
	c.holds.held[key] = &hold{reason: failure.Reason, session: s.name, since: failure.At, until: until, stated: stated}
	c.tellHold(s, key, c.holds.held[key])
	c.queue.AddAfter(s.name, until.Sub(c.now()))
	c.enqueueCredential(key)
}

// tellHold is the one event about a hold. c.mu is held.
func (c *Controller) tellHold(s *session, key credential, h *hold) {
	message := fmt.Sprintf("The client's turn has failed (%s); %s", h.reason, share(len(c.sessionsWith(key))-1))
	if h.stated {
		message += fmt.Sprintf(": nothing that uses it is started before %s, as the client told", h.until.UTC().Format(time.RFC3339))
	} else {
		message += fmt.Sprintf(": nothing that uses it is started until a turn goes well; one is tried after %s. muxlet resume %s tries at once",
			h.until.Sub(h.since).Round(time.Second), s.name)
	}
	c.tell(s.name, s.rec.UID, plan.Event{Type: plan.Warning, Reason: h.reason, Message: message})
}

func share(others int) string {
	switch others {
	case 0:
		return "no other session shares the credential"
	case 1:
		return "1 other session shares the credential"
	}
	return fmt.Sprintf("%d other sessions share the credential", others)
}

// sessionsWith are the sessions of one credential. c.mu is held.
func (c *Controller) sessionsWith(key credential) (names []string) {
	for name, s := range c.sessions {
		if k, ok := c.credentialFor(s, c.classInForce(s)); ok && k == key {
			names = append(names, name)
		}
	}
	return names
}

// enqueueCredential asks for a look at each session of a credential. c.mu is held.
func (c *Controller) enqueueCredential(key credential) {
	for _, name := range c.sessionsWith(key) {
		c.queue.Add(name)
	}
}

// endHold ends a hold, with one event. c.mu is held.
func (c *Controller) endHold(key credential, why string) {
	h := c.holds.held[key]
	if h == nil {
		return
	}
	delete(c.holds.held, key)
	c.holds.ended[key] = c.now()
	uid := ""
	if s := c.sessions[h.session]; s != nil {
		uid = s.rec.UID
	}
	c.tell(h.session, uid, plan.Event{Type: plan.Normal, Reason: spec.ReasonRecovered, Message: fmt.Sprintf(
		"Sessions that share the credential are started again after %s: %s", h.reason, why)})
	c.enqueueCredential(key)
}

// noteTurn ends a hold when a turn of any of its sessions goes well. Without one it is
// remembered: what a daemon finds of another session when it starts may be an older
// failure. c.mu is held.
func (c *Controller) noteTurn(s *session, at time.Time) {
	key, ok := c.credentialFor(s, c.classInForce(s))
	if !ok || at.IsZero() {
		return
	}
	if h := c.holds.held[key]; h != nil && at.After(h.since) {
		c.endHold(key, fmt.Sprintf("a turn of session %s went well", s.name))
	}
	if at.After(c.holds.ended[key]) {
		c.holds.ended[key] = at
	}
}

// noteTurnAt is noteTurn for a turn that a client's own files tell of.
func (c *Controller) noteTurnAt(name string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[name]; s != nil {
		c.noteTurn(s, at)
	}
}

// holdOf is why nothing of the session's credential is started; zero when nothing is
// held. When the time is over that a failure has stated, the hold ends; without one a
// single session is tried at a time. A person's wish ends it too: they may have logged
// in, and the next failure begins another.
func (c *Controller) holdOf(s *session, class *plan.Class, starting bool) plan.Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.holds.held) == 0 {
		return plan.Hold{}
	}
	key, ok := c.credentialFor(s, class)
	h := c.holds.held[key]
	if !ok || h == nil {
		return plan.Hold{}
	}
	now, demand := c.now(), s.rec.Demand
	h.clamp(now)
	switch {
	case demand != nil && demand.At.After(h.since):
		c.endHold(key, fmt.Sprintf("a person asked for session %s", s.name))
		return plan.Hold{}
	case h.stated && !h.until.After(now):
		c.endHold(key, "the time is over that the failure had stated")
		return plan.Hold{}
	case h.trial == s.name:
		return plan.Hold{}
	case starting && !h.until.After(now):
		h.trial, h.until = s.name, now.Add(c.policy().BackOffMax)
		return plan.Hold{}
	}
	return plan.Hold{Reason: h.reason, Session: h.session, Until: h.until}
}
