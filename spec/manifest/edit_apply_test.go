// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declarationOf is the only document of a text.
func declarationOf(t *testing.T, text string) Declaration {
	t.Helper()
	all, problems := Declarations("want.yaml", []byte(text))
	require.Empty(t, problems)
	require.Len(t, all, 1)
	require.Empty(t, all[0].Problems, text)
	return all[0]
}

// applied gives a file of its own with before in it, after what is wanted was
// applied.
func applied(t *testing.T, before, want string) (string, *Change) {
	t.Helper()
	name := "a.yaml"
	if json.Valid([]byte(before)) {
		name = "a.json"
	}
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, name), before)
	c, err := NewEditor([]string{dir}).Apply(declarationOf(t, want))
	require.NoError(t, err)
	require.NoError(t, c.Write())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	again, err := NewEditor([]string{dir}).Apply(declarationOf(t, want))
	require.NoError(t, err)
	assert.Equal(t, Unchanged, again.Outcome, "twice is once")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left beside it")
	return string(after), c
}

const shop = `# the shop
apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata:
  name: a  # mine
  labels:
    repo: shop   # where
    team: "blue"
spec: # what I want

  # where it runs
  workspace:
    directory: '/tmp'  # scratch
  client:
    # the program
    command: [sleep, '1']  # short
    env:
    # how loud
    - name: LOG
      value: debug # for now
    - {name: MODE, value: fast}
    args:
    - --one # first
    - --two # second
    # - --three
  restartPolicy: Always # or OnFailure
  # the end
`

// applyCases name the texts that the wanted document has instead, and those
// that the file must have then. Everything else must stay.
var applyCases = []struct {
	name string
	// want replaces in shop, pairwise, and gives the document that is applied,
	// without its comments; after replaces in shop and gives the file.
	want, after []string
}{
	{"a plain value", []string{"restartPolicy: Always", "restartPolicy: Never"}, []string{"restartPolicy: Always", "restartPolicy: Never"}},
	{"a quoted value keeps its quotes", []string{"'/tmp'", "/var"}, []string{"'/tmp'", "'/var'"}},
	{"a double-quoted value", []string{`"blue"`, "red"}, []string{`"blue"`, `"red"`}},
	{"a plain value that needs quotes", []string{"repo: shop", "repo: 'yes'"}, []string{"repo: shop", `repo: "yes"`}},
	{"a word of a flow list", []string{"[sleep, '1']", "[sleep, '2']"}, []string{"'1'", "'2'"}},
	{"a longer flow list", []string{"[sleep, '1']", "[nice, sleep, '1', '2']"}, []string{"[sleep, '1']", "[nice, sleep, '1', '2']"}},
	{"a shorter flow list", []string{"[sleep, '1']", "[sleep]"}, []string{"[sleep, '1']", "[sleep]"}},
	{"a flow list that becomes a block", []string{"[sleep, '1']", "\n    - sh\n    - -c"}, []string{"[sleep, '1']", "[sh, '-c']"}},
	{"a key at the end", []string{"restartPolicy: Always", "restartPolicy: Always\n  suspend: true"}, []string{"# or OnFailure\n", "# or OnFailure\n  suspend: true\n"}},
	{"a key in the middle", []string{"  client:", "  suspend: true\n  client:"}, []string{"# scratch\n", "# scratch\n  suspend: true\n"}},
	{"a key at the top", []string{"  workspace:", "  suspend: true\n  workspace:"}, []string{"I want\n", "I want\n  suspend: true\n"}},
	{"a key after a list with a comment in it", []string{"  restartPolicy", "  recoveryPolicy: Dormant\n  restartPolicy"}, []string{"# - --three\n", "# - --three\n  recoveryPolicy: Dormant\n"}},
	{"a mapping", []string{"  restartPolicy", "  terminal: {columns: 80}\n  updateStrategy:\n    type: Recreate\n  restartPolicy"}, []string{"# - --three\n", "# - --three\n  terminal: {columns: 80}\n  updateStrategy:\n    type: Recreate\n"}},
	{"a key goes with what is behind it", []string{"  restartPolicy: Always\n", ""}, []string{"  restartPolicy: Always # or OnFailure\n", ""}},
	{"a mapping goes", []string{"  labels:\n    repo: shop\n    team: \"blue\"\n", ""}, []string{"  labels:\n    repo: shop   # where\n    team: \"blue\"\n", ""}},
	{"a comment above a key that goes stays", []string{"    command: [sleep, '1']\n", "    command: [sleep, '1']\n    shellMode: None\n", "    env:\n    - name: LOG\n      value: debug\n    - {name: MODE, value: fast}\n", ""},
		[]string{"# short\n", "# short\n    shellMode: None\n", "    env:\n    # how loud\n    - name: LOG\n      value: debug # for now\n    - {name: MODE, value: fast}\n", ""}},
	{"a variable's value", []string{"debug", "info"}, []string{"debug", "info"}},
	{"a variable's value in flow style", []string{"fast", "slow"}, []string{"fast", "slow"}},
	{"a variable more", []string{"fast}\n", "fast}\n    - {name: NEW, value: '1'}\n"}, []string{"fast}\n", "fast}\n    - {name: NEW, value: '1'}\n"}},
	{"a variable before all others", []string{"env:\n", "env:\n    - name: NEW\n      value: x\n"}, []string{"env:\n", "env:\n    - name: NEW\n      value: x\n"}},
	{"a variable less", []string{"    - {name: MODE, value: fast}\n", ""}, []string{"    - {name: MODE, value: fast}\n", ""}},
	{"the first variable goes", []string{"    - name: LOG\n      value: debug\n", ""}, []string{"    - name: LOG\n      value: debug # for now\n", ""}},
	{"a variable that reads a file", []string{"      value: debug\n", "      valueFrom:\n        fileRef: {path: /k}\n"}, []string{"      value: debug # for now\n", "      valueFrom:\n        fileRef: {path: /k}\n"}},
	{"a word of a block list", []string{"--two", "--deux"}, []string{"--two", "--deux"}},
	{"a word less", []string{"    - --one\n", ""}, []string{"    - --one # first\n", ""}},
	{"a word more", []string{"    - --one\n", "    - --one\n    - '--and a half'\n"}, []string{"# first\n", "# first\n    - '--and a half'\n"}},
	{"an empty list", []string{"    args:\n    - --one\n    - --two\n", "    args: []\n"}, []string{"    args:\n    - --one # first\n    - --two # second\n", "    args: []\n"}},
	{"a list that gets lines", []string{"[sleep, '1']", "[sh, -c, \"a\\nb\"]"}, []string{"[sleep, '1']", `[sh, '-c', "a\nb"]`}},
	{"when there is a client", []string{"  restartPolicy", "  provisioningPolicy: OnDemand\n  restartPolicy"}, []string{"# - --three\n", "# - --three\n  provisioningPolicy: OnDemand\n"}},
	{"a first turn of several lines", []string{"  restartPolicy", "  initialPrompt: |\n    Read: the notes #all\n\n    \t- \"then\"; tell 🙂\n  restartPolicy"}, []string{"# - --three\n", "# - --three\n  initialPrompt: |\n    Read: the notes #all\n\n    \t- \"then\"; tell 🙂\n"}},
	{"a text of several lines", []string{"    team: \"blue\"\n", "    team: \"blue\"\n  annotations:\n    note: |\n      one\n      two\n"}, []string{"    team: \"blue\"\n", "    team: \"blue\"\n  annotations:\n    note: |\n      one\n      two\n"}},
}

