// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// head is what a document begins with, in one line each.
const head = "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a}\n"

// The line of each case is the fourth of its file, its column as it stands.
func TestStrictDecodingSaysWhatIsWrongAndWhatIsRight(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want []string
	}{
		"unknown field":            {"spec: {restartPolcy: Never}", []string{`f:4:8: spec.restartPolcy: unknown field (did you mean "restartPolicy"?)`}},
		"wrong case":               {"spec: {restartpolicy: Never}", []string{`f:4:8: spec.restartpolicy: unknown field (did you mean "restartPolicy"?)`}},
		"beginning of a field":     {"spec: {workspace: {dir: /}}", []string{`f:4:20: spec.workspace.dir: unknown field (did you mean "directory"?)`}},
		"field of the level below": {"spec: {command: [a]}", []string{`f:4:8: spec.command: unknown field (did you mean "client.command"?)`}},
		"words for a size": {"spec: {resources: {limits: {memory: plenty, cpu: two}}}", []string{
			"f:4:37: spec.resources.limits.memory: must be a size such as 512Ki, 64Mi or 1Gi",
			"f:4:50: spec.resources.limits.cpu: must be a number of processors such as 500m, 1 or 1.5",
		}},
		"field of a later version": {"spec: {replicas: {}}", []string{"f:4:8: spec.replicas: unknown field; the fields here are clientClassName, client, workspace, provisioningPolicy, initialPrompt, restartPolicy, recoveryPolicy, suspend, updateStrategy, livenessProbe, startupTimeoutSeconds, terminationGracePeriodSeconds, resources, terminal, conversation, deletionPolicy"}},
		"nothing near":             {"spec: {workspace: {worktree: {}}}", []string{"f:4:20: spec.workspace.worktree: unknown field; the fields here are directory, type"}},
		"in a list":                {"spec: {client: {env: [{name: A}, {nam: B}]}}", []string{`f:4:35: spec.client.env[1].nam: unknown field (did you mean "name"?)`}},
		"at the top":               {"sepc: {}", []string{`f:4:1: sepc: unknown field (did you mean "spec"?)`}},
		"in metadata":              {"metadata: {nmae: a}", []string{"f:4:1: metadata: is given twice; the first is in line 3", `f:4:12: metadata.nmae: unknown field (did you mean "name"?)`}},
		"duplicate":                {"spec: {suspend: true, client: {}, suspend: false}", []string{"f:4:35: spec.suspend: is given twice; the first is in line 4"}},
		"duplicate in a map":       {"spec: {client: {env: [{name: A, name: B}]}}", []string{"f:4:33: spec.client.env[0].name: is given twice; the first is in line 4"}},
		"key that is no word":      {"spec: {[a]: b, ~: c}", []string{"f:4:8: spec: a key must be a word", "f:4:16: spec: a key must be a word"}},
		"key at the top":           {"[a]: b", []string{"f:4:1: a key must be a word"}},
		"merge of a text":          {"spec: {<<: x}", []string{"f:4:8: spec: << needs an alias of a mapping"}},
		"merge of a list of texts": {"spec: {<<: [x]}", []string{"f:4:8: spec: << needs an alias of a mapping"}},
		"tag":                      {"spec: {suspend: !no x}", []string{"f:4:17: spec.suspend: an unknown tag; put a text that begins with ! in quotes"}},
		"binary":                   {"spec: {restartPolicy: !!binary aGk=}", []string{"f:4:23: spec.restartPolicy: an unknown tag; put a text that begins with ! in quotes"}},
		"truth value":              {"spec: {client: {command: [y]}}", []string{`f:4:27: spec.client.command[0]: must be text, but YAML reads y as the truth value true; put it in quotes: "y"`}},
		"truth value no":           {"spec: {client: {command: [Off]}}", []string{`f:4:27: spec.client.command[0]: must be text, but YAML reads Off as the truth value false; put it in quotes: "Off"`}},
		"number":                   {"spec: {client: {args: [8080]}}", []string{`f:4:24: spec.client.args[0]: must be text, but YAML reads 8080 as a number; put it in quotes: "8080"`}},
		"number with a point":      {"spec: {client: {args: [1.10]}}", []string{`f:4:24: spec.client.args[0]: must be text, but YAML reads 1.10 as a number; put it in quotes: "1.10"`}},
		"home that is nothing":     {"spec: {workspace: {directory: ~}}", []string{`f:4:31: spec.workspace.directory: YAML reads ~ alone as nothing; put it in quotes: "~"`}},
		"home in a list":           {"spec: {client: {args: [~]}}", []string{`f:4:24: spec.client.args[0]: YAML reads ~ alone as nothing; put it in quotes: "~"`}},
		"empty item":               {"spec: {client: {args: [null]}}", []string{`f:4:24: spec.client.args[0]: is empty; write "" for an empty word, or remove the item`}},
		"empty item of a list":     {"spec: {client: {env: [~]}}", []string{`f:4:23: spec.client.env[0]: is empty; write "" for an empty word, or remove the item`}},
		"command line":             {`spec: {client: {command: npm run "dev"}}`, []string{`f:4:26: spec.client.command: must be a list, one word each: ["npm", "run", "\"dev\""]`}},
		"words that are a map":     {"spec: {client: {command: {a: b}}}", []string{"f:4:26: spec.client.command: must be a list of words, not a mapping"}},
		"words that are a number":  {"spec: {client: {command: 7}}", []string{"f:4:26: spec.client.command: must be a list of words, not a number"}},
		"env as a map":             {"spec: {client: {env: {A: secret}}}", []string{`f:4:22: spec.client.env: must be a list, each item with a "- ", not a mapping`}},
		"env as a text":            {"spec: {client: {env: [A=secret]}}", []string{"f:4:23: spec.client.env[0]: must be a mapping with name, value, valueFrom, not text"}},
		"secret number":            {"spec: {client: {env: [{name: PIN, value: 4711}]}}", []string{"f:4:42: spec.client.env[0].value: must be text, but YAML reads this as a number; put it in quotes"}},
		"secret truth value":       {"spec: {client: {env: [{name: PIN, value: yes}]}}", []string{"f:4:42: spec.client.env[0].value: must be text, but YAML reads this as the truth value true; put it in quotes"}},
		"secret tag":               {"spec: {client: {env: [{name: PIN, value: !secret }]}}", []string{"f:4:42: spec.client.env[0].value: an unknown tag; put a text that begins with ! in quotes"}},
		"secret alias":             {"spec: {client: {env: [{name: PIN, value: *secret }]}}", []string{"f:4:1: an alias whose anchor is not in this document; put a text that begins with * in quotes"}},
		"secret anchor":            {"spec: {client: {env: [{name: PIN, value: &secret }]}}", []string{"f:4:35: spec.client.env[0].value: an anchor without a value; put a text that begins with & in quotes"}},
		"secret comment":           {"spec: {client: {env: [{name: PIN, value: #secret\n }]}}", []string{`f:4:35: spec.client.env[0].value: YAML reads nothing here; put the text in quotes, or write "" for an empty value`}},
		"map for a text":           {"spec: {restartPolicy: {type: Never}}", []string{"f:4:23: spec.restartPolicy: must be text, not a mapping"}},
		"list for a text":          {"spec: {workspace: {directory: [/]}}", []string{"f:4:31: spec.workspace.directory: must be text, not a list"}},
		"text for a map":           {"spec: {workspace: ~/src}", []string{"f:4:19: spec.workspace: must be a mapping with directory, type, not text"}},
		"list for a map":           {"spec: []", []string{"f:4:7: spec: must be a mapping with clientClassName, client, workspace …, not a list"}},
		"text for a truth value":   {"spec: {suspend: maybe}", []string{`f:4:17: spec.suspend: must be true or false, not "maybe"`}},
		"quoted truth value":       {`spec: {suspend: "true"}`, []string{"f:4:17: spec.suspend: must be true without quotes"}},
		"number for a truth value": {"spec: {suspend: 1}", []string{"f:4:17: spec.suspend: must be true or false, not a number"}},
		"text for a number":        {"spec: {startupTimeoutSeconds: 5m}", []string{`f:4:31: spec.startupTimeoutSeconds: must be a whole number, not "5m"`}},
		"quoted number":            {`spec: {startupTimeoutSeconds: "60"}`, []string{"f:4:31: spec.startupTimeoutSeconds: must be the number 60 without quotes"}},
		"part of a number":         {"spec: {startupTimeoutSeconds: 0.5}", []string{"f:4:31: spec.startupTimeoutSeconds: must be a whole number, not 0.5"}},
		"truth value for a number": {"spec: {startupTimeoutSeconds: true}", []string{"f:4:31: spec.startupTimeoutSeconds: must be a whole number, not a truth value"}},
		"list for a number":        {"spec: {startupTimeoutSeconds: [1]}", []string{"f:4:31: spec.startupTimeoutSeconds: must be a whole number, not a list"}},
		"large number":             {"spec: {startupTimeoutSeconds: 3000000000}", []string{"f:4:31: spec.startupTimeoutSeconds: the number 3000000000 is too large"}},
		"huge number":              {"spec: {startupTimeoutSeconds: 18446744073709551615}", []string{"f:4:31: spec.startupTimeoutSeconds: must be a whole number, not 18446744073709551615"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, texts(DecodeFile("f", []byte(head+c.line+"\n"))))
		})
	}
}

