// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHealthIsToldAsTheAPIServerOfKubernetesTellsIt(t *testing.T) {
	pulse, tmux := Check{Name: "pulse", Live: true}, Check{Name: "tmux"}
	stale, mute := Check{Name: "pulse", Live: true, Problem: "no worker of the loop was free for 62s"}, Check{Name: "tmux", Problem: "tmux does\nnot answer"}
	for name, c := range map[string]struct {
		checks []Check
		target string
		code   int
		text   string
	}{
		"live":               {[]Check{pulse, tmux}, "/healthz", 200, "ok\n"},
		"ready":              {[]Check{pulse, tmux}, "/readyz", 200, "ok\n"},
		"live, each check":   {[]Check{pulse, tmux}, "/healthz?verbose", 200, "[+]pulse ok\nhealthz check passed\n"},
		"ready, each check":  {[]Check{pulse, tmux}, "/readyz?verbose", 200, "[+]pulse ok\n[+]tmux ok\nreadyz check passed\n"},
		"live without tmux":  {[]Check{pulse, mute}, "/healthz", 200, "ok\n"},
		"ready without tmux": {[]Check{pulse, mute}, "/readyz", 503, "[+]pulse ok\n[-]tmux failed: tmux does not answer\nreadyz check failed\n"},
		"not live":           {[]Check{stale, tmux}, "/healthz", 503, "[-]pulse failed: no worker of the loop was free for 62s\nhealthz check failed\n"},
		"not live, not ready": {
			[]Check{stale, tmux}, "/readyz?verbose=1", 503,
			"[-]pulse failed: no worker of the loop was free for 62s\n[+]tmux ok\nreadyz check failed\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.checks = c.checks
			answer := ask(t, f, http.MethodGet, c.target)
			assert.Equal(t, c.code, answer.Code)
			assert.Equal(t, c.text, answer.Body.String())
			assert.Equal(t, contentText, answer.Header().Get("Content-Type"))
		})
	}
}
