// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sampleFiles are the manifests among the samples; the settings are package config's.
func sampleFiles(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	require.NoError(t, filepath.WalkDir("../config/samples", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("\napiVersion: "+GroupVersion.String())) { // behind the comment
			files[path] = data
		}
		return err
	}))
	for _, folder := range []string{".", "agents", "setups"} {
		paths, err := filepath.Glob(filepath.Join("../config/samples", folder, "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, paths, folder)
	}
	return files
}

func TestEverySampleIsValid(t *testing.T) {
	names := map[string]string{}
	declared := map[string]*ClientClass{}
	var sessions []Document
	for path, data := range sampleFiles(t) {
		docs := DecodeFile(path, data)
		assert.Empty(t, texts(docs))
		require.NotEmpty(t, docs.Items)
		for _, doc := range docs.Items {
			key := doc.Kind + "/" + doc.Name
			assert.Empty(t, names[key], "%s is declared in two samples", key)
			names[key] = path
			if doc.Class != nil {
				declared[doc.Name] = doc.Class
				continue
			}
			require.NotNil(t, doc.Session)
			sessions = append(sessions, doc)
		}
	}
	for _, doc := range sessions {
		// The settings name the class of a session that says nothing.
		class := ResolveClass(cmp.Or(doc.Session.Spec.ClientClassName, ClassClaude), declared)
		require.NotNil(t, class, "%s has a class that there is not", doc.Name)
		assert.Empty(t, doc.ProblemsForClass(class), doc.Name)
	}
}

// There is a sample for each class, and the third is one that is declared.
func TestThereIsASampleOfEachAgent(t *testing.T) {
	classes := map[string]bool{}
	for path, data := range sampleFiles(t) {
		for _, doc := range DecodeFile(path, data).Items {
			if doc.Session != nil {
				classes[doc.Session.Spec.ClientClassName] = true
			}
		}
	}
	for _, class := range []string{ClassExec, ClassClaude, ClassCodex, "gemini"} {
		assert.True(t, classes[class], class)
	}
}

// Each way in which a session comes to its client and its prompts has a sample.
func TestThereIsASampleOfASessionOnDemandAndOfEachWayToTakeATurnThatNeedsNoHooks(t *testing.T) {
	policies, methods, prompted := map[ProvisioningPolicy]bool{}, map[SubmitMethod]bool{}, false
	for path, data := range sampleFiles(t) {
		for _, doc := range DecodeFile(path, data).Items {
			if s := doc.Session; s != nil {
				policies[s.Spec.ProvisioningPolicy] = true
				prompted = prompted || s.Spec.ProvisioningPolicy == ProvisioningOnDemand && strings.Count(s.Spec.InitialPrompt, "\n") > 1
			}
			if c := doc.Class; c != nil {
				methods[c.Spec.Submit.Method] = true
			}
		}
	}
	assert.True(t, policies[ProvisioningEager] && policies[ProvisioningOnDemand])
	assert.True(t, methods[SubmitPaste] && methods[SubmitArgument])
	assert.True(t, prompted)
}

// A sample runs on any Linux machine, without an account, as it stands. Those of
// agents need the agent, and those of whole set-ups what is in them; they are apart: make
// run starts none of them.
func TestEverySampleRunsAnywhere(t *testing.T) {
	for path, data := range sampleFiles(t) {
		if folder := filepath.Base(filepath.Dir(path)); folder != "samples" && folder != "agents" {
			continue
		}
		for _, doc := range DecodeFile(path, data).Items {
			if doc.Session == nil {
				assert.Contains(t, path, "/agents/")
				continue
			}
			s := doc.Session.Spec
			if strings.Contains(path, "/agents/") {
				assert.NotEqual(t, ClassExec, s.ClientClassName, doc.Name)
			} else {
				assert.Equal(t, "sh", s.Client.Command[0], doc.Name)
			}
			if s.Workspace.Type == WorkspaceDirectory {
				assert.Equal(t, "~", s.Workspace.Directory, "%s: no other directory exists everywhere", doc.Name)
			}
			for _, source := range s.Client.EnvFrom {
				assert.True(t, source.FileRef.Optional, doc.Name)
			}
		}
	}
}

// Nothing that a file can hold stops the daemon, and what is accepted is valid.
func FuzzDecodeFileNeverPanics(f *testing.F) {
	for _, data := range sampleFiles(f) {
		f.Add(data)
	}
	for _, text := range []string{
		"", good("a"), everyField, everyFieldOfAClass, "\uFEFF---\n...\n%YAML 1.2\n---\na: &a [*a, !!binary x]\n", "a:\n\tb: 'x\n", `{"a":"\ud83d\ude00\/"}`,
		"- &a0 {x: y}\n- &b0 {<<: [*a0, *a0]}\n", "? [a]\n: b\n", "a: 1_0.5e3\nb: 0x7\nc: .inf\nd: 2026-01-02\ne: !!int x\n", head + "spec: {<<: *x}\n", "\x00", "\xff\xfe",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs := DecodeFile("f", data)
		lines := strings.Count(strings.ReplaceAll(string(data), "\r", "\n"), "\n") + 1
		for _, doc := range docs.Items {
			require.Equal(t, doc.Object() == nil, len(doc.Problems) > 0, "a document is good or has problems")
			require.True(t, doc.Line >= 1 && doc.EndLine <= lines, "%d to %d of %d", doc.Line, doc.EndLine, lines)
			for _, p := range doc.Problems {
				require.True(t, p.Line >= 1 && p.Column >= 1, p.Error())
				require.NotContains(t, p.Message, "this cannot be decoded", "the walk finds every mistake before the decoder")
			}
			if doc.Session != nil {
				require.Empty(t, Validate(doc.Session))
				require.Contains(t, docs.Names, doc.Session.Name)
			}
			if doc.Class != nil {
				require.Empty(t, ValidateClass(doc.Class))
				require.Contains(t, docs.ClassNames, doc.Class.Name)
			}
		}
		for _, problem := range docs.Problems {
			require.NotEmpty(t, problem.Message)
		}
	})
}
