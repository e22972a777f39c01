// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/config/schema"
)

// What the types of Kubernetes mean here. Their own comments speak of a cluster.
const (
	aboutAPIVersion = "apiVersion is the version of the form in which the document is written."
	aboutKind       = "kind says what the document declares."
	aboutMetadata   = "metadata is what every object has."
)

// namePattern is that of an RFC 1123 label.
const namePattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

const longestName = 63

// root is the schema of a kind of document.
func (b *builder) root(kind schema.Kind, t reflect.Type, at place) *schema.Schema {
	s := b.object(t, at)
	s.Title = kind.Kind
	s.Description = called(paragraphs(b.docsOf(t).doc.text), t.Name(), "A "+kind.Kind)
	s.Properties["apiVersion"] = constantWord(kind.Group+"/"+kind.Version, aboutAPIVersion)
	s.Properties["kind"] = constantWord(kind.Kind, aboutKind)
	s.Required = append([]string{"apiVersion", "kind"}, s.Required...)
	return s
}

// object of the API: a root with metadata, a spec and a status.
func (b *builder) apiObject(kind schema.Kind, t reflect.Type) *schema.Schema {
	s := &schema.Schema{
		Title:       kind.Kind,
		Description: called(paragraphs(b.docsOf(t).doc.text), t.Name(), "A "+kind.Kind),
		Type:        schema.Types{schema.Object},
		Additional:  &schema.Additional{},
		Required:    []string{"apiVersion", "kind", "metadata"},
		Properties: map[string]*schema.Schema{
			"apiVersion": constantWord(kind.Group+"/"+kind.Version, aboutAPIVersion),
			"kind":       constantWord(kind.Kind, aboutKind),
			"metadata":   metadata(kind),
		},
	}
	docs := b.docsOf(t)
	for f := range t.Fields() {
		name, optional := tagOf(f)
		if name != "spec" && name != "status" {
			continue
		}
		at := place{path: kind.Words[0] + "." + name, served: name == "status"}
		property := b.value(f.Type, at)
		property.Description = called(paragraphs(b.docsOf(f.Type).doc.text), f.Type.Name(), name)
		_, mayLack := docs.fields[f.Name].markers["optional"]
		if !optional && !mayLack {
			s.Required = append(s.Required, name)
		}
		s.Properties[name] = property
	}
	return s
}

func constantWord(word, about string) *schema.Schema {
	return &schema.Schema{Type: schema.Types{schema.String}, Enum: []string{word}, Description: about}
}

// metadata of an object. The fields that Kubernetes has besides are not used.
func metadata(kind schema.Kind) *schema.Schema {
	longest := int64(longestName)
	text := func(about string) *schema.Schema {
		return &schema.Schema{Type: schema.Types{schema.String}, Description: about}
	}
	dictionary := func(about string) *schema.Schema {
		return &schema.Schema{
			Type: schema.Types{schema.Object}, Description: about,
			Additional: &schema.Additional{Schema: &schema.Schema{Type: schema.Types{schema.String}}},
		}
	}
	name := text("name is the name of the " + kind.Kind + ", an RFC 1123 label: at most 63 of a-z, 0-9 and \"-\", with a letter or digit at both ends.")
	if kind.Kind == "Session" {
		name.Description += " It is that of the tmux session too."
	}
	name.Pattern, name.MaxLength = namePattern, &longest
	served := " It is served by the API; in a file it is passed over."
	created := text("creationTimestamp is when muxlet first knew the object." + served)
	created.Format = "date-time"
	s := &schema.Schema{
		Type: schema.Types{schema.Object}, Description: aboutMetadata,
		Required: []string{"name"}, Additional: &schema.Additional{},
		Properties: map[string]*schema.Schema{
			"name":              name,
			"labels":            dictionary("labels are words by which objects are chosen, with -l: at most 63 letters, digits, \"-\", \"_\" and \".\" each. An edit of them restarts nothing."),
			"annotations":       dictionary("annotations are texts for people and programs; muxlet does nothing with them."),
			"creationTimestamp": created,
			"uid":               text("uid tells the object from every other one of the same name, before it and after it." + served),
			"resourceVersion":   text("resourceVersion changes with each change of the object." + served),
		},
	}
	if kind.Kind != "ClientClass" {
		namespace := text("namespace may be left out: the only one is default.")
		namespace.Enum = []string{"default"}
		s.Properties["namespace"] = namespace
		s.Properties["generation"] = &schema.Schema{Type: schema.Types{schema.Integer}, Description: "generation counts the changes of the spec." + served}
	}
	return s
}

// condition is metav1.Condition.
func condition(served bool) *schema.Schema {
	text := func(about string) *schema.Schema {
		return &schema.Schema{Type: schema.Types{schema.String}, Description: about}
	}
	status := text("status is True, False or Unknown.")
	status.Enum = []string{string(metav1.ConditionTrue), string(metav1.ConditionFalse), string(metav1.ConditionUnknown)}
	since := text("lastTransitionTime is when the status last changed.")
	since.Format = "date-time"
	s := &schema.Schema{Type: schema.Types{schema.Object}, Properties: map[string]*schema.Schema{
		"type":               text("type is what the condition is about, such as Ready."),
		"status":             status,
		"reason":             text("reason is one word in CamelCase that says why."),
		"message":            text("message says it to a person."),
		"lastTransitionTime": since,
		"observedGeneration": {Type: schema.Types{schema.Integer}, Description: "observedGeneration is the generation of the spec that the condition is about."},
	}}
	if !served {
		s.Additional = &schema.Additional{}
	}
	return s
}
