// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// good is a document with everything that is required.
func good(name string) string {
	return fmt.Sprintf(`apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata:
  name: %s
spec:
  client:
    command: [sh]
  workspace:
    directory: ~/src
`, name)
}

// texts gives what a person sees of a file: its problems, then those of each
// document.
func texts(docs Documents) []string {
	var all []string
	for _, p := range docs.Problems {
		all = append(all, p.Error())
	}
	for _, doc := range docs.Items {
		for _, p := range doc.Problems {
			all = append(all, p.Error())
		}
	}
	return all
}

func TestSmallestDocumentIsDecodedAndDefaulted(t *testing.T) {
	docs := DecodeFile("a.yaml", []byte(good("a")))
	require.Empty(t, texts(docs))
	require.Len(t, docs.Items, 1)
	s := docs.Items[0].Session
	require.NotNil(t, s)
	assert.Equal(t, "a", docs.Items[0].Name)
	assert.Equal(t, "a", s.Name)
	assert.Equal(t, Namespace, s.Namespace)
	assert.Equal(t, KindSession, s.Kind)
	assert.Equal(t, []string{"sh"}, s.Spec.Client.Command)
	assert.Equal(t, ClassExec, s.Spec.ClientClassName)
	assert.Equal(t, RestartAlways, s.Spec.RestartPolicy)
	assert.Equal(t, []string{"a"}, docs.Names)
}

const everyField = `apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata:
  name: all
  namespace: default
  labels: {repo: shop, "on": "yes"}
  annotations: {muxlet.dev/Note: any text}
spec:
  clientClassName: exec
  client:
    command: [npm, run]
    args: ["8080", "y", ""]
    startArgs: ["--once"]
    env:
    - {name: LOG, value: debug}
    - {name: API_KEY, valueFrom: {fileRef: {path: ~/.config/key, optional: yes}}}
    envFrom: [{fileRef: {path: $HOME/agents.env, optional: true}}]
    shellMode: Login
  workspace: {directory: /src/shop, type: DirectoryOrCreate}
  restartPolicy: OnFailure
  recoveryPolicy: Dormant
  suspend: on
  updateStrategy: {type: Recreate}
  livenessProbe: {exec: {command: [curl, -f]}, initialDelaySeconds: 0, periodSeconds: 3600, timeoutSeconds: 300, failureThreshold: 100}
  startupTimeoutSeconds: 3600
  terminationGracePeriodSeconds: 0
  resources: {limits: {memory: 2Gi, cpu: 1.5, tasks: 200}, onUnsupported: Ignore}
  terminal: {columns: 20, rows: 5, historyLimit: 0}
  conversation: {id: 0b5c7f5e-1, missingPolicy: Hold}
  deletionPolicy: Orphan
  provisioningPolicy: OnDemand
  initialPrompt: |
    Read the notes:

    	"a; b" 🙂
`

func TestEveryFieldArrivesWhereItBelongs(t *testing.T) {
	docs := DecodeFile("a.yaml", []byte(everyField))
	require.Empty(t, texts(docs))
	s := docs.Items[0].Session
	zero, hour := int32(0), int32(3600)
	assert.Equal(t, map[string]string{"repo": "shop", "on": "yes"}, s.Labels)
	assert.Equal(t, map[string]string{"muxlet.dev/Note": "any text"}, s.Annotations)
	assert.Equal(t, SessionSpec{
		ClientClassName: ClassExec,
		Client: ClientSpec{
			Command:   []string{"npm", "run"},
			Args:      []string{"8080", "y", ""},
			StartArgs: []string{"--once"},
			Env: []EnvVar{
				{Name: "LOG", Value: "debug"},
				{Name: "API_KEY", ValueFrom: &EnvVarSource{FileRef: &FileRef{Path: "~/.config/key", Optional: true}}},
			},
			EnvFrom:   []EnvFromSource{{FileRef: &FileRef{Path: "$HOME/agents.env", Optional: true}}},
			ShellMode: ShellLogin,
		},
		Workspace:      WorkspaceSpec{Directory: "/src/shop", Type: WorkspaceDirectoryOrCreate},
		RestartPolicy:  RestartOnFailure,
		RecoveryPolicy: RecoveryDormant,
		Suspend:        true,
		UpdateStrategy: UpdateStrategy{Type: UpdateRecreate},
		LivenessProbe: &LivenessProbe{
			Exec: ProbeExec{Command: []string{"curl", "-f"}}, InitialDelaySeconds: &zero, PeriodSeconds: &hour,
			TimeoutSeconds: ptr.To[int32](300), FailureThreshold: ptr.To[int32](100),
		},
		StartupTimeoutSeconds:         &hour,
		TerminationGracePeriodSeconds: &zero,
		Resources: ResourcesSpec{
			Limits:        ResourceLimits{Memory: ptr.To(resource.MustParse("2Gi")), CPU: ptr.To(resource.MustParse("1.5")), Tasks: ptr.To[int32](200)},
			OnUnsupported: UnsupportedIgnore,
		},
		Terminal:           TerminalSpec{Columns: 20, Rows: 5, HistoryLimit: &zero},
		Conversation:       ConversationSpec{ID: "0b5c7f5e-1", MissingPolicy: MissingHold},
		DeletionPolicy:     DeletionOrphan,
		ProvisioningPolicy: ProvisioningOnDemand,
		InitialPrompt:      "Read the notes:\n\n\t\"a; b\" 🙂\n",
	}, s.Spec)
}

