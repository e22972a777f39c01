// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// steps by how often they are taken. One that cannot be taken now says false.
var steps = []struct {
	weight int
	take   func(*editing) bool
}{
	{20, (*editing).editCommand},
	{12, (*editing).editPolicy},
	{12, (*editing).editComment},
	{8, (*editing).rewrite},
	{9, (*editing).breakDocument},
	{7, (*editing).mend},
	{6, (*editing).renameFile},
	{8, (*editing).move},
	{5, (*editing).remove},
	{7, (*editing).addAgain},
	{6, (*editing).switchBranch},
	{6, (*editing).suspend},
	{6, (*editing).resume},
	{3, (*editing).restart},
	{2, (*editing).deleteVerb},
	{1, (*editing).switchToFew},
}

// step takes one that can be taken.
func (e *editing) step() {
	e.Helper()
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	for {
		n := e.IntN(total)
		for _, s := range steps {
			if n -= s.weight; n < 0 {
				if s.take(e) {
					return
				}
				break
			}
		}
	}
}

// sound: a document that is good.
func sound(_ string, d declaration) bool { return d.fault == faultless }

func (e *editing) editCommand() bool {
	name, d, ok := e.pick(sound)
	if !ok {
		return false
	}
	e.did("edit the command of %s", name)
	e.replace(d, commandField.ReplaceAllLiteralString(d.text, "    command: ["+e.command()+"]"))
	e.settle()
	return true
}

func (e *editing) editPolicy() bool {
	name, d, ok := e.pick(sound)
	if !ok {
		return false
	}
	e.did("edit a policy of %s", name)
	e.version++
	e.replace(d, graceField.ReplaceAllLiteralString(d.text, fmt.Sprintf("  terminationGracePeriodSeconds: %d", 5+e.version%100)))
	e.settle()
	return true
}

func (e *editing) editComment() bool {
	name, d, ok := e.pick(sound)
	if !ok {
		return false
	}
	e.did("edit comments around %s", name)
	e.version++
	comment := fmt.Sprintf("# remark %d\n", e.version)
	switch e.IntN(3) {
	case 0:
		d.text = comment + d.text
	case 1:
		d.text += comment
	default:
		d.text = strings.Replace(d.text, "spec:\n", "spec:   "+comment+"\n", 1)
	}
	e.replace(d, d.text)
	e.settle()
	return true
}

// rewrite writes some files as they are.
func (e *editing) rewrite() bool {
	paths := slices.Sorted(maps.Keys(e.files))
	e.did("write files anew as they are")
	for range 5 {
		path := paths[e.IntN(len(paths))]
		e.save(path, e.files[path])
	}
	e.settle()
	return true
}

func (e *editing) breakDocument() bool {
	name, d, ok := e.pick(e.whole)
	if !ok || e.broken() > editedSessions/4 {
		return false
	}
	kind := fault(1 + e.IntN(3))
	e.did("break %s in way %d", name, kind)
	switch kind {
	case misspelt:
		d.text = strings.Replace(d.text, "  workspace:", typoMark, 1)
	case unparsable:
		d.text += syntaxMark
	case damaged, faultless:
		d.text += binaryMark
	}
	e.replace(d, d.text)
	e.settle()
	return true
}

// mend a file, and edit the document on the way, sometimes.
func (e *editing) mend() bool {
	name, d, ok := e.pick(func(name string, d declaration) bool { return !sound(name, d) })
	if !ok {
		return false
	}
	e.did("mend the file of %s", name)
	text := strings.NewReplacer(typoMark, "  workspace:", syntaxMark, "", binaryMark, "").Replace(e.files[d.path])
	if e.IntN(2) == 0 {
		part := strings.Split(text, separator)[d.part]
		text = with(text, d.part, commandField.ReplaceAllLiteralString(part, "    command: ["+e.command()+"]"))
	}
	e.save(d.path, text)
	e.settle()
	return true
}

func (e *editing) renameFile() bool {
	paths := slices.Sorted(maps.Keys(e.files))
	from := paths[e.IntN(len(paths))]
	to := e.newPath()
	e.did("rename %s to %s", from, to)
	moved(e, filepath.Join(e.manifests, from), filepath.Join(e.manifests, to))
	e.files[to] = e.files[from]
	delete(e.files, from)
	e.settle()
	return true
}

func (e *editing) newPath() string {
	e.version++
	path := fmt.Sprintf("n%d.yaml", e.version)
	if e.IntN(2) == 0 {
		path = "team/" + path
	}
	return path
}

