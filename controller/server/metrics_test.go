// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type counting struct {
	*fakeBackend
	checks []Check
}

func (c counting) HealthChecks() []Check { return c.checks }

func (counting) MetricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "muxlet_up 1\n") })
}

func TestMetricsAreServedWhereThereAreAny(t *testing.T) {
	answer := httptest.NewRecorder()
	Handler(counting{fakeBackend: newFake()}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	assert.Equal(t, http.StatusOK, answer.Code)
	assert.Equal(t, "muxlet_up 1\n", answer.Body.String())
	require.Equal(t, http.StatusNotFound, ask(t, newFake(), http.MethodGet, "/metrics").Code)
	require.Equal(t, http.StatusMethodNotAllowed, ask(t, newFake(), http.MethodPost, "/metrics").Code)
}

// Any user of the host may ask: what they are told names no session and changes nothing.
func TestThoseWhoWatchFromOutsideSeeMetricsAndHealthAndNothingElse(t *testing.T) {
	backend := counting{fakeBackend: newFake("a")}
	get := func(method, path string) int {
		answer := httptest.NewRecorder()
		Watchers(backend).ServeHTTP(answer, httptest.NewRequest(method, path, nil))
		return answer.Code
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		assert.Equal(t, http.StatusOK, get(http.MethodGet, path), path)
		assert.Equal(t, http.StatusMethodNotAllowed, get(http.MethodPost, path), path)
	}
	for _, path := range []string{sessionsPath, sessionsPath + "/a", statusPath, configPath, versionPath, eventsPath, sessionsPath + "/a/log", "/", "/debug/pprof"} {
		assert.Equal(t, http.StatusNotFound, get(http.MethodGet, path), path)
	}
	assert.Equal(t, http.StatusNotFound, get(http.MethodPost, prunePath))

	backend.checks = []Check{{Name: "passes", Problem: "a-session for 3m", Live: true}, {Name: "tmux"}}
	for _, path := range []string{"/healthz", "/readyz?verbose"} {
		answer := httptest.NewRecorder()
		Watchers(backend).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, http.StatusServiceUnavailable, answer.Code)
		assert.Contains(t, answer.Body.String(), "[-]passes failed: reason withheld")
		assert.NotContains(t, answer.Body.String(), "a-session")
		assert.Contains(t, ask(t, backend, http.MethodGet, path).Body.String(), "a-session", "the API's socket tells")
	}
}