func TestHeaderOfADocumentIsExplained(t *testing.T) {
	rest := "metadata: {name: a}\nspec: {client: {command: [a]}, workspace: {directory: /}}\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"older version":         {"apiVersion: muxlet.dev/v1\nkind: Session\n", []string{`f:1:13: apiVersion: "muxlet.dev/v1" is not known (did you mean "muxlet.dev/v1alpha1"?)`}},
		"other group":           {"apiVersion: muxlet.io/v1alpha1\nkind: Session\n", []string{`f:1:13: apiVersion: "muxlet.io/v1alpha1" is not known (did you mean "muxlet.dev/v1alpha1"?)`}},
		"foreign version":       {"apiVersion: apps/v1\nkind: Session\n", []string{`f:1:13: apiVersion: "apps/v1" is not known; the only version of Session is muxlet.dev/v1alpha1`}},
		"no version":            {"kind: Session\n", []string{"f:1:1: apiVersion: is required: write apiVersion: muxlet.dev/v1alpha1"}},
		"misspelled version":    {"apiversion: muxlet.dev/v1alpha1\nkind: Session\n", []string{`f:1:1: apiversion: unknown field (did you mean "apiVersion"?)`}},
		"version is a list":     {"apiVersion: [a]\nkind: Session\n", []string{"f:1:1: apiVersion: is required: write apiVersion: muxlet.dev/v1alpha1", "f:1:13: apiVersion: must be text, not a list"}},
		"misspelled kind value": {"apiVersion: muxlet.dev/v1alpha1\nkind: session\n", []string{`f:2:7: kind: "session" is not known (did you mean "Session"?)`}},
		"foreign kind":          {"apiVersion: apps/v1\nkind: Deployment\nunknown: x\n", []string{`f:2:7: kind: "Deployment" is not known; it must be Session or ClientClass`}},
		"no kind":               {"apiVersion: muxlet.dev/v1alpha1\n", []string{"f:1:1: kind: is required: write kind: Session or ClientClass"}},
		"misspelled kind":       {"apiVersion: muxlet.dev/v1alpha1\nKind: Session\n", []string{`f:2:1: Kind: unknown field (did you mean "kind"?)`}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, texts(DecodeFile("f", []byte(c.text+rest))))
		})
	}
}

