// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestNearestFindsWhatAPersonMeant(t *testing.T) {
	fields := []string{"command", "args", "env", "envFrom", "shellMode", "directory", "restartPolicy", "recoveryPolicy"}
	for word, want := range map[string]string{
		"command":                     "command",
		"comand":                      "command",
		"commnad":                     "command",
		"COMMAND":                     "command",
		"arg":                         "args",
		"evn":                         "env",
		"envs":                        "env",
		"envform":                     "envFrom",
		"dir":                         "directory",
		"environment":                 "env",
		"shell":                       "shellMode",
		"commandLine":                 "command",
		"restartPolice":               "restartPolicy",
		"policy":                      "",
		"worktree":                    "",
		"x":                           "",
		"":                            "",
		"größe":                       "",
		"re":                          "",
		strings.Repeat("command", 20): "command",
	} {
		assert.Equal(t, want, nearest(word, fields), "for %q", word)
	}
}

func TestDistanceCountsEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "acb", 1},
		{"abc", "xabc", 1}, {"kitten", "sitting", 3}, {"ä", "a", 1}, {"ca", "abc", 3},
		{strings.Repeat("a", 65), "a", longestWord},
	} {
		assert.Equal(t, c.want, distance(c.a, c.b), "%q to %q", c.a, c.b)
		assert.Equal(t, c.want, distance(c.b, c.a), "%q to %q", c.b, c.a)
	}
}

func TestSuggestionSurvivesTheWayThroughAFieldError(t *testing.T) {
	for _, c := range []struct{ message, suggestion string }{{"m", ""}, {"m", "x"}, {`"a \"b" is odd`, "c"}} {
		message, suggestion := cutSuggestion(suggest(c.message, c.suggestion))
		assert.Equal(t, c.message, message)
		assert.Equal(t, c.suggestion, suggestion)
	}
}

func TestPositionOfAPathIsTheNearestThatTheDocumentHas(t *testing.T) {
	tree, problem := parse("f", split([]byte("a:\n  b: [x, {c: d}]\n  key.with/dots: y\nn: ~\n"))[0])
	assert.Nil(t, problem)
	for path, want := range map[string]string{
		"":                   "f:1:1",
		"a":                  "f:2:3",
		"a.b":                "f:2:6",
		"a.b[0]":             "f:2:7",
		"a.b[1].c":           "f:2:14",
		"a.b[1].z":           "f:2:10",
		"a.b[7]":             "f:2:3",
		"a.b[x]":             "f:2:3",
		"a[key.with/dots]":   "f:3:18",
		"a.z.y.x":            "f:1:1",
		"z":                  "f:1:1",
		"n":                  "f:4:4",
		"a.b[":               "f:2:3",
		"a.b[99999999999999": "f:2:3",
	} {
		assert.Equal(t, want, tree.Position(path).String(), "for %q", path)
	}
	for path, want := range map[string]bool{"a": true, "a.b[1].c": true, "a.b[1].z": false, "n": false, "z": false} {
		assert.Equal(t, want, tree.Has(path), "for %q", path)
	}
}

func TestEmptyTreeHasNothing(t *testing.T) {
	var tree Tree
	assert.False(t, tree.Has("a"))
	assert.False(t, tree.Has(""))
	assert.Equal(t, Position{}, tree.Position("a"))
	assert.Equal(t, "m", tree.Problems(field.ErrorList{field.Invalid(field.NewPath("a"), 1, "m")})[0].Message)
}
