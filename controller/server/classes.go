// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muxlet/muxlet/spec"
)

// ClassBackend is what the API speaks for where client classes are concerned, under
// the rules of Backend.
type ClassBackend interface {
	// Classes lists the built-in and the declared classes by name, as of the list's
	// resourceVersion. One that is declared and that no valid document was ever seen of
	// has an empty spec; status.source says why.
	Classes() spec.ClientClassList
	// Class is one of them. Error: NotFound.
	Class(name string) (spec.ClientClass, error)
	// DeleteClass removes the document that declares the class from its file. Errors:
	// NotFound, Conflict when several declare it, Forbidden, also for a class that is
	// only built in.
	DeleteClass(ctx context.Context, name string) error
}

var (
	classTypeMeta     = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindClientClass}
	classListTypeMeta = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindClientClass + "List"}
)

// NewClassError makes the error of a stable reason about a client class, as NewError
// does about a session.
func NewClassError(reason metav1.StatusReason, name, message string) *apierrors.StatusError {
	return newError(reason, resourceClasses, "client class", name, message)
}

// NewClassNotFound is the error about a client class that does not exist.
func NewClassNotFound(name string) *apierrors.StatusError {
	return NewClassError(ReasonNotFound, name, fmt.Sprintf("client class %q not found: \"muxlet get clientclasses\" lists those that exist", name))
}

func classFields(c *spec.ClientClass) fields.Set { return fields.Set{"metadata.name": c.Name} }

func (s selectors) matchesClass(o Object) bool {
	class, ok := o.(*spec.ClientClass)
	return ok && s.labels.Matches(labels.Set(class.Labels)) && (s.fields.Empty() || s.fields.Matches(classFields(class)))
}

func (a api) listClasses(c call) (any, error) {
	selector, err := selectorsOf(c, classFields(&spec.ClientClass{}))
	if err != nil {
		return nil, err
	}
	if isWatch(c) {
		return a.watch(c, a.backend.Journals().Classes, selector.matchesClass, func() Object {
			return &spec.ClientClass{TypeMeta: classTypeMeta}
		})
	}
	all := a.backend.Classes()
	list := spec.ClientClassList{TypeMeta: classListTypeMeta, ListMeta: all.ListMeta, Items: []spec.ClientClass{}}
	for _, class := range all.Items {
		if selector.matchesClass(&class) {
			class.TypeMeta = classTypeMeta
			list.Items = append(list.Items, class)
		}
	}
	return list, asOf(c, a.backend.Journals().Classes, list.ResourceVersion)
}

func (a api) getClass(c call) (any, error) {
	class, err := a.backend.Class(c.name)
	if err != nil {
		return nil, err
	}
	class.TypeMeta = classTypeMeta
	return class, nil
}

func (a api) deleteClass(c call) (any, error) {
	options, err := deleteOptions(c)
	if err != nil {
		return nil, err
	}
	if p := options.Preconditions; p != nil && p.UID != nil {
		return nil, NewClassError(ReasonConflict, c.name, "a client class has no uid, so that no precondition on one can hold")
	}
	if err := a.backend.DeleteClass(c.Context(), c.name); err != nil {
		return nil, err
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Group: spec.GroupVersion.Group, Kind: resourceClasses, Name: c.name},
	}, nil
}

// Classes lists the client classes that match the label selector; empty: all.
func (c *Client) Classes(ctx context.Context, selector string) (*spec.ClientClassList, error) {
	var list spec.ClientClassList
	return &list, c.call(ctx, http.MethodGet, classesPath, query("labelSelector", selector), &list)
}

// Class is one client class.
func (c *Client) Class(ctx context.Context, name string) (*spec.ClientClass, error) {
	var class spec.ClientClass
	return &class, c.onClass(ctx, http.MethodGet, name, &class)
}

// DeleteClass removes the document that declares the client class.
func (c *Client) DeleteClass(ctx context.Context, name string) error {
	return c.onClass(ctx, http.MethodDelete, name, nil)
}

func (c *Client) onClass(ctx context.Context, method, name string, into any) error {
	if !sendable(name) {
		return NewClassNotFound(name)
	}
	return c.call(ctx, method, classesPath+"/"+name, nil, into)
}

// FollowClasses is FollowSessions for client classes.
func (c *Client) FollowClasses(ctx context.Context, labelSelector, fieldSelector string, f Follower[spec.ClientClass]) error {
	return follow(ctx, c, classesPath, selection(labelSelector, fieldSelector), f, func(ctx context.Context, parameters url.Values) ([]spec.ClientClass, string, error) {
		var list spec.ClientClassList
		err := c.call(ctx, http.MethodGet, classesPath, parameters, &list)
		return list.Items, list.ResourceVersion, err
	})
}