func TestSameLineTellsAllItsMistakesInOrder(t *testing.T) {
	got := texts(DecodeFile("f", []byte(head+"spec: {suspend: 1, restartPolicy: 2, client: {comand: []}}\n")))
	require.Len(t, got, 3)
	assert.Contains(t, got[0], "f:4:17: spec.suspend:")
	assert.Contains(t, got[1], "f:4:35: spec.restartPolicy:")
	assert.Contains(t, got[2], "f:4:47: spec.client.comand:")
}

func TestManyMistakesAreCutShort(t *testing.T) {
	for name, item := range map[string]string{"list": "  - %d\n", "mapping": "  key%d: x\n"} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for i := range 20_000 {
				fmt.Fprintf(&b, item, i)
			}
			text := head + "spec:\n" + b.String()
			if name == "list" {
				text = head + "spec:\n client:\n  args:\n" + b.String()
			}
			got := texts(DecodeFile("f", []byte(text)))
			require.Len(t, got, maxProblems+1)
			assert.Contains(t, got[maxProblems], ": more problems follow; mend these first")
		})
	}
}

// A type that the walk cannot check would be a hole in the strictness.
func TestEveryFieldTypeOfTheKindIsChecked(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type, path string)
	visit = func(typ reflect.Type, path string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if seen[typ] || decodesItself(typ) {
			return
		}
		seen[typ] = true
		if typ.Kind() != reflect.Struct {
			assert.Contains(t, []reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64}, typ.Kind(), path)
			return
		}
		names, types := fields(typ)
		for _, name := range names {
			visit(types[name], path+"."+name)
		}
	}
	visit(reflect.TypeFor[Session](), "")
	assert.True(t, seen[reflect.TypeFor[metav1.ObjectMeta]()])
}

