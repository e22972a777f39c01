// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// TestWhatAnchorsPermitIsStillASmallEdit: what is changed is not what they are
// about, or can be written over them.
func TestWhatAnchorsPermitIsStillASmallEdit(t *testing.T) {
	for name, c := range map[string]struct{ before, want, old, new string }{
		"beside an anchor": {
			head + "spec:\n  workspace: {directory: &d /tmp}\n  client:\n    command: [x, *d] # c\n  restartPolicy: Never # r\n",
			head + "spec:\n  workspace: {directory: /tmp}\n  client:\n    command: [x, /tmp]\n  restartPolicy: Always\n",
			"restartPolicy: Never", "restartPolicy: Always",
		},
		"an alias that becomes a value": {
			head + "spec:\n  workspace: {directory: &d /tmp} # w\n  client:\n    command: [x, *d] # c\n",
			head + "spec:\n  workspace: {directory: /tmp}\n  client:\n    command: [x, /var]\n",
			"*d", "/var",
		},
		"a field over a merged one": {
			head + "spec:\n  <<: {workspace: {directory: /tmp}} # base\n  client: {command: [x]} # c\n",
			head + "spec:\n  workspace: {directory: /var}\n  client: {command: [x]}\n",
			"spec:\n", "spec:\n  workspace:\n    directory: /var\n",
		},
		"an anchor that nobody uses goes": {
			head + "spec:\n  workspace: {directory: &d /tmp}\n  client: &c # c\n    command: [x]\n",
			head + "spec:\n  workspace: {directory: /var}\n  client: {command: [x]}\n",
			"&d /tmp", "/var",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(c.before, c.old), "the test's own mark")
			c.want = strings.Replace(c.want, "workspace: {directory: /var}\n  client: {command: [x]}\n", "workspace:\n    directory: /var\n  client: {command: [x]}\n", 1)
			got, change := applied(t, c.before, c.want)
			assert.Empty(t, change.Replaced)
			assert.Equal(t, strings.Replace(c.before, c.old, c.new, 1), got)
		})
	}
}

// TestADocumentThatCannotBeEditedIsReplacedAlone: its text becomes what was
// applied, the comment at its head stays, and nothing around it changes.
func TestADocumentThatCannotBeEditedIsReplacedAlone(t *testing.T) {
	want := "# applied\n" + head + "spec:\n  # new\n  workspace: {directory: /var}\n  client:\n    command: [z]\n    args: [/tmp]\n"
	for name, before := range map[string]string{
		"an anchor that is used elsewhere": head + "spec:\n  workspace: {directory: &d /tmp}\n  client:\n    command: [z]\n    args: [*d]\n",
		"explicit keys":                    head + "? spec\n: client: {command: [x]}\n  workspace: {directory: /tmp}\n",
		"a block scalar of a said depth":   head + "spec:\n  workspace: {directory: /tmp}\n  client: {command: [z]}\n  restartPolicy: |1-\n   Never\n",
		"a key on top twice":               head + "kind: Session\nspec:\n  workspace: {directory: /tmp}\n  client: {command: [z]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			around := func(s string) string {
				return "# file\n---\n" + other + "--- # sep\n# kept\n\n" + s + "---\n" + strings.Replace(other, "other", "third", 1)
			}
			got, change := applied(t, around(before), want)
			assert.Contains(t, change.Replaced, "all of the document (")
			assert.NotContains(t, change.Replaced, "\n")
			assert.Equal(t, strings.Replace(around(want), "# kept\n\n", "", 1), got, "what was applied has its own head")
			got, _ = applied(t, crlf(around(before)), strings.TrimPrefix(want, "# applied\n"))
			assert.Equal(t, crlf(strings.Replace(around(want), "# applied\n", "", 1)), got, "the old head stays")
		})
	}
}

// TestWhatCannotBeEditedInsideIsWrittenAnewAndNothingElse: the smallest field
// around it.
func TestWhatCannotBeEditedInsideIsWrittenAnewAndNothingElse(t *testing.T) {
	tail := "# end\nstatus: {}\n"
	for name, c := range map[string]struct{ before, after, anew string }{
		"a merged field that goes": {
			"spec: # s\n  <<: {workspace: {directory: /tmp}, suspend: true} # m\n  client: {command: [x]}\n",
			"spec: # s\n  workspace: {directory: /tmp}\n  client: {command: [z]}\n",
			"spec (line 5 of the document: a field comes from a merge key (<<))",
		},
		"a key that is given twice": {
			"spec: # s\n  # w\n  workspace: {directory: /tmp}\n  client: # c\n    args: []\n    args: [] # a\n    command: [x]\n",
			"spec: # s\n  # w\n  workspace: {directory: /tmp}\n  client: # c\n    command: [z]\n",
			"spec.client (line 8 of the document: it is written in a way that cannot be changed in place)",
		},
		"the first field of an item": {
			"spec: # s\n  # w\n  workspace: {directory: /tmp}\n  client: # c\n    command: [z]\n    env: # e\n    - value: x # v\n      name: A\n    # b\n    - name: B\n",
			"spec: # s\n  # w\n  workspace: {directory: /tmp}\n  client: # c\n    command: [z]\n    env: # e\n    - name: A\n    # b\n    - name: B\n",
			"spec.client.env[] (line 10 of the document: it is written in a way that cannot be changed in place)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := head + "spec:\n  workspace: {directory: /tmp}\n  client: {command: [z]}\n"
			if strings.Contains(c.after, "env") {
				want = head + "spec:\n  workspace: {directory: /tmp}\n  client:\n    command: [z]\n    env:\n    - name: A\n    - name: B\n"
			}
			got, change := applied(t, head+c.before+tail, want)
			assert.Equal(t, head+c.after+tail, got)
			assert.Equal(t, c.anew, change.Replaced)
		})
	}
}

