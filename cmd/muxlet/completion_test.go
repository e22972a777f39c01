// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

func TestCompletionKnowsLabelsFieldsAndGoals(t *testing.T) {
	f := labelledShops()
	f.setTurn(pendingTurn("web", 1))
	f.setClass(spec.ClientClass{ObjectMeta: metav1.ObjectMeta{Name: "gem"}})
	c := newCLI(t, f)
	for _, test := range []struct{ line, want, directive string }{
		{"get -l ?", "example.org/team= repo=", ":6"},
		{"suspend -l repo=?", "repo=shop", ":4"},
		{"top -l repo=shop,example.org/team=?", "repo=shop,example.org/team=front", ":4"},
		{"get -L ?", "example.org/team repo", ":4"},
		{"get -o jsonp?", "jsonpath= jsonpath-file=", ":6"},
		{"get -o js?", "json jsonpath= jsonpath-file=", ":6"},
		{"get -o ya?", "yaml", ":4"},
		{"get -o jsonpath={.status.cl?", "jsonpath={.status.client", ":6"},
		{"get -o custom-columns-file=?", "", ":0"},
		{"get --sort-by .status.client.re?", ".status.client.ready .status.client.restartCount", ":6"},
		{"get --sort-by {.metadata.creat?", "{.metadata.creationTimestamp", ":6"},
		{"get --sort-by .status.conditions[0].last?", ".status.conditions[0].lastTransitionTime", ":6"},
		{"get --sort-by .nothing.?", "", ":4"},
		{"get turns --sort-by ?", "name age session status", ":4"},
		{"get turns --sort-by .spec.s?", ".spec.sessionName", ":6"},
		{"get clientclasses --sort-by .spec.re?", ".spec.ready .spec.reports .spec.resume", ":6"},
		{"events -o jsonpath={.involvedObject.na?", "jsonpath={.involvedObject.name jsonpath={.involvedObject.namespace", ":6"},
		{"wait ?", "api off web clientclass turn", ":4"},
		{"wait turn/?", "turn/web-1", ":4"},
		{"wait cc/?", "cc/gem", ":4"},
		{"wait web --for ?", "condition= jsonpath= create delete", ":6"},
		{"wait web --for condition=R?", "condition=Ready", ":4"},
		{"wait turn/web-1 --for condition=?", "condition=Delivered condition=Completed", ":4"},
		{"wait web --for jsonpath={.status.act?", "jsonpath={.status.activity", ":6"},
		{"top --sort-by ?", "name cpu memory processes", ":4"},
		{"top ?", "api off web", ":4"},
		{"apply -o ?", "json yaml name", ":4"},
	} {
		words := strings.Fields(test.line)
		last := strings.TrimSuffix(words[len(words)-1], "?")
		words[len(words)-1] = last
		assert.Equal(t, 0, c.run(append([]string{"__complete"}, words...)...), test.line)
		var got []string
		directive := ""
		for _, line := range strings.Split(strings.TrimSpace(c.out), "\n") {
			word, _, _ := strings.Cut(line, "\t")
			if strings.HasPrefix(line, ":") {
				directive = line
			} else if strings.HasPrefix(word, last) {
				got = append(got, word)
			}
		}
		assert.Equal(t, test.want, strings.Join(got, " "), test.line)
		assert.Equal(t, test.directive, directive, test.line)
	}
}

func TestEveryVerbIsCompleted(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, 0, c.run("__complete", ""))
	for _, cmd := range newRoot().Commands() {
		if !cmd.Hidden {
			assert.Contains(t, c.out, cmd.Name()+"\t")
		}
	}
}