func TestOneBadDocumentSpoilsNoOther(t *testing.T) {
	for name, second := range map[string]string{
		"syntax error":     "kind: [Session\n",
		"unclosed quote":   "kind: \"Session\n",
		"unknown field":    strings.Replace(good("b"), "command", "comand", 1),
		"block scalar":     "kind: |\n  text\n",
		"tab":              "kind:\n\tSession: x\n",
		"alias elsewhere":  "kind: *anchor\n",
		"opened yet again": "kind: {a: [b, {\n",
	} {
		t.Run(name, func(t *testing.T) {
			docs := DecodeFile("a.yaml", []byte(good("a")+"---\n"+second+"---\n"+good("c")))
			require.Len(t, docs.Items, 3)
			assert.NotNil(t, docs.Items[0].Session)
			assert.Nil(t, docs.Items[1].Session)
			assert.NotEmpty(t, docs.Items[1].Problems)
			assert.NotNil(t, docs.Items[2].Session)
			assert.Equal(t, 11, docs.Items[1].Line, "the line counts from the top of the file")
		})
	}
}

func TestDocumentsAreSplitWhereYAMLEndsThem(t *testing.T) {
	type place struct {
		name            string
		line, col, last int
	}
	for name, c := range map[string]struct {
		text string
		want []place
	}{
		"empty file":       {"", nil},
		"comments alone":   {"# nothing\n\n---\n# here\n", nil},
		"null document":    {"---\n~\n---\n", nil},
		"leading marker":   {"---\n" + good("a"), []place{{"a", 2, 1, 10}}},
		"marker comment":   {"--- # first\n" + good("a"), []place{{"a", 2, 1, 10}}},
		"trailing marker":  {good("a") + "---\n\n# end\n", []place{{"a", 1, 1, 9}}},
		"two":              {good("a") + "---\n" + good("b"), []place{{"a", 1, 1, 9}, {"b", 11, 1, 19}}},
		"end marker":       {good("a") + "...\n" + good("b"), []place{{"a", 1, 1, 9}, {"b", 11, 1, 19}}},
		"directive":        {"%YAML 1.2\n---\n" + good("a"), []place{{"a", 3, 1, 11}}},
		"comment first":    {"# a\n\n" + good("a") + "\n# b\n\n", []place{{"a", 3, 1, 11}}},
		"same line":        {`--- {"apiVersion": muxlet.dev/v1alpha1, kind: Session, metadata: {name: a}, spec: {client: {command: [a]}, workspace: {directory: /}}}`, []place{{"a", 1, 6, 1}}},
		"no line feed":     {strings.TrimSuffix(good("a"), "\n"), []place{{"a", 1, 1, 9}}},
		"CRLF":             {strings.ReplaceAll(good("a")+"---\n"+good("b"), "\n", "\r\n"), []place{{"a", 1, 1, 9}, {"b", 11, 1, 19}}},
		"CR":               {strings.ReplaceAll(good("a")+"---\n"+good("b"), "\n", "\r"), []place{{"a", 1, 1, 9}, {"b", 11, 1, 19}}},
		"BOM":              {"\uFEFF" + good("a"), []place{{"a", 1, 1, 9}}},
		"BOM in between":   {good("a") + "\uFEFF---\n" + good("b"), []place{{"a", 1, 1, 9}, {"b", 11, 1, 19}}},
		"marker in a text": {strings.Replace(good("a"), "[sh]", "[sh, -c, \"x\n      --- y\"]", 1), []place{{"a", 1, 1, 10}}},
	} {
		t.Run(name, func(t *testing.T) {
			docs := DecodeFile("a.yaml", []byte(c.text))
			require.Empty(t, texts(docs))
			var got []place
			for _, doc := range docs.Items {
				require.NotNil(t, doc.Session)
				got = append(got, place{doc.Name, doc.Line, doc.Column, doc.EndLine})
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestJSONIsDecoded(t *testing.T) {
	const text = "{\n\t\"apiVersion\": \"muxlet.dev/v1alpha1\", \"kind\":\"Session\",\n" +
		"\t\"metadata\":{\"name\":\"js\",\"creationTimestamp\":null},\n" +
		"\t\"spec\":{\"client\":{\"command\":[\"\\\\\\ud83d\\ude00\",\"a\\/b\",\"\\t\\u00e9\u2028\u0085\x7f\"]},\"workspace\":{\"directory\":\"/tmp\"}}\n}"
	docs := DecodeFile("a.json", []byte(text))
	require.Empty(t, texts(docs))
	require.Len(t, docs.Items, 1)
	assert.Equal(t, []string{`\😀`, "a/b", "\té\u2028\u0085\x7f"}, docs.Items[0].Session.Spec.Client.Command)
	assert.Equal(t, 5, docs.Items[0].EndLine)
}

func TestAnchorsAliasesAndMergeKeysAreResolved(t *testing.T) {
	const text = `apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata: {name: &name a, labels: {app: *name}}
spec:
  client:
    command: &argv [sh]
    args: *argv
    env:
    - &base {name: A, value: one}
    - {<<: *base, name: B}
    - {<<: [{name: C}, *base]}
  workspace: {directory: /}
`
	docs := DecodeFile("a.yaml", []byte(text))
	require.Empty(t, texts(docs))
	client := docs.Items[0].Session.Spec.Client
	assert.Equal(t, []string{"sh"}, client.Args)
	assert.Equal(t, []EnvVar{{Name: "A", Value: "one"}, {Name: "B", Value: "one"}, {Name: "C", Value: "one"}}, client.Env)
	assert.Equal(t, map[string]string{"app": "a"}, docs.Items[0].Session.Labels)
}

// The output of get -o yaml can be put into a file.
func TestWhatTheAPIServesIsAcceptedAndIgnored(t *testing.T) {
	text := strings.Replace(good("a"), "  name: a\n", "  name: a\n  uid: u\n  generation: 7\n  resourceVersion: \"9\"\n  creationTimestamp: 2026-01-02T03:04:05Z\n", 1)
	docs := DecodeFile("a.yaml", []byte(text+"status: {observedGeneration: x, nonsense: [1]}\n"))
	require.Empty(t, texts(docs))
	s := docs.Items[0].Session
	assert.Empty(t, s.UID)
	assert.Zero(t, s.Generation)
	assert.Empty(t, s.ResourceVersion)
	assert.True(t, s.CreationTimestamp.IsZero())
	assert.Equal(t, SessionStatus{}, s.Status)
}

func TestFileThatIsNoTextIsOneClearSentence(t *testing.T) {
	utf16 := []byte{0xFF, 0xFE}
	for _, b := range []byte("metadata: {name: wide}\n") {
		utf16 = append(utf16, b, 0)
	}
	for name, c := range map[string]struct {
		data, want string
		names      []string
	}{
		"NUL":      {"a: 1\nbé: \x00\nname: x\n", "f.yaml:2:5: a NUL byte; this is no text file, or it was damaged while it was written", []string{"x"}},
		"NUL tail": {good("a") + "\x00\x00\x00", "f.yaml:10:1: a NUL byte; this is no text file, or it was damaged while it was written", []string{"a"}},
		"UTF-16":   {string(utf16), "f.yaml: the file is UTF-16; save it as UTF-8", []string{"wide"}},
		"Latin-1":  {good("a") + "# caf\xe9\n", "f.yaml:10:6: a byte that is not UTF-8; save the file as UTF-8", []string{"a"}},
		"too long": {good("a") + strings.Repeat("#", MaxFileBytes), "f.yaml: the file has 1048710 bytes; at most 1048576 are read: split it", []string{"a"}},
		"too many": {strings.Repeat("--- a\n", MaxDocuments+1), "f.yaml: the file has 10001 documents; at most 10000 are read: split it", nil},
	} {
		t.Run(name, func(t *testing.T) {
			docs := DecodeFile("f.yaml", []byte(c.data))
			assert.Empty(t, docs.Items)
			assert.Equal(t, []string{c.want}, texts(docs))
			assert.Equal(t, c.names, docs.Names)
		})
	}
}

func TestNamesAreFoundWhereTheFileDoesNotParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"good document gives its own alone": {strings.Replace(good("a"), "[sh]", "[sh]\n    env: [{name: X}]", 1), []string{"a"}},
		"invalid document too":              {strings.Replace(good("a"), "kind: Session", "kind: Sesion", 1), []string{"a"}},
		"syntax error":                      {"metadata:\n  name: a\nspec: [\n", []string{"a"}},
		"error above":                       {"kind: [\nmetadata:\n  name: 'a'\n", []string{"a"}},
		"flow":                              {"metadata: {labels: {x: y}, name: a}\nspec: [\n", []string{"a"}},
		"JSON cut short":                    {`{"metadata":{"name":"a"},"spec":{`, []string{"a"}},
		"quoted key":                        {"metadata:\n  \"name\" : \"a\" # x\nspec: [\n", []string{"a"}},
		"next line":                         {"metadata:\n  name:\n    a\nspec: [\n", []string{"a"}},
		"anchored":                          {"metadata: {name: &n a}\nspec: [\n", []string{"a"}},
		"too many rather than too few":      {"metadata: {name: a}\nspec: {env: [{name: LOG}]\n", []string{"a", "LOG"}},
		"other keys":                        {"filename: a\nnames: b\nspec: [\n", nil},
		"misspelled metadata":               {strings.Replace(good("a"), "metadata", "metdata", 1), []string{"a"}},
		"name that is no text":              {strings.Replace(good("a"), "name: a", "name: {first: a}\n  x: {name: b}", 1), []string{"b"}},
		"several documents, once each":      {good("a") + "---\n" + good("b") + "---\n" + good("a"), []string{"a", "b"}},
		"list of documents":                 {"- metadata: {name: a}\n- metadata: {name: b}\n", []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, DecodeFile("f.yaml", []byte(c.text)).Names)
		})
	}
}

func TestDecodeStrictKeepsWhatTheFileDoesNotSay(t *testing.T) {
	s := Session{Spec: SessionSpec{RestartPolicy: RestartNever, Workspace: WorkspaceSpec{Directory: "/a", Type: "x"}}}
	tree, problems := DecodeStrict("f", []byte("apiVersion: muxlet.dev/v1alpha1\nkind: Session\nspec: {workspace: {directory: /b}}\n"),
		GroupVersion.WithKind(KindSession), &s)
	require.Empty(t, problems)
	assert.Equal(t, RestartNever, s.Spec.RestartPolicy)
	assert.Equal(t, WorkspaceSpec{Directory: "/b", Type: "x"}, s.Spec.Workspace)
	assert.True(t, tree.Has("spec.workspace.directory"))
	assert.False(t, tree.Has("spec.workspace.type"))
	assert.False(t, tree.Has("spec.restartPolicy"))
}

func TestDecodeStrictWantsOneDocument(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"none":   {"# nothing\n", nil},
		"one":    {"---\n" + good("a"), nil},
		"two":    {good("a") + "---\n" + good("b"), []string{"f:11:1: a second document; this file may hold only one"}},
		"broken": {"a: [\n", []string{`f:1:1: a value is missing here, or a bracket that was opened is not closed (YAML: did not find expected node content)`}},
		"binary": {"a\x00", []string{"f:1:2: a NUL byte; this is no text file, or it was damaged while it was written"}},
		"status": {good("a") + "status: {x: 1}\n", []string{"f:10:10: status.x: unknown field; the fields here are observedGeneration, conditions, client, conversation, activity, livenessProbe, workspace, tmux, source, evidence, decision, nextAttemptTime, consecutiveDeaths"}},
	} {
		t.Run(name, func(t *testing.T) {
			var s Session
			tree, problems := DecodeStrict("f", []byte(c.text), GroupVersion.WithKind(KindSession), &s)
			require.NotNil(t, tree)
			var got []string
			for _, p := range problems {
				got = append(got, p.Error())
			}
			assert.Equal(t, c.want, got)
		})
	}
}
