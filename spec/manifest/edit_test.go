// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// head is what every document of these tests begins with.
const head = "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a} # mine\n"

// body is a spec in block style.
const body = "  # where it runs\n  workspace:\n    directory: /tmp # scratch\n  client:\n    command: [sleep, '1']\n"

const other = "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: other}\nspec: {client: {command: [x]}, workspace: {directory: /}}\n"

const jsonDocument = `{
  "apiVersion": "muxlet.dev/v1alpha1", "kind": "Session",
  "metadata": {"name": "a", "annotations": {"note": "\ud83d\ude00 é\/"}},
  "spec": {
    "workspace": {"directory": "/tmp"},
    "client": {"command": ["sleep", "1"]}
  }
}`

const compactJSON = `{"apiVersion":"muxlet.dev/v1alpha1","kind":"Session","metadata":{"name":"a","annotations":{"n":"\ud83d\ude00"}},"spec":{"workspace":{"directory":"/tmp"},"client":{"command":["x"]}}}`

type edit struct {
	name    string
	suspend bool
	// before is the file; the edit replaces old in it by new, once.
	before, old, new string
}

// suspendEdits name the bytes that may change. Everything else must not.
var suspendEdits = []edit{
	{"a block mapping gets the key on top", true, head + "spec:\n" + body, "spec:\n", "spec:\n  suspend: true\n"},
	{"a true becomes false", false, head + "spec:\n" + body + "  suspend: true # for now\n", "suspend: true", "suspend: false"},
	{"a false becomes true", true, head + "spec:\n" + body + "  suspend:   false\n", "suspend:   false", "suspend:   true"},
	{"a word of YAML 1.1", false, head + "spec:\n  suspend: Yes\n" + body, "Yes", "false"},
	{"a value that is left out", true, head + "spec:\n  suspend: # later\n" + body, "suspend:", "suspend: true"},
	{"a value that is left out before a line end", true, head + "spec:\n  suspend:\n" + body, "suspend:", "suspend: true"},
	{"a null", true, head + "spec:\n  suspend: ~\n" + body, "~", "true"},
	{"a quoted key", true, head + "spec:\n  \"suspend\": false\n" + body, "false", "true"},
	{"a key over a comment", true, head + "spec: # what I want\n\n# note\n" + body, "I want\n", "I want\n  suspend: true\n"},
	{"a deeper indentation", true, head + "spec:\n      workspace: {directory: /}\n      client: {command: [x]}\n", "spec:\n", "spec:\n      suspend: true\n"},
	{"no newline at the end", true, head + "spec:\n" + strings.TrimSuffix(body, "\n"), "spec:\n", "spec:\n  suspend: true\n"},
	{"no newline after the value", false, head + "spec:\n" + body + "  suspend: true", "suspend: true", "suspend: false"},
	{"CRLF", true, crlf(head + "spec:\n" + body), "spec:\r\n", "spec:\r\n  suspend: true\r\n"},
	{"CRLF and a value", false, crlf(head + "spec:\n  suspend: true\n" + body), "true", "false"},
	{"CR", true, strings.ReplaceAll(head+"spec:\n"+body, "\n", "\r"), "spec:\r", "spec:\r  suspend: true\r"},
	{"a byte order mark", true, "\uFEFF" + head + "spec:\n" + body, "spec:\n", "spec:\n  suspend: true\n"},
	{"a byte order mark before a flow document", true, "\uFEFF{apiVersion: muxlet.dev/v1alpha1, kind: Session, metadata: {name: a}, spec: {workspace: {directory: /}, client: {command: [x]}}}\n", "spec: {", "spec: {suspend: true, "},
	{"a flow mapping", true, head + "spec: {workspace: {directory: /}, client: {command: [x]}}\n", "spec: {", "spec: {suspend: true, "},
	{"a flow mapping with room", true, head + "spec: { workspace: {directory: /}, client: {command: [x]} }\n", "spec: { ", "spec: { suspend: true, "},
	{"a flow mapping over lines", true, head + "spec: { # all of it\n  workspace: {directory: /},\n  client: {command: [x]},\n}\n", "of it\n", "of it\n  suspend: true,\n"},
	{"a flow mapping with the key", false, head + "spec: {workspace: {directory: /}, suspend: true, client: {command: [x]}}\n", "true", "false"},
	{"characters of several bytes before the key", true, head + "spec: {workspace: {directory: \"/tmp/日本語 é 🙂\"}, suspend: false, client: {command: [x]}}\n", "false", "true"},
	{"line separators in a text", true, strings.Replace(head, "{name: a}", "{name: a, annotations: {n: \"x\u2028y\u0085z\u2029w\"}}", 1) + "spec:\n" + body, "spec:\n", "spec:\n  suspend: true\n"},
	{"JSON", true, jsonDocument, "\"spec\": {\n", "\"spec\": {\n    \"suspend\": true,\n"},
	{"JSON with tabs", true, strings.ReplaceAll(jsonDocument, "  ", "\t"), "\"spec\": {\n", "\"spec\": {\n\t\t\"suspend\": true,\n"},
	{"compact JSON", true, compactJSON, `"spec":{`, `"spec":{"suspend": true, `},
	{"no spec at all", true, head, "# mine\n", "# mine\nspec:\n  suspend: true\n"},
	{"no spec before another document", true, head + "---\n" + other, "# mine\n", "# mine\nspec:\n  suspend: true\n"},
	{"no spec and no newline", true, strings.TrimSuffix(head, "\n"), "# mine", "# mine\nspec:\n  suspend: true"},
	{"an empty spec", true, head + "spec: {} # all by the settings\n", "{}", "{suspend: true}"},
	{"a spec without a value", true, head + "spec:\n", "spec:\n", "spec:\n  suspend: true\n"},
	{"JSON without a spec", true, `{"apiVersion":"muxlet.dev/v1alpha1","kind":"Session","metadata":{"name":"a"}}`, `"a"}`, `"a"},"spec": {"suspend": true}`},
	{"JSON with the key", false, strings.Replace(jsonDocument, `"spec": {`, `"spec": {"suspend" : true ,`, 1), "true", "false"},
	{"the second document", true, other + "---\n# second\n" + head + "spec:\n" + body + "---\n" + strings.Replace(other, "other", "third", 1), "# mine\nspec:\n", "# mine\nspec:\n  suspend: true\n"},
	{"a document after a damaged one", true, "a: [\n---\n" + head + "spec:\n" + body, "spec:\n", "spec:\n  suspend: true\n"},
	{"a document on the line of its separator", true, other + "--- {apiVersion: muxlet.dev/v1alpha1, kind: Session, metadata: {name: a}, spec: {workspace: {directory: /}, client: {command: [x]}}}\n", "name: a}, spec: {", "name: a}, spec: {suspend: true, "},
	{"a document after an end marker and directives", true, other + "...\n%YAML 1.2\n---\n" + head + "spec:\n" + body + "...\n", "# mine\nspec:\n", "# mine\nspec:\n  suspend: true\n"},
	{"another suspend elsewhere", true, strings.Replace(head, "{name: a}", "{name: a, labels: {suspend: \"false\"}}", 1) + "spec:\n" + body, "spec:\n", "spec:\n  suspend: true\n"},
	{"a status with a suspend", true, head + "status:\n  spec: {suspend: true}\nspec:\n" + body, "}\nspec:\n", "}\nspec:\n  suspend: true\n"},
	{"an anchored spec", true, head + "spec: &s\n" + body, "spec: &s\n", "spec: &s\n  suspend: true\n"},
	{"a merged spec", true, head + "spec:\n  <<: {workspace: {directory: /}}\n  client: {command: [x]}\n", "spec:\n", "spec:\n  suspend: true\n"},
	{"spec before the name", true, "spec:\n" + body + head, "spec:\n", "spec:\n  suspend: true\n"},
}

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

