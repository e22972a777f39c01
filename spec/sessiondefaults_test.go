// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// defaultsOf are session defaults as they stand in the settings.
func defaultsOf(t *testing.T, text string) *SessionDefaults {
	t.Helper()
	var s SessionSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &s))
	return NewSessionDefaults(&s, ClassClaude)
}

// specOf is the defaulted spec of a document in YAML.
func specOf(t *testing.T, text string) SessionSpec {
	t.Helper()
	var s SessionSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &s))
	SetDefaults(&s)
	return s
}

func TestSessionDefaultsAreLaidUnderASession(t *testing.T) {
	for name, c := range map[string]struct{ defaults, own, want string }{
		"nothing of its own": {"workspace: {directory: ~/src}", "", "workspace: {directory: ~/src}"},
		"its own word counts": {
			"workspace: {directory: ~/src}\nrestartPolicy: Never", "spec: {workspace: {directory: /own}, restartPolicy: OnFailure}",
			"workspace: {directory: /own}\nrestartPolicy: OnFailure",
		},
		"objects are merged field by field": {
			"workspace: {directory: ~/src}\nterminal: {rows: 40, columns: 120}", "spec: {terminal: {rows: 30}}",
			"workspace: {directory: ~/src}\nterminal: {rows: 30, columns: 120}",
		},
		"a zero of its own counts": {
			"workspace: {directory: ~/src}\nterminal: {historyLimit: 9}\nterminationGracePeriodSeconds: 5\ninitialPrompt: hello",
			`spec: {terminal: {historyLimit: 0}, terminationGracePeriodSeconds: 0, initialPrompt: ""}`,
			"workspace: {directory: ~/src}\nterminal: {historyLimit: 0}\nterminationGracePeriodSeconds: 0",
		},
		"a zero of theirs counts": {
			"workspace: {directory: ~/src}\nterminal: {historyLimit: 0}", "spec: {}",
			"workspace: {directory: ~/src}\nterminal: {historyLimit: 0}",
		},
		"what it leaves empty is left out": {
			"workspace: {directory: ~/src}\nrestartPolicy: Never", "spec:\n  restartPolicy:\n  client: ~",
			"workspace: {directory: ~/src}\nrestartPolicy: Never",
		},
		"variables are merged by name": {
			"workspace: {directory: /d}\nclient: {env: [{name: A, value: a}, {name: B, valueFrom: {fileRef: {path: /b}}}]}",
			"spec: {client: {env: [{name: C, value: c}, {name: B, value: own}]}}",
			"workspace: {directory: /d}\nclient: {env: [{name: A, value: a}, {name: C, value: c}, {name: B, value: own}]}",
		},
		"other lists are its own": {
			"workspace: {directory: /d}\nclient: {args: [a, b], envFrom: [{fileRef: {path: /a}}]}", "spec: {client: {args: [c], envFrom: []}}",
			"workspace: {directory: /d}\nclient: {args: [c], envFrom: []}",
		},
		"a probe is merged field by field": {
			"workspace: {directory: /d}\nlivenessProbe: {exec: {command: [a]}, periodSeconds: 30}", "spec: {livenessProbe: {exec: {command: [b, c]}, failureThreshold: 5}}",
			"workspace: {directory: /d}\nlivenessProbe: {exec: {command: [b, c]}, periodSeconds: 30, failureThreshold: 5}",
		},
		"a command takes no class": {
			"workspace: {directory: /d}\nclientClassName: codex", "spec: {client: {command: [npm, run, dev]}}",
			"workspace: {directory: /d}\nclient: {command: [npm, run, dev]}\nclientClassName: exec",
		},
		"words for one class are not for another": {
			"workspace: {directory: /d}\nclient: {args: [--model, opus], startArgs: [x], shellMode: Login}\ninitialPrompt: hello", "spec: {client: {command: [npm]}}",
			"workspace: {directory: /d}\nclient: {command: [npm], shellMode: Login}",
		},
		"words for the class that is named": {
			"workspace: {directory: /d}\nclientClassName: codex\nclient: {args: [--x]}", "spec: {clientClassName: codex}",
			"workspace: {directory: /d}\nclientClassName: codex\nclient: {args: [--x]}",
		},
		"words for another one": {
			"workspace: {directory: /d}\nclientClassName: codex\nclient: {args: [--x]}", "spec: {clientClassName: claude}",
			"workspace: {directory: /d}\nclientClassName: claude",
		},
	} {
		t.Run(name, func(t *testing.T) {
			doc := DecodeFile("f", []byte(head+c.own+"\n")).Under(defaultsOf(t, c.defaults)).Items[0]
			require.Empty(t, doc.Problems)
			assert.Equal(t, specOf(t, c.want), doc.Session.Spec)
			assert.Equal(t, "a", doc.Session.Name)
			assert.Equal(t, Namespace, doc.Session.Namespace)
		})
	}
}

