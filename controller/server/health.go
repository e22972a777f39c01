// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"strings"
)

// Check is one thing that the daemon's health is made of.
type Check struct {
	// Name is a word, as in [+]tmux ok.
	Name string
	// Problem is one sentence; empty when there is none.
	Problem string
	// Live says that only another daemon can help: the check counts for /healthz.
	Live bool
}

// Failing is the first problem among checks, among those with Live only if live is given;
// empty when there is none.
func Failing(checks []Check, live bool) string {
	for _, c := range checks {
		if c.Problem != "" && (c.Live || !live) {
			return c.Problem
		}
	}
	return ""
}

func liveOnly(checks []Check) []Check {
	var live []Check
	for _, c := range checks {
		if c.Live {
			live = append(live, c)
		}
	}
	return live
}

// codedText is an answer that is sent as it is, with a code of its own.
type codedText struct {
	code int
	text string
}

// healthText answers as the kube-apiserver does: ok, or each check where one fails or somebody
// asks for them.
func healthText(name string, checks []Check, verbose bool) codedText {
	failing := Failing(checks, false) != ""
	if !failing && !verbose {
		return codedText{http.StatusOK, "ok\n"}
	}
	var out strings.Builder
	for _, c := range checks {
		if c.Problem == "" {
			fmt.Fprintf(&out, "[+]%s ok\n", c.Name)
		} else {
			fmt.Fprintf(&out, "[-]%s failed: %s\n", c.Name, strings.ReplaceAll(c.Problem, "\n", " "))
		}
	}
	if failing {
		fmt.Fprintf(&out, "%s check failed\n", name)
		return codedText{http.StatusServiceUnavailable, out.String()}
	}
	fmt.Fprintf(&out, "%s check passed\n", name)
	return codedText{http.StatusOK, out.String()}
}

func (a api) health(c call) (any, error) {
	return healthText("healthz", liveOnly(a.backend.HealthChecks()), c.URL.Query().Has("verbose")), nil
}

func (a api) ready(c call) (any, error) {
	return healthText("readyz", a.backend.HealthChecks(), c.URL.Query().Has("verbose")), nil
}
