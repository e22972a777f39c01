// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// words that mean something to one YAML or another. U+0085 and U+2028 are not
// among them: they are line ends in YAML 1.1, and its writers do not escape them.
var words = []string{
	"", " ", "a b", "y", "no", "On", "true", "null", "~", "1.10", "0x1F", "1_000", "017", "1e3", ".inf", "2026-01-02", "12:30:45",
	"- a", "a: b", "#x", "x #y", "*a", "&a", "!a", "%a", "@a", "`a", "{a", "[a", "a]", "?", ":", "-", "---", "...", "<<", "|", ">",
	"'", "\"", "it's", "a\nb\n", "\n", "\ttab", "trailing ", "\\", "\\n", "é", "😀", "\uFEFF", "\x1b[1m", "\u00a0",
}

// anySession is a random Session that Validate accepts.
func anySession(r *rand.Rand) *Session {
	word := func() string { return words[r.Intn(len(words))] }
	list := func() []string {
		items := []string{}
		for range r.Intn(4) {
			items = append(items, word())
		}
		return items
	}
	s := valid()
	s.TypeMeta = metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: KindSession}
	s.Namespace = Namespace
	s.Labels = map[string]string{"on": "yes", "n": "1.10"}
	s.Annotations = map[string]string{"note": word()}
	s.Spec.Client.Command = append([]string{"sh" + word()}, list()...)
	s.Spec.Client.Args = list()
	for i := range r.Intn(3) {
		s.Spec.Client.Env = append(s.Spec.Client.Env, EnvVar{Name: fmt.Sprintf("V%d", i), Value: word()})
	}
	s.Spec.Workspace.Directory = "/" + word()
	s.Spec.RestartPolicy = []RestartPolicy{RestartAlways, RestartOnFailure, RestartNever}[r.Intn(3)]
	s.Spec.Suspend = r.Intn(2) == 0
	s.Spec.Terminal.HistoryLimit = ptr.To(r.Int31n(1_000_000))
	return s
}

// What the API serves can be written to a file, in either format, and means the
// same there.
func TestWhatIsWrittenIsReadBack(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 100 {
		want := anySession(r)
		require.Empty(t, Validate(want))
		asYAML, err := yaml.Marshal(want)
		require.NoError(t, err)
		asJSON, err := json.Marshal(want)
		require.NoError(t, err)
		indented, err := json.MarshalIndent(want, "", "\t")
		require.NoError(t, err)
		for _, text := range [][]byte{asYAML, asJSON, indented} {
			docs := DecodeFile("f", text)
			require.Empty(t, texts(docs), "%s", text)
			got := docs.Items[0].Session
			require.Equal(t, slices.Concat(want.Spec.Client.Command, want.Spec.Client.Args), slices.Concat(got.Spec.Client.Command, got.Spec.Client.Args), "%s", text)
			require.Empty(t, LaunchDiff(&want.Spec, &got.Spec), "%s", text)
			require.Equal(t, want.Annotations, got.Annotations)
			require.Equal(t, want.Labels, got.Labels)
			require.Equal(t, want.Spec.Terminal, got.Spec.Terminal)
			require.Equal(t, want.Spec.Suspend, got.Spec.Suspend)
		}
	}
}

// mutate cuts, doubles and splices a text at random places.
func mutate(r *rand.Rand, text string, others []string) string {
	tokens := []string{
		"\t", "\n", "---\n", "- ", "? ", ": ", "&a ", "*a ", "<<: ", "!!int ", "~", "[", "]", "{", "}", "\"", "'", "|\n",
		"#", "%", "@", "\u2028", "\uFEFF", "\r", ",", "name: x\n",
	}
	for range 1 + r.Intn(5) {
		i := r.Intn(len(text) + 1)
		switch r.Intn(3) {
		case 0:
			text = text[:i] + tokens[r.Intn(len(tokens))] + text[i:]
		case 1:
			text = text[:i] + text[min(len(text), i+r.Intn(8)):]
		case 2:
			other := others[r.Intn(len(others))]
			from := r.Intn(len(other))
			text = text[:i] + other[from:min(len(other), from+r.Intn(40))] + text[i:]
		}
	}
	return text
}

// An edit that is half done ends in a Session or in a sentence, and the names
// that are still readable are still known.
func TestHalfDoneEditIsGoodOrExplained(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	seeds := []string{everyField, everyFieldOfAClass, good("a"), goodClass("b")}
	for _, data := range sampleFiles(t) {
		seeds = append(seeds, string(data))
	}
	slices.Sort(seeds)
	for range 1000 {
		text := strings.ToValidUTF8(mutate(r, seeds[r.Intn(len(seeds))], seeds), "")
		docs := DecodeFile("f", []byte(text))
		require.Empty(t, docs.Problems)
		for _, doc := range docs.Items {
			require.Equal(t, doc.Object() == nil, len(doc.Problems) > 0, "%s", text)
			require.LessOrEqual(t, doc.Line, doc.EndLine, "%s", text)
			for _, p := range doc.Problems {
				require.Positive(t, p.Line*p.Column, "%s: %s", p, text)
				require.NotContains(t, p.Message, "this cannot be decoded", "%s", text)
			}
			if doc.Name != "" {
				require.Contains(t, append(docs.Names, docs.ClassNames...), doc.Name, "%s", text)
			}
		}
	}
}

// A file that was cut off anywhere still names each session whose name it
// still holds: the removal guard rests on it.
func TestFileThatIsCutOffNamesWhatItStillHolds(t *testing.T) {
	text := good("first") + "---\n" + good("second")
	for end := range len(text) {
		docs := DecodeFile("f", []byte(text[:end]))
		for _, name := range []string{"first", "second"} {
			if strings.Contains(text[:end], "name: "+name) {
				assert.Contains(t, docs.Names, name, "%s", text[:end])
			}
		}
	}
}
