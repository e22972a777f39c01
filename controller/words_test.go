// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/observe"
)

// listed is a listing whose strings are parts of one answer.
func listed() observe.Listing {
	answer := strings.Clone("3.3a i %1 @1 $1 a u")
	f := strings.Fields(answer)
	return observe.Listing{
		Server:   observe.Server{Version: f[0], Instance: f[1]},
		Panes:    []observe.Pane{{PaneID: f[2], WindowID: f[3], SessionID: f[4], SessionName: f[5], Labels: observe.Labels{UID: f[6]}}},
		Sessions: map[string]string{f[5]: f[4]}, Owned: map[string]string{f[6]: f[4]},
	}
}

func TestAListingKeepsNothingOfTheAnswerItCameIn(t *testing.T) {
	l, before := listed(), listed()
	w := words{}.own(&l)
	assert.Equal(t, before, l, "it says the same")
	whole := before.Server.Version
	assert.NotSame(t, unsafe.StringData(whole), unsafe.StringData(l.Server.Version))

	again := listed()
	w.own(&again)
	assert.Same(t, unsafe.StringData(l.Panes[0].Labels.UID), unsafe.StringData(again.Panes[0].Labels.UID), "the next one that says it shares it")
}

func TestWordsThatAreNotListedAnyMoreAreForgotten(t *testing.T) {
	l := listed()
	w := words{}.own(&l)
	assert.Contains(t, w, "%1")
	assert.NotContains(t, w.own(&observe.Listing{}), "%1")
}
