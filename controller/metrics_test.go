// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// scraped are the metrics of a world's controller as Prometheus reads them.
type scraped map[string]*dto.MetricFamily

func scrape(e *envtest.Env) scraped {
	e.Helper()
	return parse(e, scrapeText(e))
}

func scrapeText(e *envtest.Env) string {
	e.Helper()
	answer := httptest.NewRecorder()
	e.Controller().MetricsHandler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(e, 200, answer.Code, answer.Body.String())
	return answer.Body.String()
}

func parse(t require.TestingT, text string) scraped {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return families
}

// value of a metric with the given labels, name by name, without its fraction; -1 when
// there is none. Of a histogram it is the count.
func (s scraped) value(name string, labels ...string) int {
	for _, m := range s[name].GetMetric() {
		if !labelled(m, labels) {
			continue
		}
		switch {
		case m.Gauge != nil:
			return int(m.GetGauge().GetValue())
		case m.Counter != nil:
			return int(m.GetCounter().GetValue())
		case m.Histogram != nil:
			return int(m.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

func labelled(m *dto.Metric, labels []string) bool {
	has := map[string]string{}
	for _, l := range m.GetLabel() {
		has[l.GetName()] = l.GetValue()
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if has[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

func TestMetricsTellWhatTheDaemonSeesAndDoes(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	e.Apply(func() *spec.Session { s := e.Fake("off", envtest.Script{}); s.Spec.Suspend = true; return s }())
	e.WaitFor("off", envtest.Shows(spec.StatusSuspended))
	s := scrape(e)
	assert.Equal(t, 2, s.value("muxlet_sessions", "status", "Running"))
	assert.Equal(t, 1, s.value("muxlet_sessions", "status", "Suspended"))
	assert.Equal(t, 2, s.value("muxlet_clients_running"))
	assert.Equal(t, 1, s.value("muxlet_tmux_server_state", "state", "Running"))
	assert.Equal(t, 0, s.value("muxlet_tmux_server_state", "state", "Unknown"))
	assert.Equal(t, 1, s.value("muxlet_ready"))
	assert.Equal(t, 1, s.value("muxlet_healthy"))
	assert.Equal(t, 1, s.value("muxlet_build_info", "version", "test"))
	assert.Positive(t, s.value("muxlet_reconcile_duration_seconds", "key", "session"))
	assert.Positive(t, s.value("muxlet_reconcile_duration_seconds", "key", "server"))
	assert.Positive(t, s.value("muxlet_observations_total"))
	assert.Positive(t, s.value("muxlet_queue_adds_total", "queue", "keys"))
	assert.Positive(t, s.value("muxlet_queue_wait_duration_seconds", "queue", "keys"))
	assert.Positive(t, s.value("muxlet_state_bytes", "kind", "records"))
	assert.GreaterOrEqual(t, s.value("muxlet_state_files", "kind", "records"), 3, "one record of each session, and its last generation")
	assert.Positive(t, s.value("muxlet_tmux_call_duration_seconds", "kind", "list", "result", "answered"))
	assert.Positive(t, s.value("go_goroutines"))
	assert.Positive(t, s.value("process_resident_memory_bytes"))

	assert.Equal(t, 0, s.value("muxlet_client_restarts_total", "reason", spec.ReasonKilled), "a counter is there before it counts")
	e.Kill(e.Client("a").Process)
	e.WaitFor("a", envtest.Running, envtest.Incarnation(2))
	assert.Equal(t, 1, scrape(e).value("muxlet_client_restarts_total", "reason", spec.ReasonKilled)+
		scrape(e).value("muxlet_client_restarts_total", "reason", spec.ReasonLost), "tmux may lose the status of a killed client")
	// What an earlier daemon has started is nobody's restart.
	e.Restart()
	e.WaitFor("a", envtest.Running, envtest.Incarnation(2))
	for reason := range map[string]bool{spec.ReasonKilled: true, spec.ReasonLost: true, "Other": true} {
		assert.Equal(t, 0, scrape(e).value("muxlet_client_restarts_total", "reason", reason))
	}
	e.Drop()
	require.NoError(t, os.RemoveAll(filepath.Join(e.State, "records")))
	e.Boot()
	e.WaitFor("a", envtest.Running, envtest.Incarnation(2))
	assert.Equal(t, 0, scrape(e).value("muxlet_client_restarts_total", "reason", "Other"), "nor is one that is adopted")
}

// D2: a tmux that does not answer is seen by whoever watches from outside.
func TestMetricsTellThatTmuxDoesNotAnswer(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Meddled: true})
	e.Run("a")
	e.Meddle(`echo "error connecting to /run/tmux.sock (Resource temporarily unavailable)" >&2; exit 1`)
	e.Eventually("metrics tell of it", func() bool {
		s := scrape(e)
		return s.value("muxlet_tmux_server_state", "state", "Unknown") == 1 && s.value("muxlet_observation_failures_total", "reason", spec.ReasonTmuxFailed) > 1 &&
			s.value("muxlet_observation_age_seconds") >= 1 && s.value("muxlet_ready") == 0
	})
	e.Meddle("")
	e.Eventually("and that it answers again", func() bool {
		s := scrape(e)
		return s.value("muxlet_tmux_server_state", "state", "Running") == 1 && s.value("muxlet_ready") == 1
	})
}

func TestEachTurnThatEndsIsCountedOnce(t *testing.T) {
	t.Parallel()
	e := startChats(t, envtest.Config{})
	e.runs(classAgent, "a")
	name := e.send("a", "hello")
	e.Eventually("the turn is completed and counted", func() bool {
		s := scrape(e.Env)
		return s.value("muxlet_turns_total", "outcome", "Completed") == 1 && s.value("muxlet_turns_open") == 0
	})
	e.waitTurn(name, spec.TurnCompleted)
	e.Restart()
	e.WaitFor("a", envtest.Running)
	assert.Equal(t, 0, scrape(e.Env).value("muxlet_turns_total", "outcome", "Completed"), "those that an earlier daemon has ended are not this one's")
}

// The names are those that people of Prometheus expect, and no label has a bound that
// somebody else sets.
func TestMetricsAreNamedAsPrometheusNamesThem(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a-session-of-mine")
	text := scrapeText(e)
	problems, err := promlint.New(bytes.NewBufferString(text)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.NotContains(t, text, "a-session-of-mine")
	assert.NotContains(t, text, e.Dir)
	s := scrape(e)
	for name := range s {
		assert.Regexp(t, `^(muxlet|go|process)_`, name)
	}
	assert.Len(t, s["muxlet_sessions"].GetMetric(), len(spec.Statuses), "each word is there, though nobody has it")
	for _, word := range spec.Statuses {
		assert.GreaterOrEqual(t, s.value("muxlet_sessions", "status", string(word)), 0)
	}
}
