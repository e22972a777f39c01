// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/config/schema"
)

func TestExplainLooksAsThatOfKubectl(t *testing.T) {
	for name, args := range map[string][]string{
		"explain":           nil,
		"explain-kind":      {"session"},
		"explain-enum":      {"session.spec.restartPolicy"},
		"explain-list":      {"cc.spec.failures"},
		"explain-settings":  {"config.backOff"},
		"explain-recursive": {"spec.client", "--recursive"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCLI(t, nil)
			require.Equal(t, exitOK, c.run(append([]string{"explain"}, args...)...), c.errOut)
			c.golden(name)
		})
	}
}

// Whatever a document can hold is explained: with its type, what it means, its default
// and its bounds.
func TestEveryFieldCanBeExplained(t *testing.T) {
	explained := 0
	var walk func(path string, s *schema.Schema)
	walk = func(path string, s *schema.Schema) {
		found, err := findField(path)
		require.NoError(t, err)
		text, err := found.text(false)
		require.NoError(t, err)
		explained++
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "    ") || !strings.Contains(strings.TrimSpace(line), " ") {
				continue
			}
			assert.LessOrEqual(t, width(strings.TrimSuffix(line, "\n")), explainWidth, line)
		}
		for _, name := range s.Fields() {
			assert.Contains(t, text, "\n  "+name+"\t<", path)
			assert.Contains(t, fieldPaths(path+"."+name[:1]), path+"."+name)
			walk(path+"."+name, s.Field(name))
		}
	}
	for _, kind := range schema.Kinds() {
		s, err := kind.Schema()
		require.NoError(t, err)
		walk(kind.Words[0], s)
	}
	assert.Greater(t, explained, 200)
}

func TestExplainTellsDefaultsBoundsAndWhatIsRequired(t *testing.T) {
	for path, wants := range map[string][]string{
		"session.spec.terminal":                {"Default 200, 20 to 1000."},
		"ses.spec.startupTimeoutSeconds":       {"startupTimeoutSeconds <integer>", "Default 60, 1 to 3600."},
		"settings.activity.reportTTL":          {"reportTTL <string>", "Default 5m, 1s to 24h."},
		"sessions.spec.client.env[0].name":     {"FIELD: name <string> -required-"},
		"spec.client.env.valueFrom.fileRef":    {"path\t<string> -required-"},
		"muxletconfiguration.logging.format":   {"ENUM:\n    text\n    json\n", "Default text."},
		"clientclass.spec.submit.whileWorking": {"`Queue`: it is handed over all the same"},
		"turn.status.conditions":               {"FIELD: conditions <[]Object>", "True, False, Unknown"},
		"status.client.lastTermination":        {"exitCode"},
		"metadata.labels":                      {"<map[string]string>"},
	} {
		t.Run(path, func(t *testing.T) {
			c := newCLI(t, nil)
			require.Equal(t, exitOK, c.run("explain", path), c.errOut)
			for _, want := range wants {
				assert.Contains(t, c.out, want)
			}
		})
	}
}

func TestExplainPrintsTheSchemaToAProgram(t *testing.T) {
	c := newCLI(t, nil)
	require.Equal(t, exitOK, c.run("explain", "spec.terminal.columns", "-o", "json"), c.errOut)
	var printed map[string]any
	require.NoError(t, json.Unmarshal([]byte(c.out), &printed))
	assert.Equal(t, "integer", printed["type"])
	assert.InDelta(t, 200, printed["default"], 0)
	assert.InDelta(t, 1000, printed["maximum"], 0)
}

func TestExplainNamesTheNearestRightPath(t *testing.T) {
	for path, want := range map[string]string{
		"sesion":                     `"sesion" is no kind: it must be session, clientclass, turn, muxletconfiguration, or a path in a session such as spec.workspace (did you mean "session"?)`,
		"pod.spec":                   `"pod" is no kind: it must be session, clientclass, turn, muxletconfiguration, or a path in a session such as spec.workspace`,
		"session.spec.restartPolice": `session.spec has no field "restartPolice" (did you mean "session.spec.restartPolicy"?)`,
		"spec.command":               `session.spec has no field "command" (did you mean "session.spec.client.command"?)`,
		"config.backOff.zzz":         `muxletconfiguration.backOff has no field "zzz": "muxlet explain muxletconfiguration.backOff" lists those that it has`,
		"spec.suspend.now":           `session.spec.suspend has no fields, and so no "now"`,
		"spec.":                      `session.spec has no field "": "muxlet explain session.spec" lists those that it has`,
	} {
		t.Run(path, func(t *testing.T) {
			c := newCLI(t, nil)
			assert.Equal(t, exitUsage, c.run("explain", path))
			assert.Equal(t, "Error: "+want+"\nSee \"muxlet explain --help\".\n", c.errOut)
			assert.Empty(t, c.out)
		})
	}
	c := newCLI(t, nil)
	assert.Equal(t, exitUsage, c.run("explain", "spec", "-o", "yaml"))
	assert.Contains(t, c.errOut, `unknown format "yaml" for -o: it must be plaintext or json`)
}

func TestTheShellCompletesPathsFieldByField(t *testing.T) {
	for word, want := range map[string][]string{
		"ses":                    {"session"},
		"sp":                     {"spec"},
		"session.spec.worksp":    {"session.spec.workspace"},
		"spec.workspace.":        {"spec.workspace.directory", "spec.workspace.type"},
		"spec.client.env.v":      {"spec.client.env.value", "spec.client.env.valueFrom"},
		"config.log":             {"config.logging"},
		"no.such":                nil,
		"spec.suspend.":          nil,
		"clientclass.spec.ready": {"clientclass.spec.ready"},
	} {
		assert.Equal(t, want, fieldPaths(word), word)
	}
	_, more := completeFieldPath(nil, nil, "session.spec.worksp")
	assert.Equal(t, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace, more, "a dot may follow")
	_, last := completeFieldPath(nil, nil, "spec.workspace.d")
	assert.Equal(t, cobra.ShellCompDirectiveNoFileComp, last)
	paths, _ := completeFieldPath(nil, []string{"session"}, "s")
	assert.Empty(t, paths, "one path is all that is taken")
}
