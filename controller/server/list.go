// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"hash/fnv"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muxlet/muxlet/spec"
)

func (a api) listSessions(c call) (any, error) {
	selector, err := selectorsOf(c, sessionFields(&spec.Session{}))
	if err != nil {
		return nil, err
	}
	list := spec.SessionList{
		TypeMeta: metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: "SessionList"},
		Items:    []spec.Session{},
	}
	for _, session := range a.backend.Sessions() {
		if selector.matches(session.Labels, sessionFields(&session)) {
			session.TypeMeta = sessionTypeMeta
			list.Items = append(list.Items, session)
		}
	}
	list.ResourceVersion, err = versionOf(list.Items)
	return list, err
}

func (a api) listEvents(c call) (any, error) {
	selector, err := selectorsOf(c, eventFields(&corev1.Event{}))
	if err != nil {
		return nil, err
	}
	list := corev1.EventList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"},
		Items:    []corev1.Event{},
	}
	session, _ := selector.fields.RequiresExactMatch(fieldInvolvedName)
	for _, event := range a.backend.Events(session) {
		if selector.matches(event.Labels, eventFields(&event)) {
			event.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
			list.Items = append(list.Items, event)
		}
	}
	list.ResourceVersion, err = versionOf(list.Items)
	return list, err
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
	if err := refuseWatch(c); err != nil {
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

func (s selectors) matches(byLabel labels.Set, byField fields.Set) bool {
	return s.labels.Matches(byLabel) && s.fields.Matches(byField)
}

// versionOf is the resourceVersion of a list: equal for equal content.
func versionOf(items any) (string, error) {
	data, err := encode(items)
	if err != nil {
		return "", err
	}
	hash := fnv.New64a()
	if _, err := hash.Write(data); err != nil {
		return "", fmt.Errorf("hash the list: %w", err)
	}
	return strconv.FormatUint(hash.Sum64(), 10), nil
}
