// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesAreExpandedAsInKubernetes(t *testing.T) {
	known := map[string]string{"A": "alpha", "EMPTY": "", "B": "$(A)"}
	lookup := func(name string) (string, bool) { v, ok := known[name]; return v, ok }
	for in, want := range map[string]string{
		"":             "",
		"plain":        "plain",
		"$(A)":         "alpha",
		"x$(A)y$(A)z":  "xalphayalphaz",
		"$(EMPTY)":     "",
		"$(B)":         "$(A)",
		"$(UNKNOWN)":   "$(UNKNOWN)",
		"$$(A)":        "$(A)",
		"$$$(A)":       "$alpha",
		"$$$$(A)":      "$$(A)",
		"$A ${A} $(A":  "$A ${A} $(A",
		"costs 5$":     "costs 5$",
		"costs 5$$":    "costs 5$",
		"$(A) $( A) )": "alpha $( A) )",
	} {
		assert.Equal(t, want, Expand(in, lookup), in)
	}
}

func TestABuiltInClassHasNoRevision(t *testing.T) {
	c := ClientClass{Spec: ClientClassSpec{Start: ClassCommand{Command: []string{"a"}}}}
	declared := ClassRevision(&c)
	assert.NotEmpty(t, declared)
	c.Spec.Attention = []AttentionRule{{Pattern: "?", Reason: "Q"}}
	c.Spec.Engine.Executable = "a"
	assert.Equal(t, declared, ClassRevision(&c), "how a client is recognised restarts nobody")
	c.Spec.Resume.Command = []string{"b"}
	assert.NotEqual(t, declared, ClassRevision(&c))
	c.Status.BuiltIn = true
	assert.Empty(t, ClassRevision(&c))
}
