// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// problems that the daemon tells of the file, or of what is below it.
func (w *World) problems(path string) []string {
	status, err := w.api.Status(w.Context())
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(status.Problems, func(p string) bool { return !strings.HasPrefix(p, path) })
}

// oddities are files that no person means, each with the one sentence about it,
// in which FILE is its path.
var oddities = map[string]struct {
	make func(w *World, path string)
	says string
}{
	"tenmegabytes.yaml": {
		func(w *World, path string) {
			w.write(path, strings.Repeat("# a long comment\n", 10<<20/17))
		},
		"FILE: the file has 10485753 bytes; at most 1048576 are read: split it",
	},
	"documents.yaml": {
		func(w *World, path string) { w.write(path, strings.Repeat("--- {}\n", 10_001)) },
		"FILE: the file has 10001 documents; at most 10000 are read: split it",
	},
	"directory.yaml": {
		func(w *World, path string) { w.mkdir(path) },
		"FILE: is a directory and no manifest: what is in it is read; give it another name",
	},
	"nuls.yaml": {
		func(w *World, path string) { w.write(path, strings.Repeat("\x00", 4096)) },
		"FILE:1:1: a NUL byte; this is no text file, or it was damaged while it was written",
	},
	"binary.yaml": {
		func(w *World, path string) { w.write(path, "\x7fELF\x02\x01\x01\xff\xfe") },
		"FILE:1:8: a byte that is not UTF-8; save the file as UTF-8",
	},
	"wide.yaml": {
		func(w *World, path string) { w.write(path, "\xff\xfek\x00i\x00n\x00d\x00:\x00") },
		"FILE: the file is UTF-16; save it as UTF-8",
	},
	"tab.yaml": {
		func(w *World, path string) { w.write(path, "kind: Session\nmetadata:\n\tname: t\n") },
		"FILE:3:1: the line is indented with a tab; YAML allows only spaces there",
	},
	"bomb.yaml": {
		func(w *World, path string) {
			text := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
			for c := 'b'; c <= 'j'; c++ {
				text += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 10) + "]\n"
			}
			w.write(path, text)
		},
		"FILE:1:35: the aliases of this document expand it too far; write it out or generate it",
	},
	"twice.yaml": {
		func(w *World, path string) {
			w.write(path, w.document("twice", "stay")+"  suspend: true\n  suspend: false\n")
		},
		"FILE:12:3: spec.suspend: ",
	},
	"fifo.yaml": {
		func(w *World, path string) { require.NoError(w, unix.Mkfifo(path, 0o644)) },
		"FILE: is not read: it is a FIFO and no regular file; remove it, or give it another name",
	},
	"socket.yaml": {
		func(w *World, path string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
			require.NoError(w, err)
			l.SetUnlinkOnClose(false)
			require.NoError(w, l.Close())
		},
		"FILE: is not read: it is a socket and no regular file; remove it, or give it another name",
	},
	"device.yaml": {
		func(w *World, path string) { require.NoError(w, os.Symlink("/dev/zero", path)) },
		"FILE: is not read: it is a device and no regular file; remove it, or give it another name",
	},
	// Nobody is denied anything as root, but nobody reads this either.
	"unreadable.yaml": {
		func(w *World, path string) { require.NoError(w, os.Symlink("/proc/self/mem", path)) },
		"FILE: cannot be read: input/output error",
	},
	"nowhere.yaml": {
		func(w *World, path string) { require.NoError(w, os.Symlink("/nowhere", path)) },
		"FILE: cannot be read: it is a symbolic link to /nowhere, which does not exist",
	},
	"loop.yaml": {
		func(w *World, path string) { require.NoError(w, os.Symlink("loop.yaml", path)) },
		"FILE: cannot be read: too many levels of symbolic links",
	},
	"agent.yaml": {
		func(w *World, path string) { w.write(path, w.document("agent", "stay", "clientClassName: claude")) },
		"FILE:7:14: spec.client.command: class claude has a command of its own; ",
	},
	"foreign.yaml": {
		func(w *World, path string) { w.write(path, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n") },
		`FILE:2:7: kind: "ConfigMap" is not known; it must be Session or ClientClass`,
	},
}

// Each oddity is one clear sentence, at once and while the daemon runs, and stands
// in nobody's way: the good documents converge and go on. Without it all is well.
func TestAnOddFileIsOneClearSentenceAndTheGoodOnesConverge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("good", "stay")
	for name, odd := range oddities {
		odd.make(w, w.manifests+"/"+name)
	}
	w.mkdir(w.manifests + "/folder")
	w.write("folder/inside.yaml", w.document("inside", "stay"))
	require.NoError(t, os.Symlink("..", w.manifests+"/folder/up"))
	w.start()
	w.runs("good")
	w.runs("inside")
	for name, odd := range oddities {
		path := w.manifests + "/" + name
		var told []string
		w.waitFor("the daemon tells of "+name, func() bool { told = w.problems(path); return len(told) > 0 })
		require.Len(t, told, 1, "%v", told)
		assert.True(t, strings.HasPrefix(told[0], strings.Replace(odd.says, "FILE", path, 1)), "%s", told[0])
		assert.NotContains(t, strings.TrimSuffix(told[0], "\n"), "\n")
		assert.Less(t, len(told[0]), 400)
	}
	checked := w.muxlet("validate")
	assert.Equal(t, 1, checked.code)
	for name := range oddities {
		if name != "unreadable.yaml" { // the memory of validate itself
			assert.Contains(t, checked.errOut, w.manifests+"/"+name)
		}
	}
	w.declare("late", "stay")
	w.runs("late")
	assert.Equal(t, len(oddities), strings.Count(w.log(), "Found a problem"), "each is logged once")
	for name := range oddities {
		dropped(t, w.manifests+"/"+name)
	}
	w.waitFor("all is well", func() bool { return len(w.problems("")) == 0 })
	for _, name := range []string{"good", "inside", "late"} {
		w.nth(name, 1)
	}
}

