// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// fetch gives what is at a path; an empty address means the API's socket.
func (w *World) fetch(address, path string) (code int, body string) {
	w.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if address == "" {
			return (&net.Dialer{}).DialContext(ctx, "unix", w.runtime+"/muxlet.sock")
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}}, Timeout: patience}
	answer, err := client.Get("http://muxlet" + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	require.NoError(w, err)
	return answer.StatusCode, string(data)
}

// What watches a host reads the daemon's metrics from the API's socket, and, where
// somebody asked for it, from a loopback port, which follows the settings.
func TestMetricsAreOnTheSocketAndOnAPortOnceItIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.several(2, "stay")
	w.waitFor("two sessions run", func() bool {
		_, body := w.fetch("", "/metrics")
		return strings.Contains(body, "\nmuxlet_sessions{status=\"Running\"} 2\n")
	})
	first, second := freeAddress(t), freeAddress(t)
	w.configure(settings{"metrics": settings{"listen": first}})
	w.waitFor("the port is served", func() bool { code, _ := w.fetch(first, "/metrics"); return code == http.StatusOK })
	for _, path := range []string{"/healthz", "/readyz"} {
		code, _ := w.fetch(first, path)
		assert.Equal(t, http.StatusOK, code, path)
	}
	for _, path := range []string{"/", "/configz", "/statusz", "/apis/muxlet.dev/v1alpha1/sessions"} {
		code, _ := w.fetch(first, path)
		assert.Equal(t, http.StatusNotFound, code, path)
	}

	// Somebody else has the next one: that is told, and mends itself.
	taken, err := net.Listen("tcp", second)
	require.NoError(t, err)
	defer taken.Close()
	w.configure(settings{"metrics": settings{"listen": second}})
	w.waitFor("it is told", func() bool {
		status, err := w.api.Status(w.Context())
		return err == nil && strings.Contains(strings.Join(status.Problems, "\n"), "metrics are not served on "+second)
	})
	require.NoError(t, taken.Close())
	w.configure(settings{"metrics": settings{"listen": second}, "resyncPeriod": "900ms"})
	w.waitFor("the other port is served", func() bool { code, _ := w.fetch(second, "/metrics"); return code == http.StatusOK })
	code, _ := w.fetch(first, "/metrics")
	assert.Zero(t, code, "the first one no more")

	w.configure()
	w.waitFor("no port is served", func() bool { code, _ := w.fetch(second, "/metrics"); return code == 0 })
	code, _ = w.fetch("", "/metrics")
	assert.Equal(t, http.StatusOK, code)
}

func TestADaemonIsToldByAFlagWhereItServesMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := w.refuses(1, "daemon", "--metrics-listen", "0.0.0.0:9464")
	assert.Contains(t, out, "is no loopback address")
	assert.Contains(t, out, "use 127.0.0.1:9464")
	address := freeAddress(t)
	w.setenv("MUXLET_METRICS_LISTEN", address)
	w.start()
	w.waitFor("the port is served", func() bool { code, _ := w.fetch(address, "/readyz"); return code == http.StatusOK })
}
