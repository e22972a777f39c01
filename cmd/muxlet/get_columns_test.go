// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// labelledShops are two sessions with labels, and one without.
func labelledShops() *fakeDaemon {
	web, api := runningSession("web", 2, 4711), runningSession("api", 1, 1234567)
	web.Labels = map[string]string{"repo": "shop", "example.org/team": "front"}
	api.Labels = map[string]string{"repo": "shop"}
	return newFakeDaemon(web, api, suspendedSession("off"))
}

func TestCustomColumnsPrintWhatPathsFind(t *testing.T) {
	c := newCLI(t, labelledShops())
	for _, test := range []struct{ args, want string }{
		{"get -o custom-columns=NAME:.metadata.name,PID:.status.client.pid", "NAME   PID\napi    1234567\noff    <none>\nweb    4711\n"},
		{"get -o custom-columns=Name:{.metadata.name},Tmux:status.tmux.pane web api", "Name   Tmux\nweb    %7\napi    %7\n"},
		{"get web -o custom-columns=ARGV:.spec.client.command[*],READY:.status.conditions[?(@.type==\"Ready\")].status", "ARGV          READY\nnpm,run,dev   True\n"},
		{"get web -o custom-columns=L:.metadata.labels['repo','none'] --no-headers", "shop\n"},
		{"get off -o custom-columns=X:.spec.suspend,Y:.spec.client.command", "X      Y\ntrue   [npm run dev]\n"},
		{"get nobody -o custom-columns=NAME:.metadata.name", ""},
	} {
		c.run(strings.Fields(test.args)...)
		assert.Equal(t, test.want, c.out, "%s: %s", test.args, c.errOut)
	}
	file := filepath.Join(c.dir, "columns")
	require.NoError(t, os.WriteFile(file, []byte("NAME   REPO\n.metadata.name  {.metadata.labels.repo}\n"), 0o600))
	assert.Equal(t, 0, c.run("get", "-o", "custom-columns-file="+file, "--sort-by", ".metadata.labels.repo"))
	assert.Equal(t, "NAME   REPO\noff    <none>\napi    shop\nweb    shop\n", c.out)
	require.NoError(t, os.WriteFile(file, []byte("{.items[*].metadata.name}"), 0o600))
	assert.Equal(t, 0, c.run("get", "-o", "jsonpath-file="+file))
	assert.Equal(t, "api off web", c.out)
}

func TestEveryKindHasEveryFormat(t *testing.T) {
	f := eventful(queue())
	f.setClass(spec.ClientClass{ObjectMeta: metav1.ObjectMeta{Name: "gem", Labels: map[string]string{"vendor": "g"}}})
	c := newCLI(t, f)
	for _, kind := range []string{"sessions", "turns", "clientclasses", "events"} {
		for _, format := range []string{
			"wide", "json", "yaml", "name", "jsonpath={.items[0].metadata.name}", "custom-columns=NAME:.metadata.name,KIND:.kind",
		} {
			assert.Equal(t, 0, c.run("get", kind, "-o", format), "%s %s: %s", kind, format, c.errOut)
			assert.NotEmpty(t, c.out, "%s %s", kind, format)
			assert.NotContains(t, c.out, noValue)
		}
		for _, by := range append(sortWords[map[string]resourceKind{"sessions": kindSessions, "turns": kindTurns, "clientclasses": kindClasses, "events": kindEvents}[kind]], ".metadata.name") {
			assert.Equal(t, 0, c.run("get", kind, "--sort-by", by), "%s %s: %s", kind, by, c.errOut)
		}
		assert.Equal(t, 0, c.run("get", kind, "--show-labels", "-L", "vendor"))
		assert.Regexp(t, `^\S.*VENDOR +LABELS\n`, c.out)
	}
	for args, want := range map[string]string{
		"get turn shop-1 -o jsonpath={.spec.sessionName}":           "shop",
		"get clientclass gem -o jsonpath={.metadata.name}":          "gem",
		"get cc gem -o custom-columns=N:.metadata.name":             "N\ngem\n",
		"get turns web-2 -o custom-columns=S:.spec.sessionName":     "S\nweb\n",
		"get events -o custom-columns=R:.reason --sort-by reason":   "",
		"get turns --no-headers --sort-by status -o name":           "",
		"get session/shop -o jsonpath={.metadata.name}":             "shop",
		"get turns --sort-by session -o jsonpath={.items[0].kind}":  "Turn",
		"get events -o jsonpath={.items[0].involvedObject.kind}":    "Session",
		"get clientclasses -o jsonpath={.items[*].metadata.labels}": `{"vendor":"g"}`,
	} {
		assert.Equal(t, 0, c.run(strings.Fields(args)...), "%s: %s", args, c.errOut)
		if want != "" {
			assert.Equal(t, want, c.out, args)
		}
	}
}

