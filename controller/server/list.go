// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muxlet/muxlet/spec"
)

var (
	sessionListTypeMeta = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: "SessionList"}
	eventTypeMeta       = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
	eventListTypeMeta   = metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}
)

func (a api) listSessions(c call) (any, error) {
	selector, err := selectorsOf(c, sessionFields(&spec.Session{}))
	if err != nil {
		return nil, err
	}
	if isWatch(c) {
		return a.watch(c, a.backend.Journals().Sessions, selector.matchesSession, func() Object {
			return &spec.Session{TypeMeta: sessionTypeMeta}
		})
	}
	all := a.backend.Sessions()
	list := spec.SessionList{TypeMeta: sessionListTypeMeta, ListMeta: all.ListMeta, Items: []spec.Session{}}
	for _, session := range all.Items {
		if selector.matchesSession(&session) {
			session.TypeMeta = sessionTypeMeta
			list.Items = append(list.Items, session)
		}
	}
	return list, asOf(c, a.backend.Journals().Sessions, list.ResourceVersion)
}

func (a api) listEvents(c call) (any, error) {
	selector, err := selectorsOf(c, eventFields(&corev1.Event{}))
	if err != nil {
		return nil, err
	}
	if isWatch(c) {
		return a.watch(c, a.backend.Journals().Events, selector.matchesEvent, func() Object {
			return &corev1.Event{TypeMeta: eventTypeMeta}
		})
	}
	session, _ := selector.fields.RequiresExactMatch(fieldInvolvedName)
	all := a.backend.Events(session)
	list := corev1.EventList{TypeMeta: eventListTypeMeta, ListMeta: all.ListMeta, Items: []corev1.Event{}}
	for _, event := range all.Items {
		if selector.matchesEvent(&event) {
			event.TypeMeta = eventTypeMeta
			list.Items = append(list.Items, event)
		}
	}
	return list, asOf(c, a.backend.Journals().Events, list.ResourceVersion)
}

// isWatch says whether the list is to go on. That the word is one of the two was
// checked with the selectors.
func isWatch(c call) bool {
	watch, err := boolParameter(c, "watch")
	return err == nil && watch
}

// asOf is nil when the present state, now, is one that the request asks for. No
// earlier one is kept, so an exact match of another is Expired, as is a version
// that this run of the daemon has not given out.
func asOf(c call, j *Journal, now string) error {
	query := c.URL.Query()
	version, match := query.Get("resourceVersion"), query.Get("resourceVersionMatch")
	switch {
	case query.Get("continue") != "":
		return NewError(metav1.StatusReasonExpired, "", "lists are given in one piece: list again without continue")
	case match != "" && match != string(metav1.ResourceVersionMatchExact) && match != string(metav1.ResourceVersionMatchNotOlderThan):
		return badRequest("resourceVersionMatch is %q: it must be %s or %s", match, metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan)
	case match != "" && version == "":
		return badRequest("resourceVersionMatch needs a resourceVersion")
	case version == "" || version == "0" || version == now:
		return nil
	}
	revision, err := parseRevision(version)
	if err != nil {
		return err
	}
	if match == string(metav1.ResourceVersionMatchExact) {
		return expired(revision, j.sequence.base)
	}
	return j.knows(revision)
}

const fieldInvolvedName = "involvedObject.name"

func sessionFields(s *spec.Session) fields.Set {
	return fields.Set{"metadata.name": s.Name, "metadata.namespace": spec.Namespace}
}

func eventFields(e *corev1.Event) fields.Set {
	return fields.Set{
		"metadata.name":       e.Name,
		"metadata.namespace":  spec.Namespace,
		"involvedObject.kind": e.InvolvedObject.Kind,
		fieldInvolvedName:     e.InvolvedObject.Name,
		"involvedObject.uid":  string(e.InvolvedObject.UID),
		"reason":              e.Reason,
		"type":                e.Type,
	}
}

type selectors struct {
	labels labels.Selector
	fields fields.Selector
}

// selectorsOf reads the selectors of a list. A field that is not known is an
// error: passing over it would list too much.
func selectorsOf(c call, known fields.Set) (selectors, error) {
	if _, err := boolParameter(c, "watch"); err != nil {
		return selectors{}, err
	}
	query := c.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return selectors{}, badRequest("the label selector %q is not valid: %v", query.Get("labelSelector"), err)
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return selectors{}, badRequest("the field selector %q is not valid: %v", query.Get("fieldSelector"), err)
	}
	for _, requirement := range byField.Requirements() {
		if !known.Has(requirement.Field) {
			return selectors{}, badRequest("the field %q cannot be selected by", requirement.Field)
		}
	}
	return selectors{byLabel, byField}, nil
}

func (s selectors) matchesSession(o Object) bool {
	session, ok := o.(*spec.Session)
	return ok && s.labels.Matches(labels.Set(session.Labels)) && (s.fields.Empty() || s.fields.Matches(sessionFields(session)))
}

func (s selectors) matchesEvent(o Object) bool {
	event, ok := o.(*corev1.Event)
	return ok && s.labels.Matches(labels.Set(event.Labels)) && (s.fields.Empty() || s.fields.Matches(eventFields(event)))
}