func TestADocumentOfJSONStaysJSONWhateverIsApplied(t *testing.T) {
	want := head + "spec:\n  workspace: {directory: /var}\n  client:\n    command: [z]\n    args: [\"\\U0001F600\\u2028<&>\", \"yes\"]\n"
	for name, before := range map[string]string{
		"indented": jsonDocument, "compact": compactJSON,
		"with an escaped key": strings.Replace(compactJSON, `"client"`, `"\u0063lient"`, 1),
		"with a key twice":    strings.Replace(compactJSON, `"client"`, `"suspend":true,"suspend":true,"client"`, 1),
	} {
		got, _ := applied(t, before, want)
		assert.True(t, json.Valid([]byte(got)), "%s: %s", name, got)
		docs := spec.DecodeFile("a.json", []byte(got))
		assert.Equal(t, declarationOf(t, want).Session, docs.Items[0].Session, name)
	}
	got, change := applied(t, jsonDocument, strings.Replace(jsonDocument, `"sleep", "1"`, `"sleep", "2"`, 1))
	assert.True(t, strings.Replace(jsonDocument, `"sleep", "1"`, `"sleep", "2"`, 1) == got, got) //nolint:testifylint // every byte counts
	assert.Empty(t, change.Replaced)
}

func TestJSONThatIsAppliedToYAMLIsWrittenAsYAML(t *testing.T) {
	before := strings.Replace(shop, "    team: \"blue\"\n", "", 1)
	want := asJSON(t, replaceOnce(t, uncommentedShop(), []string{"  restartPolicy: Always\n", "  terminal:\n    columns: 80\n  envFrom: []\n"}[:0]), "", "")
	got, change := applied(t, before, want)
	assert.Empty(t, change.Replaced)
	assert.Equal(t, strings.Replace(shop, `team: "blue"`, "team: blue", 1), got)
}

func TestValuesOverSeveralLinesAreReplacedWhole(t *testing.T) {
	for name, note := range map[string]string{
		"plain":         "note: one\n      two\n\n      three # c",
		"double-quoted": "note: \"one\n      two \\\" # no\n      three\" # c",
		"single-quoted": "note: 'one\n      it''s # no\n\n      three' # c",
		"on a new line": "note:\n      one # c",
		"tagged":        "note: !!str 5 # c",
		"anchored":      "note: &n five # c",
		"literal":       "note: | # c\n      one\n\n        two\n\n",
		"folded, kept":  "note: >+ # c\n     one\n     two\n\n",
		"empty literal": "note: | # c",
	} {
		before := "  annotations:\n    # above\n    " + note + "\n    # below\n    z: z # z\n"
		file := func(annotations string) string {
			return strings.Replace(shop, "  labels:\n", annotations+"  labels:\n", 1)
		}
		plain := func(value string) string {
			return strings.Replace(uncommentedShop(), "  labels:\n", "  annotations:\n    note: "+value+"\n    z: z\n  labels:\n", 1)
		}
		for _, value := range []string{"short", "\"with\\nlines\\n\"", "|\n      with\n      lines"} {
			got, change := applied(t, file(before), plain(value))
			assert.Empty(t, change.Replaced, name)
			assert.Empty(t, goneComments(shop+"    # above\n    # below\n z # z\n", got), "%s: %s", name, got)
			assert.True(t, strings.HasPrefix(got, file(before)[:strings.Index(file(before), "note:")]), "%s: %s", name, got)
			assert.True(t, strings.HasSuffix(got, file(before)[strings.Index(file(before), "    # below"):]), "%s: %s", name, got)
		}
	}
}

func TestAnEditKeepsTheOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	path := write(t, filepath.Join(t.TempDir(), "a.yaml"), shop)
	require.NoError(t, os.Chown(path, 1234, 4321))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, SetSuspend(path, "a", true))
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	assert.EqualValues(t, 1234, st.Uid)
	assert.EqualValues(t, 4321, st.Gid)
	assert.EqualValues(t, 0o640, st.Mode&0o777)
}

func TestANameOfAnyLengthCanBeEdited(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), strings.Repeat("x", 250)+".yaml"), shop)
	require.NoError(t, SetSuspend(path, "a", true))
}