func TestSetSuspendChangesOneLine(t *testing.T) {
	for _, e := range suspendEdits {
		t.Run(e.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(e.before, e.old), "the test's own mark")
			path := write(t, filepath.Join(t.TempDir(), "a.yaml"), e.before)
			require.NoError(t, SetSuspend(path, "a", e.suspend))
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, strings.Replace(e.before, e.old, e.new, 1), string(after))

			require.NoError(t, SetSuspend(path, "a", e.suspend))
			again, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(after), string(again), "twice is once")

			require.NoError(t, SetSuspend(path, "a", !e.suspend))
			require.NoError(t, SetSuspend(path, "a", e.suspend))
			back, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(after), string(back), "there and back")
		})
	}
}

func TestSetSuspendLeavesAFileAloneThatSaysSo(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a.yaml"), head+"spec:\n"+body)
	require.NoError(t, os.Chmod(path, 0o400))
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, SetSuspend(path, "a", false))
	after, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after))
}

func TestWhatCannotBeEditedSafelyIsLeftToThePerson(t *testing.T) {
	for name, content := range map[string]string{
		"an invalid document":     head + "spec:\n  bogus: 1\n" + body,
		"a damaged document":      head + "spec:\n" + body + "  client: [\n",
		"two of the name":         head + "spec:\n" + body + "---\n" + head + "spec:\n" + body,
		"a spec that is an alias": head + "spec: *s\nstatus: &s\n" + body,
		"a merged spec alone":     head + "status: &s\n" + body + "spec: *s\n",
		"a tagged value":          head + "spec:\n  suspend: !!bool false\n" + body,
		"an anchored value":       head + "spec:\n  suspend: &no false\n" + body,
		"an explicit key":         head + "? spec\n: client: {command: [x]}\n  workspace: {directory: /}\n",
		"keys that share a line":  head + "spec:\n  ? client\n  : {command: [x]}\n  ? workspace\n  : {directory: /}\n",
		"UTF-16":                  "\xff\xfea\x00",
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "a.yaml"), content)
			err := SetSuspend(path, "a", true)
			require.ErrorIs(t, err, ErrNotEditable)
			assert.Contains(t, err.Error(), path)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, content, string(after))
		})
	}
}

