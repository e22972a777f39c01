// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// publishClasses makes what is served of the client classes that which the manifests
// want, and tells those who watch what is another thing than before. c.mu is held,
// but for the first time.
func (c *Controller) publishClasses() {
	wanted := c.classObjects()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		o, before := wanted[name], c.classes[name]
		o.CreationTimestamp = metav1.NewTime(c.now())
		if before != nil {
			o.CreationTimestamp, o.ResourceVersion = before.CreationTimestamp, before.ResourceVersion
			if apiequality.Semantic.DeepEqual(before, o) {
				continue
			}
		}
		c.classes[name] = o
		c.journals.Classes.Put(name, o)
	}
	for name := range c.classes {
		if wanted[name] == nil {
			delete(c.classes, name)
			c.journals.Classes.Delete(name)
		}
	}
}

// classObjects are the built-in classes, and over them those that are declared.
func (c *Controller) classObjects() map[string]*spec.ClientClass {
	objects := map[string]*spec.ClientClass{}
	for _, class := range spec.BuiltInClasses() {
		objects[class.Name] = &class
	}
	for name, d := range c.desired.Classes {
		o := &spec.ClientClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if d.Class != nil {
			o = d.Class.DeepCopy()
		}
		o.Status = spec.ClientClassStatus{Source: d.Source()}
		objects[name] = o
	}
	for _, d := range c.desired.Sessions {
		if d.Session == nil || d.Presence == manifest.Removed {
			continue
		}
		if o := objects[d.Session.Spec.ClientClassName]; o != nil {
			o.Status.Sessions++
		}
	}
	for _, o := range objects {
		o.TypeMeta = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindClientClass}
	}
	return objects
}

// Classes lists the client classes by name.
func (c *Controller) Classes() spec.ClientClassList {
	<-c.loaded
	c.mu.Lock()
	defer c.mu.Unlock()
	list := spec.ClientClassList{ListMeta: metav1.ListMeta{ResourceVersion: c.journals.Classes.Revision()}}
	for _, name := range slices.Sorted(maps.Keys(c.classes)) {
		list.Items = append(list.Items, *c.classes[name].DeepCopy())
	}
	return list
}

// Class is one of them.
func (c *Controller) Class(name string) (spec.ClientClass, error) {
	<-c.loaded
	c.mu.Lock()
	defer c.mu.Unlock()
	class := c.classes[name]
	if class == nil {
		return spec.ClientClass{}, server.NewClassNotFound(name)
	}
	return *class.DeepCopy(), nil
}

// DeleteClass removes the document that declares the class. Sessions that have it go
// on with the class as it was.
func (c *Controller) DeleteClass(_ context.Context, name string) error {
	<-c.loaded
	c.mu.Lock()
	d, declared := c.desired.Classes[name]
	c.mu.Unlock()
	switch {
	case !declared && spec.IsBuiltInClass(name):
		return server.NewClassError(server.ReasonForbidden, name, "it is built in, and no document declares it")
	case !declared:
		return server.NewClassNotFound(name)
	case d.Reason == spec.ReasonDuplicateName:
		return server.NewClassError(server.ReasonConflict, name, d.Message)
	}
	if err := manifest.RemoveClass(d.File, name); err != nil && !errors.Is(err, manifest.ErrNotDeclared) {
		return uneditableClass(name, d.File, err)
	}
	c.refresh(func(s manifest.State) manifest.State { return manifest.DeletedClass(s, name) })
	return nil
}

func uneditableClass(name, file string, err error) error {
	switch {
	case errors.Is(err, manifest.ErrReadOnly):
		return server.NewClassError(server.ReasonForbidden, name, fmt.Sprintf("%s cannot be written: edit it where it comes from", file))
	case errors.Is(err, manifest.ErrChanged):
		return server.NewClassError(server.ReasonConflict, name, err.Error())
	}
	return server.NewClassError(server.ReasonInvalid, name, err.Error())
}