func TestLabelsHaveColumns(t *testing.T) {
	c := newCLI(t, labelledShops())
	assert.Equal(t, 0, c.run("get", "--show-labels", "-L", "repo,example.org/team", "--sort-by", "name"))
	lines := strings.Split(c.out, "\n")
	assert.Regexp(t, `AGE +REPO +TEAM +LABELS$`, lines[0])
	assert.Regexp(t, `shop +- +repo=shop$`, lines[1])
	assert.Regexp(t, `- +- +-$`, lines[2])
	assert.Regexp(t, `shop +front +example.org/team=front,repo=shop$`, lines[3])
	assert.Equal(t, exitUsage, c.run("get", "-o", "name", "--show-labels"))
	assert.Contains(t, c.errOut, "--show-labels and -L are for tables")
}

func TestAWatchPrintsCustomColumnsAsTheyChange(t *testing.T) {
	f := labelledShops()
	c := newCLI(t, f)
	w := c.begin("get", "-w", "-o", "custom-columns=NAME:.metadata.name,PID:.status.client.pid")
	w.shows("NAME   PID\napi    1234567\n")
	f.set(runningSession("web", 3, 99))
	w.shows("web    99\n")
}

func TestFormatsThatMakeNoSenseAreRefused(t *testing.T) {
	c := newCLI(t, labelledShops())
	for line, want := range map[string]string{
		"get -o custom-columns":                "unknown format \"custom-columns\" for -o: it must be wide",
		"get -o custom-columns=":               "is not HEADER:PATH",
		"get -o custom-columns=NAME":           "the column \"NAME\" of -o custom-columns is not HEADER:PATH",
		"get -o custom-columns=A:.a,":          "is not HEADER:PATH",
		"get -o custom-columns=A:{.a":          "the path \"{.a\" of column A is not valid",
		"get -o jason":                         "(did you mean \"json\"?)",
		"get -o custom-colums=A:.a":            "(did you mean \"custom-columns\"?)",
		"get --sort-by restart":                "(did you mean \"restarts\"?)",
		"get turns --sort-by restarts":         "give name, age, session, status, or a JSONPath",
		"get -o custom-columns-file=":          "needs the path of a file",
		"get -o custom-columns=A:.metadata[0]": "the path of column A does not fit",
	} {
		assert.Equal(t, exitUsage, c.run(strings.Fields(line)...), "%s: %s", line, c.out)
		assert.Contains(t, c.errOut, want, line)
	}
	assert.Equal(t, exitError, c.run("get", "-o", "jsonpath-file=/nowhere/at/all"))
	assert.Contains(t, c.errOut, "read the file of -o: open /nowhere/at/all")
	file := filepath.Join(c.dir, "columns")
	require.NoError(t, os.WriteFile(file, []byte("NAME REPO\n.metadata.name\n"), 0o600))
	assert.Equal(t, exitUsage, c.run("get", "-o", "custom-columns-file="+file))
	assert.Contains(t, c.errOut, "it has 2 headers and 1 paths")
}
