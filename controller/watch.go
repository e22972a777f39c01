// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/spec"
)

// Journals are the changes of what is served.
func (c *Controller) Journals() *server.Journals { return c.journals }

// publish tells those who watch what is served of a session from now on, if that
// is another thing than before. At rest it compares and copies nothing. c.mu is
// held.
func (c *Controller) publish(s *session) {
	sp, labels := c.declared(s)
	if p := s.published; p != nil && string(p.UID) == s.rec.UID && p.Generation == s.rec.Generation &&
		p.CreationTimestamp.Time.Equal(createdAt(s)) && maps.Equal(p.Labels, labels) &&
		(s.publishedSpec == sp || apiequality.Semantic.DeepEqual(s.publishedSpec, sp)) &&
		sameStatus(&p.Status, &s.status) {
		return
	}
	s.published, s.publishedSpec = c.compose(s), sp
	c.journals.Sessions.Put(s.name, s.published)
	c.count(s, spec.DisplayStatus(s.published))
	c.noteWaiting(s, s.published)
}

// count notes under which word a session is served; empty when it is served no more. c.mu is
// held.
func (c *Controller) count(s *session, word spec.Status) {
	if s.word != "" {
		c.census[s.word]--
	}
	if word != "" {
		c.census[word]++
	}
	s.word = word
}

// declared is what the session is declared as: by its record, or by its document
// while there is none. c.mu is held.
func (c *Controller) declared(s *session) (*spec.SessionSpec, map[string]string) {
	if d := c.desired.Sessions[s.name]; s.rec.UID == "" && d.Session != nil {
		return &d.Session.Spec, d.Session.Labels
	}
	return s.rec.Spec, s.rec.Labels
}

// retract tells those who watch that a session is served no more. c.mu is held.
func (c *Controller) retract(s *session) {
	if s.published != nil {
		c.journals.Sessions.Delete(s.name)
		s.published = nil
		c.count(s, "")
		c.noteWaiting(s, nil)
	}
}

// compose is the session as it is served. c.mu is held.
func (c *Controller) compose(s *session) *spec.Session {
	r := s.rec
	r.Name, r.CreatedAt = s.name, createdAt(s)
	r.Spec, r.Labels = c.declared(s)
	o := sessionObject(r)
	s.status.DeepCopyInto(&o.Status)
	if len(s.status.Conditions) == 0 {
		o.Status = unvisited(r.Incarnation)
	}
	return o
}

// object is the session as a list or a get serves it: what was published last,
// with the words that grow old by themselves as they are now. c.mu is held.
func (c *Controller) object(s *session) spec.Session {
	if s.published == nil {
		return *c.compose(s)
	}
	o := *s.published.DeepCopy()
	if len(s.status.Conditions) > 0 {
		s.status.DeepCopyInto(&o.Status)
	}
	return o
}

// Events about a session, or all of them.
func (c *Controller) Events(session string) corev1.EventList {
	objects, version := c.journals.Events.List()
	list := corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, o := range objects {
		if e, ok := o.(*corev1.Event); ok && (session == "" || e.InvolvedObject.Name == session) {
			list.Items = append(list.Items, *e.DeepCopy())
		}
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return list
}

// publishEvents passes on what the recorder keeps and what it drops.
func (c *Controller) publishEvents() {
	if c.Recorder == nil {
		return
	}
	// Ordered as they are numbered, whatever their length.
	key := func(id int64) string { return fmt.Sprintf("%020d", id) }
	c.Recorder.Follow(
		func(e status.Event) {
			o := e.Object()
			c.journals.Events.Put(key(e.ID), &o)
		},
		func(id int64) { c.journals.Events.Delete(key(id)) },
	)
}
