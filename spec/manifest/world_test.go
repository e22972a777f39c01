// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// yamlOf is the smallest document of a session, with a marker to tell one
// version from another.
func yamlOf(name, marker string) string {
	return fmt.Sprintf(`apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata:
  name: %s
  labels: {marker: %q}
spec:
  client: {command: [sleep, "60"]}
  workspace: {directory: /tmp}
`, name, marker)
}

// invalidOf declares a name and is not valid.
func invalidOf(name string) string {
	return strings.Replace(yamlOf(name, ""), "workspace:", "workspaec:", 1)
}

// damagedOf does not parse; the name occurs in it.
func damagedOf(name string) string {
	return yamlOf(name, "") + "  client: [\n"
}

func goodOf(t *testing.T, name, marker string) *spec.Session {
	t.Helper()
	docs := spec.DecodeFile("x.yaml", []byte(yamlOf(name, marker)))
	require.Len(t, docs.Items, 1)
	require.NotNil(t, docs.Items[0].Session, docs.Items[0].Problems)
	return docs.Items[0].Session
}

// world is a file system and a set of records in memory, and drives Resolve the
// way a daemon does.
type world struct {
	t      *testing.T
	now    time.Time
	policy Policy
	files  map[string]string
	roots  []Root
	unread []Unread
	known  map[string]Known
	state  State
	set    DesiredSet
	// decoded by path and content.
	decoded map[string]spec.Documents
}

func newWorld(t *testing.T) *world {
	return &world{
		t:      t,
		now:    time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		policy: Policy{Settle: 3 * time.Second, GuardMin: 3, GuardPercent: 50},
		files:  map[string]string{},
		roots:  []Root{{Path: "/m", Access: Readable, Device: 7}},
		known:  map[string]Known{},

		decoded: map[string]spec.Documents{},
	}
}

// declare writes one file per name, <root>/<name>.yaml.
func (w *world) declare(names ...string) {
	for _, name := range names {
		w.files["/m/"+name+".yaml"] = yamlOf(name, "1")
	}
}

// remove deletes the files that declare wrote.
func (w *world) remove(names ...string) {
	for _, name := range names {
		delete(w.files, "/m/"+name+".yaml")
	}
}

func (w *world) decode(path string) spec.Documents {
	key := path + "\x00" + w.files[path]
	docs, found := w.decoded[key]
	if !found {
		docs = spec.DecodeFile(path, []byte(w.files[path]))
		w.decoded[key] = docs
	}
	return docs
}

func (w *world) reading() Reading {
	r := Reading{Unread: w.unread}
	for _, root := range w.roots {
		root.Documents = 0
		if root.Access != Readable {
			root.Device = 0
		}
		for _, path := range slices.Sorted(maps.Keys(w.files)) {
			if root.Access != Readable || !below(path, root.Path) {
				continue
			}
			docs := w.decode(path)
			root.Documents += documents(docs)
			r.Files = append(r.Files, File{Path: path, Documents: docs})
		}
		for _, u := range w.unread {
			if below(u.Path, root.Path) {
				root.Documents++
			}
		}
		r.Roots = append(r.Roots, root)
	}
	return r
}

// resolve reads once and keeps records of what is declared and valid.
func (w *world) resolve() DesiredSet {
	w.set, w.state = Resolve(w.state, w.reading(), slices.Collect(maps.Values(w.known)), w.now, w.policy)
	for name, d := range w.set.Sessions {
		switch {
		case d.Presence == Removed:
			delete(w.known, name)
		case d.Session != nil:
			k := w.known[name]
			k.Name, k.UID, k.LastGood, k.File, k.Held = name, "uid-"+name, d.Session, d.File, ""
			if d.Presence == Held {
				k.Held = d.Message
			}
			w.known[name] = k
		}
	}
	return w.set
}

// resolveAfter moves the clock first.
func (w *world) resolveAfter(d time.Duration) DesiredSet {
	w.now = w.now.Add(d)
	return w.resolve()
}

// restart forgets everything but the records.
func (w *world) restart() { w.state = State{} }

func (w *world) running(name string) {
	k := w.known[name]
	k.Running = true
	w.known[name] = k
}

func (w *world) requirePresence(want Presence, names ...string) {
	w.t.Helper()
	for _, name := range names {
		require.Equal(w.t, want, w.set.Sessions[name].Presence, "%s: %+v", name, w.set.Sessions[name])
	}
}

func marker(d Desired) string {
	if d.Session == nil {
		return "none"
	}
	return d.Session.Labels["marker"]
}
