// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/spec"
)

func TestDescribeTellsWhatAClientMayUse(t *testing.T) {
	s := runningSession("api", 4, 4711)
	spec.SetDefaults(&s.Spec)
	cli := newCLI(t, newFakeDaemon(s))
	assert.Equal(t, 0, cli.run("describe", "api"))
	assert.NotContains(t, cli.out, "Resources:", "nothing is limited, and nothing has a scope")

	s.Spec.Resources = spec.ResourcesSpec{OnUnsupported: spec.UnsupportedIgnore, Limits: spec.ResourceLimits{
		Memory: ptr.To(resource.MustParse("2Gi")), CPU: ptr.To(resource.MustParse("1500m")), Tasks: ptr.To[int32](200),
	}}
	cli = newCLI(t, newFakeDaemon(s))
	assert.Equal(t, 0, cli.run("describe", "api"))
	assert.Contains(t, cli.out, "Resources:\n  Limits:       memory 2Gi, cpu 1500m, tasks 200\n"+
		"  Unsupported:  limits that cannot be put in force are left out\n  Scope:        none: the client runs without its limits\n")

	s.Spec.Resources = spec.ResourcesSpec{}
	s.Status.Client.Scope = &spec.ScopeStatus{Name: "muxlet-i-u-4.scope", ControlGroup: "/does/not/exist"}
	cli = newCLI(t, newFakeDaemon(s))
	assert.Equal(t, 0, cli.run("describe", "api"))
	assert.Contains(t, cli.out, "Resources:\n  Limits:       none\n  Scope:        muxlet-i-u-4.scope\n")
}

func TestMemoryIsShownBesideItsLimit(t *testing.T) {
	s := runningSession("api", 4, 4711)
	s.Status.Client.Scope = &spec.ScopeStatus{Name: "muxlet-i-u-4.scope"}
	for want, use := range map[string]memoryUse{
		"  Memory:       30Mi of 60Mi (50%)\n": {30 << 20, 60 << 20, true},
		"  Memory:       30Mi\n":               {30 << 20, -1, true},
	} {
		d := &description{Session: &s, memory: use}
		d.resources()
		assert.Contains(t, d.written.String(), want)
	}
}
