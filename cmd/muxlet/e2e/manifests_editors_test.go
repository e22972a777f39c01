// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// listed is a document that ends in a list: each of its beginnings that ends with
// a line is a valid document too, with fewer words for the client.
func (w *World) listed(name string, words ...string) string {
	text := fmt.Sprintf(`apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata:
  name: %s
spec:
  updateStrategy: {type: Recreate}
  workspace:
    directory: %s
  client:
    shellMode: None
    command:
    - %s
`, name, w.home+"/work", w.dir+"/bin/fake")
	for _, word := range words {
		text += "    - " + word + "\n"
	}
	return text
}

// put writes a file with the given flags beside O_WRONLY, in pieces; between two
// of them it waits for meanwhile.
func (w *World) put(path string, flags int, meanwhile func(), pieces ...string) {
	w.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o644)
	require.NoError(w, err)
	for i, piece := range pieces {
		if i > 0 && meanwhile != nil {
			meanwhile()
		}
		_, err = f.WriteString(piece)
		require.NoError(w, err)
	}
	require.NoError(w, f.Close())
}

// save is a way in which a program writes a file that exists.
type save func(w *World, path, content string)

func dropped(t require.TestingT, paths ...string) {
	for _, path := range paths {
		require.NoError(t, os.Remove(path))
	}
}

func moved(t require.TestingT, from, to string) { require.NoError(t, os.Rename(from, to)) }

func linesOf(text string) []string { return slices.Collect(strings.Lines(text)) }

// endings are a text in pieces of which each completes a document.
func endings(text string) []string {
	lines := linesOf(text)
	whole := len(lines) - 4
	return append([]string{strings.Join(lines[:whole], "")}, lines[whole:]...)
}

// halves of a text, at a line.
func halves(text string) []string {
	at := strings.LastIndex(text[:len(text)-1], "\n") + 1
	return []string{text[:at], text[at:]}
}

// editors write as those programs were seen to do with strace.
var editors = map[string]save{
	"vim": func(w *World, path, content string) { // backupcopy=no
		dir := filepath.Dir(path)
		w.put(filepath.Join(dir, "."+filepath.Base(path)+".swp"), os.O_CREATE, nil, "b0VIM")
		w.put(dir+"/4913", os.O_CREATE|os.O_EXCL, nil)
		dropped(w, dir+"/4913")
		moved(w, path, path+"~")
		w.put(path, os.O_CREATE|os.O_EXCL, nil, halves(content)...)
		dropped(w, path+"~", filepath.Join(dir, "."+filepath.Base(path)+".swp"))
	},
	"vim-in-place": func(w *World, path, content string) { // backupcopy=yes
		w.put(path+"~", os.O_CREATE, nil, w.read(path))
		w.put(path, os.O_TRUNC, nil, halves(content)...)
		dropped(w, path+"~")
	},
	"emacs": func(w *World, path, content string) {
		lock := filepath.Join(filepath.Dir(path), ".#"+filepath.Base(path))
		auto := filepath.Join(filepath.Dir(path), "#"+filepath.Base(path)+"#")
		require.NoError(w, os.Symlink("me@host.4711:1", lock))
		w.put(auto, os.O_CREATE, nil, content)
		require.NoError(w, os.RemoveAll(path+"~"))
		moved(w, path, path+"~")
		w.put(path, os.O_CREATE|os.O_EXCL, nil, content)
		dropped(w, auto, lock)
	},
	"jetbrains": func(w *World, path, content string) {
		w.put(path+"___jb_tmp___", os.O_CREATE, nil, halves(content)...)
		moved(w, path, path+"___jb_old___")
		moved(w, path+"___jb_tmp___", path)
		dropped(w, path+"___jb_old___")
	},
	"vscode": func(w *World, path, content string) { w.put(path, os.O_TRUNC, nil, content) },
	"nano": func(w *World, path, content string) {
		lock := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".swp")
		w.put(lock, os.O_CREATE|os.O_EXCL, nil, "nano")
		w.put(path, os.O_TRUNC, nil, linesOf(content)...)
		dropped(w, lock)
	},
	"sed": func(w *World, path, content string) {
		temporary := filepath.Join(filepath.Dir(path), "sedKx81Zq")
		w.put(temporary, os.O_CREATE|os.O_EXCL, nil, halves(content)...)
		moved(w, temporary, path)
	},
	"kate": func(w *World, path, content string) {
		w.put(path+".fTqVXa", os.O_CREATE|os.O_EXCL, nil, halves(content)...)
		moved(w, path+".fTqVXa", path)
	},
	"gedit": func(w *World, path, content string) {
		temporary := filepath.Join(filepath.Dir(path), ".goutputstream-41XQ52")
		w.put(temporary, os.O_CREATE|os.O_EXCL, nil, content)
		moved(w, temporary, path)
	},
}