// move a document to another file, in either order of the two writes.
func (e *editing) move() bool {
	name, d, ok := e.pick(e.whole)
	_, target, found := e.pick(func(name string, other declaration) bool { return e.whole(name, other) && other.path != d.path })
	if !ok || !found {
		return false
	}
	path := target.path
	if e.IntN(2) == 0 {
		path = e.newPath()
	}
	text := d.text
	if e.files[path] != "" {
		text = e.files[path] + separator + text
	}
	if e.IntN(2) == 0 {
		e.did("move %s from %s to %s, there first", name, d.path, path)
		e.save(path, text)
		e.replace(d, "")
	} else {
		e.did("move %s from %s to %s, out first", name, d.path, path)
		e.replace(d, "")
		e.save(path, text)
	}
	e.settle()
	return true
}

// remove one to three documents.
func (e *editing) remove() bool {
	for range 1 + e.IntN(3) {
		name, d, ok := e.pick(e.whole)
		if !ok || len(e.files.declarations()) <= editedSessions*2/3 {
			return false
		}
		e.did("remove the document of %s from %s", name, d.path)
		e.deleted[name] = d.text
		e.replace(d, "")
	}
	e.settle()
	return true
}

// addAgain what was deleted, on whichever branch.
func (e *editing) addAgain() bool {
	names := slices.Sorted(maps.Keys(e.deleted))
	if len(names) == 0 {
		return false
	}
	name := names[e.IntN(len(names))]
	text := e.deleted[name]
	delete(e.deleted, name)
	if _, declared := e.files.declarations()[name]; declared {
		return false
	}
	path := e.newPath()
	e.did("add %s again in %s", name, path)
	e.save(path, text)
	e.settle()
	return true
}

func (e *editing) switchBranch() bool {
	if e.broken() > 0 {
		return false
	}
	other := "side"
	if e.branch == other {
		other = "work"
	}
	e.did("switch to branch %s", other)
	e.commitAll()
	e.switchTo(other, e.branches[other])
	return true
}

// switchToFew trips the removal guard: most sessions are missing, and held.
func (e *editing) switchToFew() bool {
	if e.broken() > 0 {
		return false
	}
	back := e.branch
	e.did("switch to a branch with few files, and back")
	e.commitAll()
	e.switchTo("few", e.few())
	held := 0
	for _, s := range e.oracle.sessions {
		if s.held {
			held++
		}
	}
	require.Greater(e, held, editedSessions/3)
	e.stays()
	e.switchTo(back, e.branches[back])
	return true
}

// verb runs one that edits the file of a document, and takes over what it wrote.
// Without the lines about suspend, the file is as it was.
func (e *editing) verb(verb, name string, d declaration) {
	e.Helper()
	e.did("%s %s, in %s:%d", verb, name, d.path, d.line)
	e.does(verb, name)
	edited := e.read(d.path)
	require.Equal(e, suspendField.ReplaceAllLiteralString(e.files[d.path], ""), suspendField.ReplaceAllLiteralString(edited, ""),
		"the verb has changed something else")
	require.NotEqual(e, e.files[d.path], edited)
	e.files[d.path] = edited
	e.settle()
}

func (e *editing) suspend() bool {
	name, d, ok := e.pick(func(name string, d declaration) bool { return e.whole(name, d) && !d.suspended })
	if ok {
		e.verb("suspend", name, d)
	}
	return ok
}

func (e *editing) resume() bool {
	name, d, ok := e.pick(func(name string, d declaration) bool { return e.whole(name, d) && d.suspended })
	if ok {
		e.verb("resume", name, d)
	}
	return ok
}

func (e *editing) restart() bool {
	name, _, ok := e.pick(func(name string, _ declaration) bool { return e.oracle.sessions[name].running })
	if !ok {
		return false
	}
	e.did("restart %s", name)
	e.does("restart", name)
	e.oracle.sessions[name].restarted()
	e.arrive()
	return true
}

// deleteVerb removes a session at once; the other documents of its file are as
// they were.
func (e *editing) deleteVerb() bool {
	name, d, ok := e.pick(e.whole)
	if !ok || len(e.files.declarations()) <= editedSessions*2/3 {
		return false
	}
	e.did("delete %s, in %s:%d", name, d.path, d.line)
	e.deleted[name] = d.text
	e.does("delete", name)
	left := checkout{d.path: with(e.files[d.path], d.part, "")}
	if left[d.path] == "" {
		delete(e.files, d.path)
		e.settle()
		return true
	}
	edited := e.read(d.path)
	found := checkout{d.path: edited}.declarations()
	for other, kept := range left.declarations() {
		require.Equal(e, kept.text, found[other].text, "the document of %s", other)
	}
	e.files[d.path] = edited
	e.settle()
	return true
}