func TestApplyChangesWhatDiffers(t *testing.T) {
	bare := uncommentedShop()
	for _, c := range applyCases {
		t.Run(c.name, func(t *testing.T) {
			want, after := replaceOnce(t, bare, c.want), replaceOnce(t, shop, c.after)
			got, change := applied(t, shop, want)
			assert.Equal(t, after, got)
			assert.Equal(t, Configured, change.Outcome)
			assert.Empty(t, change.Replaced)

			t.Run("among others, with CRLF and a byte order mark", func(t *testing.T) {
				around := func(s string) string {
					return "\uFEFF" + crlf("# file\n---\n"+other+"---\n"+s+"...\n---\n# third\n"+strings.Replace(other, "other", "third", 1))
				}
				got, _ := applied(t, around(shop), want)
				assert.Equal(t, around(after), got)
			})
			t.Run("without a newline at the end", func(t *testing.T) {
				got, _ := applied(t, strings.TrimSuffix(shop, "\n"), want)
				assert.Equal(t, strings.TrimSuffix(after, "\n"), got)
			})
			t.Run("and back", func(t *testing.T) {
				back, change := applied(t, got, bare)
				assert.Empty(t, change.Replaced)
				assert.Empty(t, goneComments(after, back), back)
			})
			t.Run("in JSON", func(t *testing.T) {
				got, change := applied(t, asJSON(t, bare, "", "  "), want)
				assert.True(t, json.Valid([]byte(got)), got)
				assert.Empty(t, change.Replaced)
				got, change = applied(t, asJSON(t, bare, "", ""), want)
				assert.True(t, json.Valid([]byte(got)), got)
				assert.Empty(t, change.Replaced)
			})
		})
	}
}