func TestAnEditOfAnUndeclaredSessionSaysSo(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"others":  other,
		"empty":   "",
		"comment": "# a\n",
		"a label": strings.Replace(other, "{name: other}", "{name: other, labels: {name: a}}", 1),
	} {
		path := write(t, filepath.Join(dir, "x.yaml"), content)
		for _, err := range []error{SetSuspend(path, "a", true), Remove(path, "a")} {
			require.ErrorIs(t, err, ErrNotDeclared, name)
			assert.Contains(t, err.Error(), path)
			assert.Contains(t, err.Error(), `"a"`)
		}
	}
	missing := filepath.Join(dir, "missing.yaml")
	require.ErrorIs(t, Remove(missing, "a"), ErrNotDeclared)
	require.ErrorIs(t, SetSuspend(missing, "a", true), fs.ErrNotExist)
	require.ErrorIs(t, Remove(dir, "a"), ErrNotEditable)
}

func TestRemoveTakesOneDocumentOut(t *testing.T) {
	mine := head + "spec:\n" + body
	for name, c := range map[string]struct{ before, after string }{
		"the first":             {mine + "---\n" + other, "---\n" + other},
		"the second":            {other + "---\n" + mine, other},
		"the middle":            {other + "---\n# mine\n" + mine + "\n---\n# third\nx: 1\n", other + "---\n# third\nx: 1\n"},
		"with a header":         {"# Copyright\n---\n" + mine + "---\n" + other, "# Copyright\n---\n" + other},
		"with end markers":      {mine + "...\n---\n" + other + "...\n", "---\n" + other + "...\n"},
		"the last, end marker":  {other + "---\n" + mine + "...\n", other},
		"on the separator line": {"--- {kind: Session, metadata: {name: a}}\n---\n" + other, "---\n" + other},
		"CRLF":                  {crlf(other + "---\n" + mine + "---\n" + strings.Replace(other, "other", "third", 1)), crlf(other + "---\n" + strings.Replace(other, "other", "third", 1))},
		"CR":                    {strings.ReplaceAll(mine+"---\n"+other, "\n", "\r"), strings.ReplaceAll("---\n"+other, "\n", "\r")},
		"no newline at the end": {mine + "---\n" + strings.TrimSuffix(other, "\n"), "---\n" + strings.TrimSuffix(other, "\n")},
		"the last, no newline":  {other + "---\n" + strings.TrimSuffix(mine, "\n"), other},
		"a byte order mark":     {"\uFEFF" + mine + "---\n" + other, "\uFEFF---\n" + other},
		"an invalid one":        {other + "---\n" + head + "spec: {bogus: 1}\n", other},
		"beside a damaged one":  {"x: [\n---\n" + mine, "x: [\n"},
		"with empty documents":  {"---\n---\n" + mine + "---\n---\n" + other, "---\n---\n---\n" + other},
		"separators in a text":  {other + "---\n" + mine + "  # ---\n---\n" + strings.Replace(other, "[x]", "[\"a --- b\"]", 1), other + "---\n" + strings.Replace(other, "[x]", "[\"a --- b\"]", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "a.yaml"), c.before)
			require.NoError(t, Remove(path, "a"))
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, c.after, string(after))
		})
	}
}

