// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable"
)

// Which clients ask for a person, since when, and what of it was seen outlives the
// daemon: ended work that nobody has looked at shows nothing of it on the screen any more,
// and who has looked through ten questions is not to do so again since muxlet was updated.

const (
	attentionVersion = 1
	// attentionEvery is the time between two writes.
	attentionEvery = time.Second
)

// asking is what is written down of one client that asks.
type asking struct {
	UID     string    `json:"uid"`
	Attempt string    `json:"attempt"`
	Asks    time.Time `json:"asks"`
	Seen    time.Time `json:"seen,omitzero"`
	// Question is the reason of what it asks; empty when it has ended work.
	Question string `json:"question,omitempty"`
}

func (c *Controller) attentionPath() string { return filepath.Join(c.StateDir, "attention.json") }

// loadAttention takes up what an earlier daemon knew of the clients that the records name.
// Without it questions ask again, and ended work does not.
func (c *Controller) loadAttention() {
	var all []asking
	if err := durable.Read(c.attentionPath(), attentionVersion, &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Error(err, "Who asks for attention is not known any more")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for _, a := range all {
		s := c.sessionOf(a.UID)
		if s == nil || s.rec.Client == nil || s.rec.Client.Attempt != a.Attempt || a.Asks.After(now) {
			continue
		}
		s.present().focus = focus{asks: a.Asks, seen: a.Seen, question: a.Question}
	}
}

// attentionChanged asks for what is written down to be brought up to date.
func (c *Controller) attentionChanged() {
	select {
	case c.attentionDue <- struct{}{}:
	default:
	}
}

// keepAttention writes down who asks for attention, when that changes, until ctx ends. No
// pass waits for it.
func (c *Controller) keepAttention(ctx context.Context) {
	saved := c.asking()
	for {
		select {
		case <-ctx.Done():
			c.saveAttention(saved)
			return
		case <-c.attentionDue:
		}
		saved = c.saveAttention(saved)
		select {
		case <-ctx.Done():
		case <-c.Clock.After(attentionEvery):
		}
	}
}

// saveAttention writes who asks now unless that is what is saved, and returns what is then.
// A file of a newer version stays as it is: of that load has told.
func (c *Controller) saveAttention(saved []asking) []asking {
	all := c.asking()
	if slices.Equal(all, saved) {
		return saved
	}
	err := c.keep().Write(c.attentionPath(), attentionVersion, all)
	if err != nil && !errors.Is(err, durable.ErrNewer) {
		c.Log.Error(err, "Who asks for attention was not written down")
		return saved
	}
	return all
}

// asking are the clients that ask for attention, in the order of their sessions' uids.
func (c *Controller) asking() []asking {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []asking
	for _, s := range c.sessions {
		if s.rec.Client == nil || s.telling == nil || s.telling.attempt != s.rec.Client.Attempt || s.telling.focus.asks.IsZero() {
			continue
		}
		f := s.telling.focus
		// As it is read again: without what a clock counts besides, in UTC.
		a := asking{UID: s.rec.UID, Attempt: s.telling.attempt, Asks: f.asks.Round(0).UTC(), Seen: f.seen.Round(0).UTC(), Question: f.question}
		if q := s.telling.sight.Attention; q != nil {
			a.Question = q.Reason
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b asking) int { return strings.Compare(a.UID, b.UID) })
	return all
}

// lastSight is what the client showed last: before the first look of this daemon, the
// question that it had for the one before.
func (t *telling) lastSight(is observe.Sight) observe.Sight {
	was, question := t.sight, t.focus.question
	if !was.At.IsZero() || question == "" {
		return was
	}
	was.Attention = &observe.Attention{Reason: question}
	if is.Attention != nil && is.Attention.Reason == question {
		was.Attention = is.Attention
	}
	return was
}