// A prompt is delivered byte for byte: whatever way it is written in, an edit of it,
// and one beside it, gives the bytes that were meant.
func TestAnInitialPromptStaysTextThatAPersonCanRead(t *testing.T) {
	const before = head + `spec:
  # the first thing
  initialPrompt: |- # said once
    one
      two
  workspace: {directory: /tmp}
  client: {command: [x]} # c
`
	for name, c := range map[string]struct{ old, new, want string }{
		"another line":            {"    one\n      two\n", "    one\n      two\n    three\n", "    one\n      two\n    three\n"},
		"a line of white space":   {"      two\n", "      two\n       \n", "      two\n       \n"},
		"a newline at its end":    {"|- # said once", "| # said once", "| # said once"},
		"one line":                {"|- # said once\n    one\n      two\n", "one\n", "one # said once\n"},
		"the document beside it":  {"directory: /tmp", "directory: /var", "directory: /var"},
		"none":                    {"  initialPrompt: |- # said once\n    one\n      two\n", "", ""},
		"one that needs escapes":  {"|- # said once\n    one\n      two\n", "\" a\\n\\u2028\"\n", "\" a\\n\\u2028\" # said once\n"},
		"newlines before the end": {"|- # said once\n    one\n      two\n", "\"one\\n\\n\"\n", "\"one\\n\\n\" # said once\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, change := applied(t, before, replaceOnce(t, before, []string{c.old, c.new}))
			assert.Empty(t, change.Replaced)
			assert.Equal(t, replaceOnce(t, before, []string{c.old, c.want}), got)
			back, _ := applied(t, got, before)
			assert.Equal(t, declarationOf(t, before).Session.Spec, declarationOf(t, back).Session.Spec)
		})
	}
}

func TestTheWayInWhichAClassTakesATurnIsEditedInPlace(t *testing.T) {
	const before = `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: agent} # mine
spec:
  start: {command: [agent]}
  # how it is told
  submit:
    key: Enter # not C-m
    composer: {pattern: '^> (?P<text>.*)$'} # its line
  stop: {signal: SIGINT} # c
`
	after := replaceOnce(t, before, []string{"key: Enter #", "key: C-j #", "(?P<text>.*)", "(?P<text>[^|]*)"})
	got, change := applied(t, before, replaceOnce(t, after, []string{" # not C-m", "", " # its line", ""}))
	assert.Empty(t, change.Replaced)
	assert.Equal(t, after, got)
	more := []string{" # its line\n", " # its line\n    whileWorking: Queue\n    method: Queue\n    command: [agent, queue]\n"}
	got, change = applied(t, before, replaceOnce(t, before, more))
	assert.Empty(t, change.Replaced)
	assert.Equal(t, replaceOnce(t, before, more), got)
}

func replaceOnce(t *testing.T, s string, pairs []string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.Equal(t, 1, strings.Count(s, pairs[i]), "the test's own mark %q", pairs[i])
		s = strings.Replace(s, pairs[i], pairs[i+1], 1)
	}
	return s
}

// uncommentedShop is shop without comments: they are not applied.
func uncommentedShop() string {
	var b strings.Builder
	for line := range strings.Lines(shop) {
		before, _, _ := strings.Cut(line, "#")
		if before = strings.TrimRight(before, " \n"); before != "" {
			b.WriteString(before + "\n")
		}
	}
	return b.String()
}

// goneComments are the comments of before that after has not.
func goneComments(before, after string) []string {
	var gone []string
	for line := range strings.Lines(before) {
		if _, comment, found := strings.Cut(line, "# "); found && !strings.Contains(after, comment) {
			gone = append(gone, comment)
		}
	}
	return gone
}

func asJSON(t *testing.T, text, prefix, indent string) string {
	t.Helper()
	tree, err := declarationOf(t, text).tree()
	require.NoError(t, err)
	out := manner{json: true}.flow(tree, nil)
	if indent != "" {
		var v any
		require.NoError(t, json.Unmarshal([]byte(out), &v))
		data, err := json.MarshalIndent(v, prefix, indent)
		require.NoError(t, err)
		out = string(data)
	}
	return out
}

// A file that is being written may declare the session: a second one would make
// two of it.
func TestApplyMakesNoSecondFileWhileTheFirstIsWritten(t *testing.T) {
	needsWriterDetection(t)
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a.yaml"), yamlOf("a", "1"))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	e := NewEditor([]string{dir})
	_, err = e.Apply(declarationOf(t, yamlOf("a", "2")))
	require.ErrorIs(t, err, ErrChanged)
	_, err = e.Copy(SessionRef("a"))
	require.ErrorIs(t, err, ErrChanged)
	require.NoError(t, f.Close())
	c, err := e.Apply(declarationOf(t, yamlOf("a", "2")))
	require.ErrorIs(t, err, ErrChanged, "it was read while it was written")
	require.Nil(t, c)
	c, err = e.Apply(declarationOf(t, yamlOf("a", "2")))
	require.NoError(t, err)
	assert.Equal(t, Configured, c.Outcome)

	f, err = os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	past := time.Now().Add(-writerPatience)
	require.NoError(t, os.Chtimes(path, past, past))
	c, err = NewEditor([]string{dir}).Apply(declarationOf(t, yamlOf("a", "2")))
	require.NoError(t, err, "its writer rests")
	assert.Equal(t, Configured, c.Outcome)
	require.NoError(t, f.Close())
}