// Every editor's way to save is one edit: one replacement when the command is
// another, none when it is not, and never a word about what lies beside the file.
func TestEveryEditorsSaveIsOneEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name := range editors {
		w.write(name+".yaml", w.listed(name, "old", "word"))
	}
	w.start()
	for name := range editors {
		w.runs(name)
	}
	for name, save := range editors {
		path := w.manifests + "/" + name + ".yaml"
		save(w, path, w.listed(name, "new", "word"))
		w.runsAs(name, 2)
		save(w, path, "# a comment\n"+w.listed(name, "new", "word"))
	}
	for name := range editors {
		w.becomes(name, "seen with the comment", func(s *spec.Session) bool { return s.Status.Source.Line == 2 })
	}
	w.holds("nothing more is started", time.Second, func() bool {
		for name := range editors {
			if w.countOf(name) != 2 {
				return false
			}
		}
		return true
	})
	for name := range editors {
		assert.Equal(t, "new word", w.nth(name, 2).words, name)
	}
	assert.NotContains(t, w.log(), "Found a problem")
	assert.NotContains(t, w.log(), "Warning")
}

// P1, second half. A program that writes for longer than the settle time, in
// pieces of which each is a valid document: nothing happens before it is done.
func TestAHalfWrittenFileChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	for name, write := range map[string]func(path string, meanwhile func(), pieces []string){
		"open": func(path string, meanwhile func(), pieces []string) {
			w.put(path, os.O_TRUNC, meanwhile, pieces...)
		},
		"anew": func(path string, meanwhile func(), pieces []string) {
			moved(w, path, path+"~")
			w.put(path, os.O_CREATE|os.O_EXCL, meanwhile, append([]string{""}, pieces...)...)
		},
		"reopened": func(path string, meanwhile func(), pieces []string) {
			require.NoError(w, os.Truncate(path, 0))
			for _, piece := range pieces {
				meanwhile()
				w.put(path, os.O_APPEND, nil, piece)
			}
		},
	} {
		path := w.manifests + "/" + name + ".yaml"
		w.write(path, w.listed(name, "one", "two", "three"))
		before := w.runs(name)
		meanwhile := func() {
			w.holds("nothing happens to "+name, 150*time.Millisecond, func() bool {
				s := w.get(name)
				return s != nil && pid(s) == pid(before) && s.Generation == 1 && reason(s, spec.ConditionAccepted) != spec.ReasonInvalid
			})
		}
		write(path, meanwhile, endings(w.listed(name, "one", "two", "three", "four")))
		w.runsAs(name, 2)
		assert.Equal(t, "one two three four", w.nth(name, 2).words)
		assert.NotContains(t, w.events(name), "Warning")
	}
	assert.NotContains(t, w.log(), "Found a problem")
}

// A new file is started from once, and from all of it.
func TestANewFileThatIsWrittenSlowlyIsStartedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.put(w.manifests+"/s.yaml", os.O_CREATE, func() {
		w.holds("nothing is started yet", 100*time.Millisecond, func() bool { return w.countOf("s") == 0 })
	}, endings(w.listed("s", "one", "two", "three"))...)
	w.runs("s")
	assert.Equal(t, "one two three", w.nth("s", 1).words)
	assert.NotContains(t, w.log(), "Found a problem")
}

// P1, second half.
func TestAnEmptyOrInvalidFileForAMomentChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"removal": settings{"settle": "5s"}})
	w.declare("other", "stay")
	w.declare("s", "stay", "updateStrategy: {type: Recreate}")
	w.start()
	before := w.runs("s")
	w.runs("other")
	good := w.read("s.yaml")
	for _, content := range []string{"", "---\n", "# all gone\n", "kind: [\n", "\x00\x00", w.typo("s"), good[:len(good)/2]} {
		w.write("s.yaml", content)
		w.holds("nothing happens", 300*time.Millisecond, func() bool { return pid(w.get("s")) == pid(before) })
		w.write("s.yaml", good)
		w.becomes("s", "accepted", func(s *spec.Session) bool { return isTrue(s, spec.ConditionAccepted) })
	}
	w.holds("nothing is removed later", time.Second, func() bool { return pid(w.get("s")) == pid(before) })
	assert.EqualValues(t, 1, w.get("s").Generation)
	assert.Equal(t, before.UID, w.get("s").UID)
	w.nth("s", 1)
}
