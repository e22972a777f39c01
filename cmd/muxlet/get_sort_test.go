// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// The question and how old it is, of what a person has not seen; one line each.
func TestTheListHasTheQuestionAndItsAge(t *testing.T) {
	asks, ended, failed, seen := runningSession("asks", 1, 5), runningSession("ended", 1, 6), runningSession("failed", 1, 7), runningSession("seen", 1, 8)
	for _, s := range []*spec.Session{&asks, &seen} {
		condition(s, spec.ConditionInputRequired, metav1.ConditionTrue, spec.ReasonPermissionRequired, "the client asks whether it may do something")
		s.Status.Activity = &spec.ActivityStatus{State: spec.ActivityAwaitingInput, AsksSince: pointer(before(3 * time.Minute))}
	}
	seen.Status.Activity.SeenAt = pointer(before(time.Minute))
	ended.Status.Activity = &spec.ActivityStatus{State: spec.ActivityIdle, AsksSince: pointer(before(20 * time.Second))}
	failed.Status.Activity = &spec.ActivityStatus{State: spec.ActivityIdle, AsksSince: pointer(before(10 * time.Second)), Failure: spec.ReasonUsageLimited}
	c := newCLI(t, newFakeDaemon(seen, failed, ended, asks, stalledSession("missing", spec.ReasonWorkspaceMissing, "the directory /x is not there")))
	assert.Equal(t, 0, c.run("get", "--no-headers"))
	assert.Regexp(t, `(?m)^asks .* AwaitingInput \(PermissionRequired, 3m ago\) `, c.out)
	assert.Regexp(t, `(?m)^ended .* Idle \(Finished, 20s ago\) `, c.out)
	assert.Regexp(t, `(?m)^failed .* Idle \(UsageLimited, 10s ago\) `, c.out)
	assert.Regexp(t, `(?m)^seen .* AwaitingInput \(PermissionRequired\) `, c.out)
	assert.Equal(t, 0, c.run("get", "--waiting"))
	assert.Equal(t, `NAME      CLASS   STATUS    WAITING   QUESTION
asks      exec    Running   3m        PermissionRequired: the client asks whether it may do something
missing   exec    Blocked   90s       WorkspaceMissing: the directory /x is not there
ended     exec    Running   20s       Finished: its work has ended, and nobody has looked at it yet
failed    exec    Running   10s       UsageLimited: its last turn has failed
`, c.out)
	assert.Equal(t, 0, c.run("get", "--waiting", "-o", "wide"))
	assert.Contains(t, c.out, "INCARNATION")
}

func TestThoseThatWaitForAPersonComeFirst(t *testing.T) {
	asks := runningSession("z-asks", 1, 5)
	condition(&asks, spec.ConditionInputRequired, metav1.ConditionTrue, "TrustRequired", "")
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 5), asks, suspendedSession("off"), stalledSession("missing", spec.ReasonWorkspaceMissing, "")))
	assert.Equal(t, 0, c.run("get", "--no-headers"))
	assert.Equal(t, "missing z-asks a off", firstWords(c.out))
	assert.Equal(t, 0, c.run("get", "--no-headers", "--waiting"))
	assert.Equal(t, "missing z-asks", firstWords(c.out))
	assert.Equal(t, 0, c.run("get", "-o", "name"))
	assert.Equal(t, "session.muxlet.dev/a session.muxlet.dev/missing session.muxlet.dev/off session.muxlet.dev/z-asks", firstWords(c.out), "a program gets them by name")
	c = newCLI(t, newFakeDaemon(runningSession("a", 1, 5)))
	assert.Equal(t, 0, c.run("get", "--waiting"))
	assert.Equal(t, "No sessions found: none waits for a person.\n", c.errOut)
}

// What a person has seen comes first no more, and ended work that nobody has seen does.
func TestASessionThatWasSeenAsksForNobody(t *testing.T) {
	at := func(s *spec.Session, state spec.Activity, asks, seen *metav1.Time) {
		s.Status.Activity = &spec.ActivityStatus{State: state, AsksSince: asks, SeenAt: seen}
	}
	seen, ended := runningSession("m-seen", 1, 5), runningSession("z-ended", 1, 6)
	condition(&seen, spec.ConditionInputRequired, metav1.ConditionTrue, "TrustRequired", "")
	at(&seen, spec.ActivityAwaitingInput, pointer(before(2*time.Hour)), pointer(before(time.Hour)))
	at(&ended, spec.ActivityIdle, pointer(before(time.Hour)), nil)
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 7), seen, ended))
	assert.Equal(t, 0, c.run("get", "--no-headers"))
	assert.Equal(t, "z-ended a m-seen", firstWords(c.out))
	assert.Equal(t, 0, c.run("describe", "m-seen"))
	assert.Contains(t, c.out, "not wanted; somebody looked at it 60m ago")
	assert.Equal(t, 0, c.run("describe", "z-ended"))
	assert.Contains(t, c.out, "nobody has looked at it yet")
}

