// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var editingSeed = flag.Uint64("editing-seed", 0, "seed of the editing test; 0 takes one from the clock")

const (
	editedSessions = 30
	editingSteps   = 200
	// staysEvery so many steps it is looked for a while whether the prediction holds.
	staysEvery = 10
)

// An hour's worth of editing, by programs of three kinds: those that write in
// place, in pieces, those that replace the file, and those that change single
// lines of it (muxlet's own verbs). After each step exactly the sessions are
// touched that the oracle says, by the fake clients' own log.
func TestAnHourOfEditingTouchesExactlyWhatWasEdited(t *testing.T) {
	t.Parallel()
	seed := *editingSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	w := newWorld(t, settings{"removal": settings{"settle": "2s"}, "starts": settings{"maxInFlight": 20}})
	e := &editing{World: w, Rand: rand.New(rand.NewPCG(seed, 0)), files: checkout{}, branches: map[string]checkout{},
		branch: "work", deleted: map[string]string{}, oracle: oracle{sessions: map[string]*expected{}, gone: map[string]*expected{}}}
	defer func() {
		if t.Failed() {
			t.Logf("To see the same again: -editing-seed %d. The steps:\n%s", seed, strings.Join(e.log, "\n"))
		}
	}()
	e.begin()
	for i := range editingSteps {
		e.step()
		if i%staysEvery == staysEvery-1 {
			e.stays()
		}
	}
	e.stays()
	t.Logf("%d steps, %d starts, seed %d", len(e.log), strings.Count(w.startLines(), "\n"), seed)
}

// editing is a person, or several, in front of the manifest directory.
type editing struct {
	*World
	*rand.Rand
	// files are what the directory holds; branches what the others hold.
	files    checkout
	branch   string
	branches map[string]checkout
	// deleted documents by session.
	deleted map[string]string
	oracle  oracle
	version int
	log     []string
}

func (e *editing) did(format string, args ...any) {
	e.log = append(e.log, fmt.Sprintf("%3d %s ", len(e.log)+1, time.Now().Format("05.000"))+fmt.Sprintf(format, args...))
}

func (e *editing) begin() {
	e.Helper()
	e.git("init", "-q", "-b", e.branch)
	e.git("config", "gc.auto", "0")
	e.mkdir(e.manifests + "/team")
	for i := range editedSessions {
		path := fmt.Sprintf("f%02d.yaml", i)
		if i >= editedSessions/3 {
			path = fmt.Sprintf("team/m%d.yaml", i%5)
		}
		text := e.fresh(fmt.Sprintf("s%02d", i))
		if e.files[path] != "" {
			text = e.files[path] + separator + text
		}
		e.files[path] = text
	}
	for path, content := range e.files {
		e.write(path, content)
	}
	e.commit("side")
	e.branches["side"] = maps.Clone(e.files)
	e.start()
	e.settle()
}

// fresh is a document that a person has written with some care.
func (e *editing) fresh(name string) string {
	return fmt.Sprintf(`# %s does what it does.

apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata:
  name: %s   # as on the board
spec:
  # Ours, not the default.
  updateStrategy: {type: Recreate}
  terminationGracePeriodSeconds: 5
  client:
    shellMode:   None
    command: [%s]   # what runs
  workspace: {directory: %s}
# The end of %s.
`, name, name, e.command(), e.home+"/work", name)
}

func (e *editing) command() string {
	e.version++
	return fmt.Sprintf(`"%s/bin/fake", "say", "v%d"`, e.dir, e.version)
}

// settle tells the oracle of the edit and waits until the world is as it says.
func (e *editing) settle() {
	e.Helper()
	e.oracle.edited(e.files)
	e.arrive()
}

func (e *editing) arrive() {
	e.Helper()
	why := "nothing was looked at"
	defer func() {
		if e.Failed() {
			e.Logf("What was last found to differ: %s", why)
		}
	}()
	e.waitFor("the world is as predicted after: "+e.last(), func() bool {
		why = e.differs()
		return why == ""
	})
}

func (e *editing) last() string {
	if len(e.log) == 0 {
		return "the beginning"
	}
	return e.log[len(e.log)-1]
}

