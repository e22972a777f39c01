// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// texts are all YAML texts of the tree that a person could copy, by where they are.
func texts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range []string{"../samples", "../../spec/classes"} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			found[path] = string(data)
			return err
		}))
	}
	samples := len(found)
	require.Greater(t, samples, 8)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		found["README.md: "+strings.SplitN(m[1], "\n", 2)[0]+" "+m[1]] = m[1]
	}
	require.Greater(t, len(found), samples)
	return found
}

func TestTheSchemasAcceptEverySampleAndEveryDocumentOfTheReadme(t *testing.T) {
	for path, text := range texts(t) {
		for _, document := range documents(t, text) {
			assert.NoError(t, validator(t, fileFor(document)).Validate(document), path)
		}
	}
}

const head = "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a}\n"

const settingsHead = "apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\n"

// Each of these is a mistake of people. An editor marks it before the daemon refuses it.
func TestTheSchemasAndTheDecoderRefuseTheSameMistakes(t *testing.T) {
	for name, text := range map[string]string{
		"no kind":                 "apiVersion: muxlet.dev/v1alpha1\nmetadata: {name: a}\nspec: {workspace: {directory: /x}}\n",
		"a kind of Kubernetes":    "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
		"another version":         "apiVersion: muxlet.dev/v1\nkind: Session\nmetadata: {name: a}\nspec: {workspace: {directory: /x}}\n",
		"no name":                 "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {labels: {a: b}}\nspec: {workspace: {directory: /x}}\n",
		"a name with capitals":    "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: Checkout}\nspec: {workspace: {directory: /x}}\n",
		"another namespace":       "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a, namespace: kube-system}\nspec: {workspace: {directory: /x}}\n",
		"a misspelt field":        head + "spec: {workspace: {directory: /x}, restartPolice: Always}\n",
		"a field one level up":    head + "spec: {workspace: {directory: /x}, command: [sh]}\n",
		"a relative directory":    head + "spec: {workspace: {directory: src/shop}}\n",
		"another's home":          head + "spec: {workspace: {directory: ~bob/shop}}\n",
		"a command as a text":     head + "spec: {workspace: {directory: /x}, client: {command: npm run dev}}\n",
		"a number for a text":     head + "spec: {workspace: {directory: /x}, client: {command: [sleep, 5]}}\n",
		"a truth for a text":      head + "spec: {workspace: {directory: /x}, client: {env: [{name: A, value: true}]}}\n",
		"a variable's name":       head + "spec: {workspace: {directory: /x}, client: {env: [{name: MY-KEY, value: b}]}}\n",
		"env as a mapping":        head + "spec: {workspace: {directory: /x}, client: {env: {A: b}}}\n",
		"a policy in lower case":  head + "spec: {workspace: {directory: /x}, restartPolicy: always}\n",
		"a truth in quotes":       head + "spec: {workspace: {directory: /x}, suspend: \"true\"}\n",
		"a time with its unit":    head + "spec: {workspace: {directory: /x}, startupTimeoutSeconds: 60s}\n",
		"a number out of bounds":  head + "spec: {workspace: {directory: /x}, terminal: {columns: 10}}\n",
		"an id that is a flag":    head + "spec: {workspace: {directory: /x}, conversation: {id: --last}}\n",
		"a class without reason":  "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: a}\nspec: {attention: [{pattern: x}]}\n",
		"a signal that kills":     "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: a}\nspec: {stop: {signal: SIGKILL}}\n",
		"a session's field":       "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: a}\nspec: {workspace: {directory: /x}}\n",
		"a class with namespace":  "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: a, namespace: default}\n",
		"a setting that is none":  settingsHead + "manifest: [~/sessions]\n",
		"a time without its unit": settingsHead + "resyncPeriod: 15\n",
		"a time in days":          settingsHead + "retention: {archive: 30d}\n",
		"a size of bytes":         settingsHead + "retention: {turnBytes: 64MB}\n",
		"too many percent":        settingsHead + "massDeath: {percent: 101}\n",
		"a relative root":         settingsHead + "manifests: [sessions]\n",
		"one root as a text":      settingsHead + "manifests: ~/sessions\n",
		"a format of the log":     settingsHead + "logging: {format: yaml}\n",
		"settings as a session":   "apiVersion: config.muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a}\n",
	} {
		t.Run(name, func(t *testing.T) {
			all := documents(t, text)
			require.Len(t, all, 1)
			require.Error(t, validator(t, fileFor(all[0])).Validate(all[0]))
			fields, _ := all[0].(map[string]any)
			assert.NotEmpty(t, fieldsOf(t, fields))
		})
	}
}

// Whoever opens any kind finds a description at each field, in the words of documents.
func TestEveryFieldIsDescribed(t *testing.T) {
	for _, kind := range Kinds() {
		s, err := kind.Schema()
		require.NoError(t, err)
		fields := 0
		var walk func(path string, s *Schema)
		walk = func(path string, s *Schema) {
			for _, name := range s.Fields() {
				field := s.Field(name)
				assert.NotEmpty(t, field.Description, path+"."+name)
				assert.NotEmpty(t, field.Type, path+"."+name)
				fields++
				walk(path+"."+name, field)
			}
		}
		walk(kind.Words[0], s)
		assert.Greater(t, fields, 15, kind.Kind)
	}
}

// What get -o yaml prints can be put into a file, and an editor finds nothing wrong there.
func TestTheSchemasAcceptWhatIsServed(t *testing.T) {
	manifest := validator(t, ManifestFile)
	for _, class := range spec.BuiltInClasses() {
		require.NoError(t, manifest.Validate(asJSON(t, class)), class.Name)
	}
	decoded := spec.DecodeFile("f", []byte(head+"spec: {workspace: {directory: /x}, livenessProbe: {exec: {command: [a]}}}\n"))
	s := decoded.Items[0].Session
	require.NotNil(t, s)
	now := metav1.Now().Rfc3339Copy()
	s.UID, s.Generation, s.ResourceVersion, s.CreationTimestamp = "u", 3, "7", now
	s.Status = spec.SessionStatus{
		Conditions:   []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: now}},
		Client:       spec.ClientStatus{Incarnation: 2, Pid: 7, StartedAt: &now, LastTermination: &spec.Termination{Reason: "Killed", FinishedAt: now}},
		Conversation: &spec.ConversationStatus{ID: "a", History: []spec.PastConversation{{ID: "b", ReplacedAt: now, Reason: "Cleared"}}},
		Activity:     &spec.ActivityStatus{State: spec.ActivityIdle, Since: now},
	}
	require.NoError(t, manifest.Validate(asJSON(t, s)))
}