func TestRemoveOfTheOnlyDocumentDeletesTheFile(t *testing.T) {
	for name, content := range map[string]string{
		"alone":                   head + "spec:\n" + body,
		"JSON":                    jsonDocument,
		"an invalid one":          head + "spec: {}\n",
		"among empty documents":   "# Copyright\n---\n" + head + "spec:\n" + body + "---\n# nothing\n---\n",
		"with nothing but a name": "metadata: {name: a}\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, filepath.Join(dir, "a.yaml"), content)
			require.NoError(t, Remove(path, "a"))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, entries)
		})
	}
}

func TestAnEditFollowsALinkAndKeepsTheMode(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	target := write(t, filepath.Join(outside, "a.conf"), head+"spec:\n"+body)
	require.NoError(t, os.Chmod(target, 0o640))
	path := filepath.Join(dir, "a.yaml")
	link(t, target, path)
	require.NoError(t, SetSuspend(path, "a", true))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&fs.ModeSymlink)
	info, err = os.Stat(target)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o640), info.Mode().Perm())
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Contains(t, string(data), "suspend: true")

	require.NoError(t, Remove(path, "a"))
	_, err = os.Lstat(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = os.Stat(target)
	require.NoError(t, err, "what lies outside the manifests is not deleted")
}

func TestAFileWithoutWriteBitsIsReadOnlyForRootToo(t *testing.T) {
	for name, content := range map[string]string{"one": head + "spec:\n" + body, "two": head + "spec:\n" + body + "---\n" + other} {
		path := write(t, filepath.Join(t.TempDir(), "a.yaml"), content)
		require.NoError(t, os.Chmod(path, 0o444))
		for _, err := range []error{SetSuspend(path, "a", true), Remove(path, "a")} {
			require.ErrorIs(t, err, ErrReadOnly, name)
			assert.Contains(t, err.Error(), path)
			assert.Contains(t, err.Error(), "make it writable")
		}
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, content, string(after))
	}
}

func TestAnEditLeavesNoTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a.yaml"), head+"spec:\n"+body)
	require.NoError(t, SetSuspend(path, "a", true))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, "a.yaml", entries[0].Name())
}

func TestEditsOfOneFileAtOnceAreAllMade(t *testing.T) {
	var names, docs []string
	for _, n := range strings.Split("abcdefghij", "") {
		names = append(names, n)
		docs = append(docs, yamlOf(n, "1"))
	}
	path := write(t, filepath.Join(t.TempDir(), "all.yaml"), strings.Join(docs, "---\n"))
	var wg sync.WaitGroup
	for _, n := range names {
		wg.Go(func() { assert.NoError(t, SetSuspend(path, n, true)) })
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 10, bytes.Count(data, []byte("\n  suspend: true\n")))
}

func TestAFileThatSomebodyElseChangedIsNotOverwritten(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a.yaml"), head+"spec:\n"+body)
	s, err := openSource(path, SessionRef("a"))
	require.NoError(t, err)
	edited, err := s.suspended("a", true)
	require.NoError(t, err)
	write(t, path, head+"# theirs\nspec:\n"+body)
	require.ErrorContains(t, s.write(edited), "try again")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(data), "# theirs")
}