// The settings may change at any time: a document is judged anew by what it says itself.
func TestADocumentIsTheSameAgainWithoutTheDefaults(t *testing.T) {
	defaults := defaultsOf(t, "workspace: {directory: /d}\nterminal: {rows: 9}")
	for _, own := range []string{"", "spec: {workspace: {directory: /own}}", "spec: {restartPolicy: Often}", "spec: {x: 1}", "spec: {terminal: {rows: 6}}"} {
		docs := DecodeFile("f", []byte(head+own+"\n"))
		under := docs.Under(defaults)
		assert.Equal(t, docs.Items[0].DeclaredSession(), under.Items[0].DeclaredSession(), own)
		again := under.Under(nil)
		assert.Equal(t, docs.Items[0].Session, again.Items[0].Session, own)
		assert.Equal(t, docs.Items[0].Problems, again.Items[0].Problems, own)
		assert.Equal(t, under, again.Under(defaults), own)
	}
}

func TestWhatADocumentDeclaresDoesNotDependOnTheSettings(t *testing.T) {
	doc := DecodeFile("f", []byte(head+"spec: {restartPolicy: Never}\n")).Items[0]
	assert.Nil(t, doc.Session)
	require.NotNil(t, doc.DeclaredSession())
	assert.Equal(t, RestartNever, doc.DeclaredSession().Spec.RestartPolicy)
	assert.Nil(t, DecodeFile("f", []byte(head+"spec: {restartPolicy: Often}\n")).Items[0].Declared())
}

func TestProblemsUnderDefaultsHaveTheirPlaces(t *testing.T) {
	defaults := defaultsOf(t, "workspace: {directory: /d}\nclient: {args: [--resume, x]}")
	doc := DecodeFile("f", []byte(head+"spec:\n  restartPolicy: Often\n")).Under(defaults).Items[0]
	assert.Equal(t, []string{`f:5:18: spec.restartPolicy: "Often" is not one of Always, OnFailure, Never`}, texts(Documents{Items: []Document{doc}}))

	doc = DecodeFile("f", []byte(head+"spec:\n  restartPolicy: Never\n")).Under(defaults).Items[0]
	require.NotNil(t, doc.Session)
	problems := doc.ProblemsForClass(ResolveClass(ClassClaude, nil))
	require.Len(t, problems, 1)
	assert.Equal(t, "f:4:1: spec.client.args: --resume is for class claude to say; to take up another conversation, name it in spec.conversation.id; it comes from sessionDefaults in the settings", problems[0].Error())
}

func TestNoDefaultsAreNil(t *testing.T) {
	assert.Nil(t, defaultsOf(t, "workspace: {directory: ''}"))
	assert.True(t, defaultsOf(t, "").Same(nil))
	assert.False(t, defaultsOf(t, "suspend: true").Same(nil))
	assert.True(t, defaultsOf(t, "restartPolicy: Never").Same(defaultsOf(t, "restartPolicy: Never")))
	assert.False(t, defaultsOf(t, "restartPolicy: Never").Same(defaultsOf(t, "restartPolicy: Always")))
}
