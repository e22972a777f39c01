// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
)

// counted is a fake slice in which kills are counted as the kernel does: the slice's count
// keeps those of scopes that are removed.
type counted struct {
	t     *testing.T
	tree  Tree
	w     *Watcher
	now   time.Time
	total int
}

func newCounted(t *testing.T) *counted {
	c := &counted{t: t, tree: fake(t), now: time.Now()}
	c.slice()
	w, err := NewWatcher(c.tree, func() time.Time { return c.now })
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	c.w = w
	return c
}

func (c *counted) write(group string, kills int) {
	path := filepath.Join(c.tree.path(group), eventsFile)
	require.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
	write(c.t, path, fmt.Sprintf("oom_kill %d\n", kills))
}

func (c *counted) slice() { c.write(c.tree.Slice, c.total) }

func (c *counted) scope(name string, kills int) observe.Scope {
	s := observe.Scope{Name: name, ControlGroup: filepath.Join(c.tree.Slice, name)}
	c.write(s.ControlGroup, kills)
	return s
}

// vanishes ends a scope in which that many kills were not read in time.
func (c *counted) vanishes(s observe.Scope, kills int) {
	// Written when it changes alone: a file is empty for a moment, a kernel's is not.
	if c.total += kills; kills > 0 {
		c.slice()
	}
	require.NoError(c.t, os.RemoveAll(c.tree.path(s.ControlGroup)))
}

// systemd removes a scope at once: the end of its client is told by the slice's count.
func TestAScopeThatIsGoneBeforeItsCountWasReadHasItFromTheSlice(t *testing.T) {
	c := newCounted(t)
	hog, other := c.scope("hog.scope", 0), c.scope("other.scope", 0)
	c.w.Watch(hog, "hog")
	c.w.Watch(other, "other")
	c.vanishes(hog, 1)
	c.vanishes(other, 0)
	assert.Equal(t, 1, c.w.OOM(hog).Kills)
	assert.Zero(t, c.w.OOM(other), "a kill is told of one scope only")
	c.w.Forget(hog)
	assert.Zero(t, c.w.OOM(other), "also when that one is forgotten")
}

func TestAScopeThatIsGoneBeforeItIsWatchedHasItsCountFromTheSlice(t *testing.T) {
	c := newCounted(t)
	hog := c.scope("hog.scope", 0)
	c.vanishes(hog, 1)
	c.w.Watch(hog, "hog")
	assert.Equal(t, 1, c.w.OOM(hog).Kills)
}

func TestAYoungScopesCountIsItsOwn(t *testing.T) {
	c := newCounted(t)
	c.total = 1
	c.slice()
	hog := c.scope("hog.scope", 1)
	c.w.Watch(hog, "hog")
	assert.Equal(t, 1, c.w.OOM(hog).Kills)
}

func TestWhatIsEndedInAScopeThatIsThereIsNotToldOfOneThatIsGone(t *testing.T) {
	c := newCounted(t)
	killed, family := c.scope("killed.scope", 0), c.scope("family.scope", 0)
	c.w.Watch(killed, "killed")
	c.w.Watch(family, "family")
	c.write(family.ControlGroup, 1)
	c.vanishes(killed, 0)
	c.total = 1
	c.slice()
	assert.Zero(t, c.w.OOM(killed))
	assert.Equal(t, 1, c.w.OOM(family).Kills)
}