// P1, second half: what the writer still has to say would go into a file that is no
// longer there.
func TestAFileThatSomebodyElseIsWritingIsNotEdited(t *testing.T) {
	needsWriterDetection(t)
	path := write(t, filepath.Join(t.TempDir(), "a.yaml"), head+"spec:\n"+body)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	put(t, f, head+"spec:\n"+body)
	for _, edit := range []func() error{
		func() error { return SetSuspend(path, "a", true) },
		func() error { return Remove(path, "a") },
	} {
		require.ErrorIs(t, edit(), ErrChanged)
	}
	put(t, f, "  restartPolicy: Never\n")
	require.NoError(t, f.Close())
	require.NoError(t, SetSuspend(path, "a", true))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(data), "restartPolicy: Never")
	assert.Contains(t, string(data), "suspend: true")
}

// A writer that is about to close the file is waited for.
func TestAnEditWaitsForAWriterThatCloses(t *testing.T) {
	needsWriterDetection(t)
	path := write(t, filepath.Join(t.TempDir(), "a.yaml"), head+"spec:\n"+body)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	closed := make(chan error, 1)
	time.AfterFunc(closePatience/20, func() { closed <- f.Close() })
	require.NoError(t, SetSuspend(path, "a", true))
	require.NoError(t, <-closed)
}

// One that never closes it is not waited for for ever.
func TestAWriterThatRestsDoesNotKeepAFileFromBeingEdited(t *testing.T) {
	needsWriterDetection(t)
	path := write(t, filepath.Join(t.TempDir(), "a.yaml"), head+"spec:\n"+body)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	past := time.Now().Add(-writerPatience)
	require.NoError(t, os.Chtimes(path, past, past))
	require.NoError(t, SetSuspend(path, "a", true))
}

func TestAnEditThatWouldChangeAnythingElseIsRefused(t *testing.T) {
	s := sourceOf(head + "spec:\n" + body + "---\n" + other)
	require.NoError(t, s.find(SessionRef("a")))
	want := meanings(s.decoded.Items)
	require.NoError(t, s.verify([]byte("# fine\n"+string(s.data)), want))
	for name, edited := range map[string]string{
		"another value": strings.Replace(string(s.data), "/tmp", "/var", 1),
		"another name":  strings.Replace(string(s.data), "other", "else", 1),
		"one less":      head + "spec:\n" + body,
		"damaged":       string(s.data) + "x: [",
		"no text":       "\x00",
	} {
		require.ErrorIs(t, s.verify([]byte(edited), want), ErrNotEditable, name)
	}
}

// sourceOf is a file in memory.
func sourceOf(content string) *source { return &source{file: "a.yaml", data: []byte(content)} }

// FuzzAnEditChangesNothingElse looks for a file in which an edit that was
// verified changes bytes of other lines, or in which making it panics.
func FuzzAnEditChangesNothingElse(f *testing.F) {
	for _, e := range suspendEdits {
		f.Add(e.before)
	}
	f.Fuzz(func(t *testing.T, content string) {
		s := sourceOf(content)
		if s.find(SessionRef("a")) != nil {
			return
		}
		for _, suspend := range []bool{true, false} {
			edited, err := s.suspended("a", suspend)
			if err == nil {
				requireOneChange(t, content, string(edited))
			}
		}
		if edited, err := s.without(); err == nil {
			require.Less(t, len(edited), len(content))
		}
	})
}

// requireOneChange permits one replaced value or one inserted line.
func requireOneChange(t *testing.T, before, after string) {
	prefix := 0
	for prefix < min(len(before), len(after)) && before[prefix] == after[prefix] {
		prefix++
	}
	suffix := 0
	for suffix < min(len(before), len(after))-prefix && before[len(before)-1-suffix] == after[len(after)-1-suffix] {
		suffix++
	}
	require.LessOrEqual(t, len(before)-prefix-suffix, len("false"), "%q became %q", before, after)
}
