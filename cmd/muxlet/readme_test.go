// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	return string(text)
}

// blocks of a language in a Markdown text.
func blocks(text, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func TestTheSessionsOfTheReadmeAreValid(t *testing.T) {
	documents := blocks(readme(t), "yaml")
	require.NotEmpty(t, documents)
	for _, document := range documents {
		if strings.Contains(document, "kind: MuxletConfiguration") {
			continue // the schema of the settings judges it, in config/schema
		}
		decoded := spec.DecodeFile("README.md", []byte(document))
		assert.Empty(t, decoded.Problems)
		for _, item := range decoded.Items {
			assert.Empty(t, item.Problems)
		}
	}
}

// What a stranger is told to type exists, with its flags and as many arguments.
func TestTheCommandsOfTheReadmeExist(t *testing.T) {
	redirected := regexp.MustCompile(` [0-9]?[<>]\S*( [^ ]+)?`)
	typed := regexp.MustCompile(`(?:^\$ |\| |\()muxlet ([^|)#]*)`)
	commands := 0
	for _, block := range blocks(readme(t), "console") {
		for line := range strings.Lines(block) {
			for _, m := range typed.FindAllStringSubmatch(redirected.ReplaceAllString(line, ""), -1) {
				commands++
				command, rest, err := newRootCommand(newGlobals()).Find(strings.Fields(strings.TrimSuffix(strings.TrimSpace(m[1]), "&")))
				require.NoError(t, err, m[0])
				require.NoError(t, command.ParseFlags(rest), m[0])
				require.NoError(t, command.ValidateArgs(command.Flags().Args()), m[0])
			}
		}
	}
	assert.Greater(t, commands, 10)
}