func (e *editing) differs() string {
	list, err := e.api.Sessions(e.Context(), "")
	if err != nil {
		return err.Error()
	}
	return e.oracle.differs(list.Items, e.allStarts())
}

// stays looks for a while, and at the files too.
func (e *editing) stays() {
	e.Helper()
	e.holds("the world stays as predicted after: "+e.last(), 700*time.Millisecond, func() bool {
		why := e.differs()
		if why != "" {
			e.Log(why)
		}
		return why == ""
	})
	e.sameFiles()
}

// sameFiles: every byte of every file is as the edits have left it.
func (e *editing) sameFiles() {
	e.Helper()
	found := checkout{}
	require.NoError(e, filepath.WalkDir(e.manifests, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if err == nil && !entry.IsDir() {
			found[strings.TrimPrefix(path, e.manifests+"/")] = e.read(path)
		}
		return err
	}))
	require.Equal(e, e.files, found, "the files after: %s", e.last())
}

// save writes a file in one of the ways that programs have.
func (e *editing) save(path, content string) {
	e.Helper()
	e.files[path] = content
	full := filepath.Join(e.manifests, path)
	e.mkdir(filepath.Dir(full))
	switch e.IntN(3) {
	case 0:
		e.write(full, content)
	case 1:
		e.put(full, os.O_CREATE|os.O_TRUNC, nil, linesOf(content)...)
	default:
		at := e.IntN(len(content))
		e.put(full, os.O_CREATE|os.O_TRUNC, func() {
			e.holds("nothing happens meanwhile", 60*time.Millisecond, func() bool { return e.api.Healthy(e.Context()) == nil })
		}, content[:at], content[at:])
	}
}

// replace writes another text of a document; an empty one takes it out, with its
// file when there is nothing else in it.
func (e *editing) replace(d declaration, text string) {
	e.Helper()
	content := with(e.files[d.path], d.part, text)
	if content == "" {
		delete(e.files, d.path)
		dropped(e, filepath.Join(e.manifests, d.path))
		return
	}
	e.save(d.path, content)
}

// pick a session that is as wanted; ok is false when none is.
func (e *editing) pick(as func(string, declaration) bool) (name string, d declaration, ok bool) {
	all := e.files.declarations()
	var names []string
	for name, d := range all {
		if as(name, d) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", d, false
	}
	slices.Sort(names)
	name = names[e.IntN(len(names))]
	return name, all[name], true
}

// whole: neither the document nor another in its file is broken.
func (e *editing) whole(_ string, d declaration) bool {
	content := e.files[d.path]
	return !strings.Contains(content, typoMark) && !strings.Contains(content, syntaxMark) && !strings.Contains(content, binaryMark)
}

func (e *editing) broken() int {
	n := 0
	for _, d := range e.files.declarations() {
		if d.fault != faultless {
			n++
		}
	}
	return n
}

// commitAll is a commit on the present branch.
func (e *editing) commitAll() {
	e.Helper()
	e.git("add", "-A")
	e.git("commit", "-q", "--allow-empty", "-m", e.last())
}

// switchTo another branch, which was left as the files say.
func (e *editing) switchTo(branch string, files checkout) {
	e.Helper()
	e.branches[e.branch] = maps.Clone(e.files)
	e.git("checkout", "-q", branch)
	e.branch, e.files = branch, maps.Clone(files)
	e.settle()
}

// few makes a branch on which most files are missing, without touching the
// directory.
func (e *editing) few() checkout {
	e.Helper()
	files := maps.Clone(e.files)
	index := e.dir + "/few-index"
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=me", "-c", "user.email=me@example.com"}, args...)...)
		cmd.Dir, cmd.Env = e.manifests, append([]string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_INDEX_FILE=" + index}, e.env...)
		out, err := cmd.CombinedOutput()
		require.NoError(e, err, "git %v: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	git("read-tree", "HEAD")
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if len(files.declarations()) <= editedSessions/3 || len(files) <= 2 {
			break
		}
		delete(files, path)
		git("rm", "-q", "--cached", path)
	}
	git("branch", "-f", "few", git("commit-tree", "-p", "HEAD", "-m", "few", git("write-tree")))
	assert.NoError(e, os.Remove(index))
	return files
}
