// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what the daemon does and shows it in the form that
// Prometheus reads. What is counted costs one addition when it happens; what can be
// looked up is looked up when somebody asks, and nothing is done while nobody does.
// No label ever has the name of a session, a path, or anything else of which there
// may be any number; and nothing of a prompt, a screen or an environment is here.
package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/muxlet/muxlet/spec"
)

// Kinds of what went wrong in a pass.
const (
	// FailedObservation: tmux could not be asked, so that nothing was decided.
	FailedObservation = "observation"
	// FailedSave: a record or a turn could not be written, so that nothing was done.
	FailedSave = "save"
	// FailedAction: what was decided could not be carried out.
	FailedAction = "action"
)

// Kinds of keys.
const (
	KeySession = "session"
	KeyServer  = "server"
)

// other stands for a word that is none of those that are known: a label of which
// somebody else makes the words would have no bound.
const other = "Other"

// Metrics are those of one daemon. The zero value is not one; see New. All methods
// may be called by several goroutines at once.
type Metrics struct {
	registry *prometheus.Registry
	handler  http.Handler

	reconcile   *prometheus.HistogramVec
	failed      *prometheus.CounterVec
	restarts    *prometheus.CounterVec
	observed    prometheus.Counter
	unknown     *prometheus.CounterVec
	tmux        *prometheus.HistogramVec
	turns       *prometheus.CounterVec
	queueAdds   *prometheus.CounterVec
	queueWaited *prometheus.HistogramVec
}

// durations fit what takes from a tenth of a millisecond to a stuck call's timeout.
var durations = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// New makes the metrics of a daemon of the given version that started at a time.
func New(version string, started time.Time) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		reconcile: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muxlet_reconcile_duration_seconds", Help: "How long passes took, by the kind of their key.", Buckets: durations,
		}, []string{"key"}),
		failed: counters("muxlet_reconcile_errors_total", "What went wrong in passes: tmux could not be asked, nothing could be saved, an action failed.", "kind"),
		restarts: counters("muxlet_client_restarts_total",
			"Incarnations of clients after the first that began to run, by the reason of the end before.", "reason"),
		observed: prometheus.NewCounter(prometheus.CounterOpts{Name: "muxlet_observations_total", Help: "Listings that the tmux server was asked for."}),
		unknown:  counters("muxlet_observation_failures_total", "Listings that told nothing, by the reason.", "reason"),
		tmux: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muxlet_tmux_call_duration_seconds", Help: "How long calls of the tmux program took, by their kind and their result.", Buckets: durations,
		}, []string{"kind", "result"}),
		turns:     counters("muxlet_turns_total", "Turns that are over, by their outcome.", "outcome"),
		queueAdds: counters("muxlet_queue_adds_total", "Looks that were asked for, by queue.", "queue"),
		queueWaited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muxlet_queue_wait_duration_seconds", Help: "How long keys waited for a worker, by queue.", Buckets: durations,
		}, []string{"queue"}),
	}
	m.registry.MustRegister(
		m.reconcile, m.failed, m.restarts, m.observed, m.unknown, m.tmux, m.turns, m.queueAdds, m.queueWaited, about(version), since(started),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.begin()
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
	return m
}

// ServeHTTP answers in the form that the peer asks for.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

func counters(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}

func about(version string) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "muxlet_build_info", Help: "What runs: always 1."}, []string{"version", "goversion"})
	info.WithLabelValues(version, runtime.Version()).Set(1)
	return info
}

func since(started time.Time) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "muxlet_start_time_seconds", Help: "When the daemon started, in seconds since 1970."})
	g.Set(float64(started.UnixMilli()) / 1000)
	return g
}

// begin shows each counter from its start: one that first appears with a 1 has never
// risen for whoever asks for its rate.
func (m *Metrics) begin() {
	for _, kind := range []string{FailedObservation, FailedSave, FailedAction} {
		m.failed.WithLabelValues(kind)
	}
	for key := range ends {
		m.restarts.WithLabelValues(key)
	}
	for key := range blindnesses {
		m.unknown.WithLabelValues(key)
	}
	for _, outcome := range outcomes {
		m.turns.WithLabelValues(string(outcome))
	}
	for _, key := range []string{KeySession, KeyServer} {
		m.reconcile.WithLabelValues(key)
	}
}

// Reconciled counts a pass.
func (m *Metrics) Reconciled(key string, took time.Duration) {
	m.reconcile.WithLabelValues(key).Observe(took.Seconds())
}

// Failed counts something that went wrong in a pass.
func (m *Metrics) Failed(kind string) { m.failed.WithLabelValues(kind).Inc() }

// ends are the reasons for which a client has another one after it.
var ends = words(spec.ReasonKilled, spec.ReasonExited, spec.ReasonCompleted, spec.ReasonLost, spec.ReasonStopped,
	spec.ReasonEngineGone, spec.ReasonLivenessProbeFailed, spec.ReasonStartTimeout, spec.ReasonOOMKilled, other)

// Restarted counts an incarnation after the first, by the reason of the end before.
func (m *Metrics) Restarted(reason string) { m.restarts.WithLabelValues(bounded(ends, reason)).Inc() }

// blindnesses are the reasons for which a listing tells nothing.
var blindnesses = words(spec.ReasonTmuxTimeout, spec.ReasonTmuxNotFound, spec.ReasonTmuxUnreachable, spec.ReasonTmuxDenied,
	spec.ReasonTmuxMismatch, spec.ReasonTmuxFailed, spec.ReasonListingIncomplete, spec.ReasonTwoServers, spec.ReasonForeignServer,
	spec.ReasonProcessUnknown, spec.ReasonServerStarting, spec.ReasonStateUnwritable, other)

// Observed counts a listing; reason is why it told nothing, empty when it did.
func (m *Metrics) Observed(reason string) {
	m.observed.Inc()
	if reason != "" {
		m.unknown.WithLabelValues(bounded(blindnesses, reason)).Inc()
	}
}

// TmuxCalled counts a call of the tmux program. Both words are the caller's, who knows
// all of them.
func (m *Metrics) TmuxCalled(kind, result string, took time.Duration) {
	m.tmux.WithLabelValues(kind, result).Observe(took.Seconds())
}

// outcomes are the words of the column STATUS that a turn ends with.
var outcomes = []spec.TurnPhase{spec.TurnCompleted, spec.TurnFailed, spec.TurnUncertain, spec.TurnCancelled}

// TurnEnded counts a turn that is over, by the word of its column STATUS.
func (m *Metrics) TurnEnded(outcome spec.TurnPhase) { m.turns.WithLabelValues(string(outcome)).Inc() }

// Added counts a key that was put into a queue.
func (m *Metrics) Added(queue string) { m.queueAdds.WithLabelValues(queue).Inc() }

// Waited counts a key that a worker took out of a queue.
func (m *Metrics) Waited(queue string, waited time.Duration) {
	m.queueWaited.WithLabelValues(queue).Observe(waited.Seconds())
}

func words(all ...string) map[string]bool {
	known := map[string]bool{}
	for _, word := range all {
		known[word] = true
	}
	return known
}

func bounded(known map[string]bool, word string) string {
	if known[word] {
		return word
	}
	return other
}
