// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatACommentSaysOfADefaultIsHeldAgainstTheCode(t *testing.T) {
	value := func(v any) reflect.Value { return reflect.ValueOf(v) }
	for name, c := range map[string]struct {
		text string
		code reflect.Value
		want string
		err  string
	}{
		"a number":                  {"Rows of it. Default 50, 5 to 1000.", value(int32(50)), "50", ""},
		"a word":                    {"Type. Default Directory.", value("Directory"), `"Directory"`, ""},
		"a path with dots":          {"File. Default /proc/a.b/c.", value("/proc/a.b/c"), `"/proc/a.b/c"`, ""},
		"a time as a person writes": {"Wait. Default 5m, 1ms to 24h.", value(metav1.Duration{Duration: 5 * time.Minute}), `"5m"`, ""},
		"a list":                    {"On. Default [A, B].", value([]string{"A", "B"}), `["A","B"]`, ""},
		"a zero":                    {"Suspend. Default false.", reflect.Value{}, "false", ""},
		"a condition":               {"Class. Default exec when a command is given.", value("exec"), "", ""},
		"a variable":                {"Dir. Default $HOME/x; or y.", reflect.Value{}, "", ""},
		"none at all":               {"Name of it.", reflect.Value{}, "", ""},
		"another value":             {"Rows. Default 40, 5 to 1000.", value(int32(50)), "", "its comment says that the default is 40, in the code it is 50"},
		"not told":                  {"Rows, 5 to 1000.", value(int32(50)), "", `the code has 50 for its default, its comment has none: write "Default 50."`},
		"not true":                  {"Rows. Default 40.", reflect.Value{}, "", "its comment says that the default is 40, in the code there is none"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := said(c.text, c.code)
			if c.err != "" {
				require.EqualError(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, string(got))
		})
	}
}

func TestADescriptionSaysNothingTwice(t *testing.T) {
	for name, c := range map[string]struct{ field, typed, want string }{
		"the same":          {"stop is the polite way.", "stop is the polite way; SIGTERM follows it.", "stop is the polite way; SIGTERM follows it."},
		"in other words":    {"workspace is where it runs.", "workspace is a directory.", "workspace is where it runs."},
		"something besides": {"engine is what works.", "engine names a program. It is looked at.", "engine is what works.\n\nengine names a program. It is looked at."},
		"nothing":           {"engine is what works.", "", "engine is what works."},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, both(c.field, c.typed)) })
	}
}

func TestAFieldIsCalledAsInADocument(t *testing.T) {
	assert.Equal(t, "bootIDPath is a file.", called("BootIDPath is a file.", "BootIDPath", "bootIDPath"))
	assert.Equal(t, "Maximum of it.", called("Maximum of it.", "Max", "max"))
	assert.Equal(t, "one two\n\nthree", paragraphs("one\ntwo\n\nthree"))
}

// A field that somebody adds without a word about it stops make generate, and is named.
func TestAFieldWithoutCommentOrBoundsIsNamed(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "planted.go"), []byte(strings.Join([]string{
		"package planted", "", "type probe struct {", "\tPeriod int32 `json:\"period\"`", "\t// Limit is a number.",
		"\tLimit int32 `json:\"limit\"`", "\t// +kubebuilder:validation:Minimun=1", "\t// Good, 1 to 2.", "\tGood int32 `json:\"good\"`", "}", ""}, "\n")), 0o600))
	type probe struct {
		Period int32 `json:"period"`
		Limit  int32 `json:"limit"`
		Good   int32 `json:"good"`
	}
	b := &builder{source: &source{root: root, module: reflect.TypeFor[probe]().PkgPath(), types: map[string]*typeDocs{}, read: map[string]bool{}}}
	s := b.object(reflect.TypeFor[probe](), place{path: "x"})
	require.EqualError(t, b.err(), strings.Join([]string{
		"x.period: it has no comment: say what it means",
		"x.period: its comment has no bounds: write them as in 1 to 3600",
		"x.limit: its comment has no bounds: write them as in 1 to 3600",
		"x.good: the marker +kubebuilder:validation:Minimun is not known here",
	}, "\n"))
	assert.EqualValues(t, 2, *s.Properties["good"].Maximum)
}

func TestTheSchemasOfTheTreeCanBeMade(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, run("../..", folder))
	for _, name := range []string{"manifest.json", "settings.json", "turn.json"} {
		made, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		committed, err := os.ReadFile(filepath.Join("../../config/schema", name))
		require.NoError(t, err)
		assert.Equal(t, string(committed), string(made), "run make generate")
	}
}