// Ten thousand documents that are good but for their name.
func TestTenThousandDocumentsOfOneNameAreOneProblemForAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("good", "stay")
	w.runs("good")
	doc := "---\napiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: x}\nspec: {client: {command: [a]}, workspace: {directory: /}}\n"
	w.write("many.yaml", strings.Repeat(doc, 8000))
	s := w.reaches("x", spec.StatusConflict)
	assert.Regexp(t, `declared in .*many.yaml:2, .* and \d+ more places: nothing is started until only one is left`, s.Status.Source.Error)
	assert.Less(t, len(w.muxlet("get").text()), 5000)
	w.declare("late", "stay")
	w.runs("late")
	w.write("many.yaml", doc)
	w.becomes("x", "accepted", func(s *spec.Session) bool { return isTrue(s, spec.ConditionAccepted) })
	w.nth("good", 1)
}

// Ten thousand files: what is too much is one sentence, and the others converge.
func TestMoreFilesThanAreReadAreOneSentence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	many := w.mkdir(w.manifests + "/many")
	for i := range 10_000 {
		require.NoError(t, os.WriteFile(many+"/"+strings.Repeat("x", 1+i%100)+string(rune('a'+i/100))+".yaml", nil, 0o600))
	}
	w.declare("good", "stay")
	w.start()
	before := w.runs("good")
	told := w.problems(w.manifests + ":")
	require.Len(t, told, 1)
	assert.Contains(t, told[0], "1 file is not read: at most 10000 files, 10000 documents and 10000 directories are read in all")
	w.holds("it goes on", time.Second, func() bool { s := w.get("good"); return s != nil && pid(s) == pid(before) })
	require.NoError(t, os.RemoveAll(many))
	w.waitFor("all is well", func() bool { return len(w.problems("")) == 0 })
	assert.Equal(t, pid(before), pid(w.get("good")))
}

// A YAML as Windows and word processors save it.
func TestLineEndsMarksAndOddSeparatorsAreNobodysMistake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	w.write("crlf.yaml", crlf(w.recreated("crlf", "say one")))
	w.write("bom.yaml", "\uFEFF"+w.recreated("bom", "say one"))
	w.write("oddities.yaml", "%YAML 1.2\n---\n# nothing\n---\n---   # marked\n"+w.recreated("first", "say one")+"...\n...\n---\n~\n--- \n"+
		w.recreated("second", "say one")+"---\n\n# the end")

	w.write("empty.yaml", "")
	w.write("comments.yaml", "# to do\n#---\n")
	names := []string{"crlf", "bom", "first", "second"}
	w.start()
	for _, name := range names {
		w.runs(name)
		assert.Equal(t, "say one", w.nth(name, 1).words)
	}
	w.write("crlf.yaml", w.recreated("crlf", "say one"))
	w.write("bom.yaml", crlf(w.recreated("bom", "say one")))
	w.holds("other line ends are no edit", time.Second, func() bool { return w.countOf("crlf")+w.countOf("bom") == 2 })
	w.write("crlf.yaml", crlf(w.recreated("crlf", "say two")))
	w.runsAs("crlf", 2)
	assert.Equal(t, "say two", w.nth("crlf", 2).words)
}