// opaqueKind has the fields that no Session has.
type opaqueKind struct {
	metav1.TypeMeta `json:",inline"`
	Wait            metav1.Duration   `json:"wait"`
	At              metav1.Time       `json:"at"`
	Words           map[string]string `json:"words"`
}

func TestTypesWithAFormatOfTheirOwnAreExplained(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"duration":          {"wait: soon", "f:3:7: wait: must be a duration such as 500ms, 5s, 2m or 1h30m"},
		"number of seconds": {"wait: 5", "f:3:7: wait: must be a duration such as 500ms, 5s, 2m or 1h30m"},
		"mapping":           {"wait: {seconds: 5}", "f:3:7: wait: must be a duration such as 500ms, 5s, 2m or 1h30m"},
		"time":              {"at: today", `f:3:5: at: has the wrong format: parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006"`},
		"map":               {"words: [a]", "f:3:8: words: must be a mapping of names to values, not a list"},
		"empty in a map":    {"words: {a: }", `f:3:12: words[a]: is empty; write "" for an empty value, or remove the key`},
		"value of a map":    {"words: {a.b: 1}", `f:3:14: words[a.b]: must be text, but YAML reads 1 as a number; put it in quotes: "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			var into opaqueKind
			_, problems := DecodeStrict("f", []byte("apiVersion: muxlet.dev/v1alpha1\nkind: Opaque\n"+c.line+"\n"), GroupVersion.WithKind("Opaque"), &into)
			require.Len(t, problems, 1)
			assert.Equal(t, c.want, problems[0].Error())
		})
	}
	var into opaqueKind
	_, problems := DecodeStrict("f", []byte("apiVersion: muxlet.dev/v1alpha1\nkind: Opaque\nwait: 5s\nat: 2026-01-02T03:04:05Z\nwords: {a: b}\n"), GroupVersion.WithKind("Opaque"), &into)
	require.Empty(t, problems)
	assert.Equal(t, "5s", into.Wait.Duration.String())
	assert.Equal(t, 2026, into.At.Year())
}