// M1: what a crash leaves beside a file is no manifest.
func TestWhatACrashLeavesBesideAFileIsNoManifest(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a.yaml"), shop)
	s, err := openSource(path, SessionRef("a"))
	require.NoError(t, err)
	edited, err := s.suspended("a", true)
	require.NoError(t, err)
	var left []string
	err = swapContent(path, edited, func() error {
		entries, err := os.ReadDir(dir)
		for _, entry := range entries {
			left = append(left, entry.Name())
		}
		reading := Read([]string{dir})
		assert.Len(t, reading.Files, 1, "a reader sees the old file alone")
		assert.Empty(t, reading.Unread)
		return err
	})
	require.NoError(t, err)
	require.Len(t, left, 2)
	for _, name := range left {
		assert.True(t, name == "a.yaml" || !isManifest(name), name)
	}
}

func TestAFileThatAppearsMeanwhileIsNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	c, err := NewEditor([]string{dir}).Apply(declarationOf(t, shop))
	require.NoError(t, err)
	require.Equal(t, Created, c.Outcome)
	path := write(t, filepath.Join(dir, "a.yaml"), other)
	require.ErrorIs(t, c.Write(), ErrChanged)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, other, string(data))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestEditsOfOneFileByManyProcessesAreAllMade(t *testing.T) {
	dir := t.TempDir()
	var docs, names []string
	for _, name := range strings.Split("abcd", "") {
		names = append(names, name)
		docs = append(docs, yamlOf(name, "1"))
	}
	path := write(t, filepath.Join(dir, "all.yaml"), strings.Join(docs, "---\n"))
	var wg sync.WaitGroup
	for _, name := range names {
		want := declarationOf(t, yamlOf(name, "2"))
		editor := NewEditor([]string{dir}) // as a process has that began before the others wrote
		wg.Go(func() {
			for {
				c, err := editor.Apply(want)
				if err == nil {
					err = editor.Write(c)
				}
				if !errors.Is(err, ErrChanged) {
					assert.NoError(t, err)
					return
				}
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(strings.Join(docs, "---\n"), `"1"`, `"2"`), string(data))
}

func TestASessionThatManyProcessesCreateGetsOneFile(t *testing.T) {
	dir := t.TempDir()
	want := declarationOf(t, shop)
	var wg sync.WaitGroup
	for range 8 {
		editor := NewEditor([]string{dir}) // before any of them wrote
		wg.Go(func() {
			for {
				c, err := editor.Apply(want)
				if err == nil {
					err = editor.Write(c)
				}
				if !errors.Is(err, ErrChanged) {
					assert.NoError(t, err)
					return
				}
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, "a.yaml", entries[0].Name())
}

func TestANewFileGoesIntoTheFirstRootThatIsADirectory(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "one.yaml"), other)
	missing := filepath.Join(dir, "deep/er")
	c, err := NewEditor([]string{file, filepath.Join(dir, "none.yaml"), missing, dir}).Apply(declarationOf(t, shop))
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(missing, "a.yaml"), c.File)
	require.NoError(t, c.Check())
	assert.NoDirExists(t, missing)
	require.NoError(t, c.Write())
	data, err := os.ReadFile(c.File)
	require.NoError(t, err)
	assert.Equal(t, shop, string(data), "as the person wrote it")
	_, err = NewEditor([]string{file}).Apply(declarationOf(t, shop))
	require.ErrorIs(t, err, ErrNotEditable)
}

// FuzzApply looks for a file and a document for which an edit panics, or is not
// what was wanted, or touches what is around the document.
func FuzzApply(f *testing.F) {
	for _, c := range applyCases {
		f.Add("# file\n---\n"+shop+"---\n"+other, c.want[len(c.want)-1])
	}
	for _, e := range suspendEdits {
		f.Add(e.before, shop)
	}
	f.Fuzz(func(t *testing.T, file, want string) {
		all, _ := Declarations("want.yaml", []byte(want))
		s := sourceOf(file)
		if s.find(SessionRef("a")) != nil {
			return
		}
		for _, d := range all {
			if d.Session == nil || d.Name != "a" {
				continue
			}
			c, err := s.configure(d)
			if err != nil {
				require.ErrorIs(t, err, ErrNotEditable)
				continue
			}
			require.True(t, strings.HasPrefix(string(c.edited), file[:s.part.start]))
			require.True(t, strings.HasSuffix(string(c.edited), file[s.part.end:]))
			require.Len(t, spec.DecodeFile("a.yaml", c.edited).Items, len(s.decoded.Items))
		}
	})
}

func TestApplyKeepsWhatStandsInAnAnchoredCollectionInFlowStyle(t *testing.T) {
	for name, open := range map[string]string{"an anchor": "&c [", "a tag": "!!seq [", "both": "!!seq &c ["} {
		t.Run(name, func(t *testing.T) {
			before := head + "spec:\n  workspace: {directory: /tmp}\n  client:\n    command: " + open + "\n      sleep, # why\n      '1', # how long\n    ]\n"
			want := head + "spec:\n  workspace: {directory: /tmp}\n  client:\n    command: [sleep, '2']\n"
			after, c := applied(t, before, want)
			assert.Equal(t, strings.Replace(before, "'1', #", "'2', #", 1), after)
			assert.Empty(t, c.Replaced)
		})
	}
}