func firstWords(text string) string {
	var words []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		word, _, _ := strings.Cut(line, " ")
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestGetSorts(t *testing.T) {
	old, young := runningSession("b", 10, 50), runningSession("c", 2, 7)
	old.CreationTimestamp, young.CreationTimestamp = before(50*time.Hour), before(time.Hour)
	c := newCLI(t, newFakeDaemon(runningSession("a", 3, 600), old, young, suspendedSession("off")))
	for by, want := range map[string]string{
		"name":                            "a b c off",
		"age":                             "c a off b",
		"restarts":                        "off c a b",
		"status":                          "a b c off",
		".status.client.pid":              "off c b a",
		"{.status.client.pid}":            "off c b a",
		"metadata.creationTimestamp":      "b a off c",
		".status.client.nothing":          "a b c off",
		"{.status.conditions[0].message}": "a b c off",
	} {
		assert.Equal(t, 0, c.run("get", "--no-headers", "--sort-by", by), by)
		assert.Equal(t, want, firstWords(c.out), by)
	}
	assert.Equal(t, 0, c.run("get", "c", "a", "--no-headers"))
	assert.Equal(t, "c a", firstWords(c.out), "names stay as they were given")
	assert.Equal(t, 0, c.run("get", "c", "a", "--no-headers", "--sort-by=name"))
	assert.Equal(t, "a c", firstWords(c.out))
	for _, by := range []string{"wrong", "{.a[}"} {
		assert.Equal(t, exitUsage, c.run("get", "--sort-by", by), by)
	}
	assert.Contains(t, c.errOut, "give name, age, restarts, status, or a JSONPath")
}

func TestGetPrintsWhatAJSONPathFinds(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 3, 600), runningSession("b", 1, 7)))
	for _, r := range []struct{ target, template, want string }{
		{"a", "{.status.client.pid}", "600"},
		{"", "{.items[*].metadata.name}", "a b"},
		{"", "{range .items[*]}{.metadata.name}{\"\\t\"}{.status.client.restartCount}{\"\\n\"}{end}", "a\t2\nb\t0\n"},
		{"a", "{.status.client.nothing}", ""},
	} {
		args := []string{"get", "-o", "jsonpath=" + r.template}
		if r.target != "" {
			args = append(args, r.target)
		}
		assert.Equal(t, 0, c.run(args...), r.template)
		assert.Equal(t, r.want, c.out, r.template)
	}
	for _, template := range []string{"", "{.a", "{.a[}"} {
		assert.Equal(t, exitUsage, c.run("get", "-o", "jsonpath="+template), template)
	}
	assert.Equal(t, exitUsage, c.run("get", "-o", "xml"))
	assert.Contains(t, c.errOut, "it must be wide, json, yaml, name, jsonpath=TEMPLATE, jsonpath-file=FILE, custom-columns=HEADER:PATH,... or custom-columns-file=FILE")
	assert.Equal(t, exitUsage, c.run("get", "--output-watch-events"))
}

func TestEventsAreOfTheTypesAndSessionsThatAreAskedFor(t *testing.T) {
	f := eventful(zoo())
	c := newCLI(t, f)
	for _, r := range []struct {
		args []string
		want int
	}{
		{[]string{"events"}, 3},
		{[]string{"events", "--types", "Warning"}, 1},
		{[]string{"events", "--types", "warning,normal"}, 3},
		{[]string{"events", "--for", "api"}, 1},
		{[]string{"events", "--for", "session/web", "--types", "Normal"}, 1},
		{[]string{"events", "web", "api"}, 3},
		{[]string{"events", "web", "--for", "api"}, 3},
	} {
		assert.Equal(t, 0, c.run(append(r.args, "--no-headers")...), r.args)
		assert.Equal(t, r.want, strings.Count(c.out, "\n"), r.args)
	}
	assert.Equal(t, exitUsage, c.run("events", "--types", "Fatal"))
	assert.Equal(t, exitUsage, c.run("events", "--for", "pods/x"))
	assert.Equal(t, 0, c.run("get", "events", "--sort-by", ".message", "--no-headers"))
	assert.Contains(t, strings.Split(c.out, "\n")[0], "Incarnation 1")
}

func TestGetOnNothingSaysWhatWasFoundWhere(t *testing.T) {
	f := newFakeDaemon()
	f.status.Roots = []server.ManifestRoot{
		{Path: "/m/a"}, {Path: "/m/b", Problem: "it does not exist"}, {Path: "/m/c", Files: 1}, {Path: "/m/d", Files: 3},
	}
	c := newCLI(t, f)
	assert.Equal(t, 0, c.run("get"))
	assert.Equal(t, "No sessions found: no manifest in /m/a (it is empty), /m/b (it does not exist), /m/c (1 file), /m/d (3 files). "+
		"Put a YAML there that declares a Session, or run \"muxlet new\" in a project, and it comes up by itself.\n", c.errOut)
}

// A pid of seven digits is no number with an exponent.
func TestWholeNumbersArePrintedWhole(t *testing.T) {
	c := newCLI(t, newFakeDaemon(runningSession("a", 1, 4194303)))
	assert.Equal(t, 0, c.run("get", "a", "-o", "jsonpath={.status.client.pid}"))
	assert.Equal(t, "4194303", c.out)
}
