// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/muxlet/muxlet/spec"
)

// State is what is looked up when somebody asks.
type State struct {
	// Sessions is how many have each word of the STATUS column.
	Sessions map[spec.Status]int
	// Clients that run; Waiting are the sessions that wait for a person.
	Clients, Waiting int
	// TmuxServer is the judgement of the tmux server: one of TmuxStates.
	TmuxServer string
	// ObservationAge is how long ago a listing began that told something: since the start
	// of the daemon while there was none.
	ObservationAge time.Duration
	// Ready and Live as /readyz and /healthz say; PulseAge is how long ago a worker of the
	// loop was free.
	Ready, Live bool
	PulseAge    time.Duration
	// Queues by name.
	Queues map[string]Queue
	// TurnsOpen is how many turns are not over.
	TurnsOpen int
	// HeldRemovals are the sessions whose removal waits for a person, ManifestProblems what is
	// wrong with documents.
	HeldRemovals, ManifestProblems int
	// Spool is what reports wait for the daemon.
	Spool Usage
	// Disk is what the state takes, by kind; empty before the first look at it.
	Disk map[string]Usage
}

// Queue is what waits, and what is worked on.
type Queue struct {
	// Depth is the number of keys that wait.
	Depth int
	// Oldest is for how long one of them has, and Longest how long one that is worked on
	// takes by now.
	Oldest, Longest time.Duration
}

// Usage is what is taken on disk.
type Usage struct {
	Files int
	// Bytes on disk, in whole blocks.
	Bytes int64
}

// TmuxStates are the judgements of a tmux server.
var TmuxStates = []string{"Running", "None", "Unknown"}

var (
	sessionsDesc   = gauge("muxlet_sessions", "Sessions by the word of their column STATUS.", "status")
	clientsDesc    = gauge("muxlet_clients_running", "Clients that run.")
	waitingDesc    = gauge("muxlet_sessions_waiting", "Sessions that wait for a person.")
	tmuxDesc       = gauge("muxlet_tmux_server_state", "What is known of the tmux server: 1 for the state that holds.", "state")
	ageDesc        = gauge("muxlet_observation_age_seconds", "Since when tmux has told nothing: the age of the last listing that counts.")
	readyDesc      = gauge("muxlet_ready", "1 while the daemon is ready, as /readyz says.")
	liveDesc       = gauge("muxlet_healthy", "1 while the daemon's loop turns, as /healthz says.")
	pulseDesc      = gauge("muxlet_loop_pulse_age_seconds", "How long ago a worker of the loop was free and got its lock: 2 s at rest.")
	depthDesc      = gauge("muxlet_queue_depth", "Keys that wait for a worker, by queue.", "queue")
	oldestDesc     = gauge("muxlet_queue_oldest_seconds", "For how long the key has waited that waits longest, by queue.", "queue")
	longestDesc    = gauge("muxlet_queue_longest_running_seconds", "How long the pass takes by now that takes longest, by queue.", "queue")
	openDesc       = gauge("muxlet_turns_open", "Turns that are not over.")
	heldDesc       = gauge("muxlet_removals_held", "Removals of sessions that wait for muxlet prune.")
	problemsDesc   = gauge("muxlet_manifest_problems", "Things that are wrong with manifests.")
	spoolFilesDesc = gauge("muxlet_report_spool_files", "Reports of clients that wait for the daemon on disk.")
	spoolBytesDesc = gauge("muxlet_report_spool_bytes", "Disk that the reports take which wait for the daemon.")
	diskFilesDesc  = gauge("muxlet_state_files", "Files in the state directory, by kind. Looked at every few minutes.", "kind")
	diskBytesDesc  = gauge("muxlet_state_bytes", "Disk that the state directory takes, by kind. Looked at every few minutes.", "kind")
)

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Look has the state looked up by f whenever somebody asks. It comes once, before
// anybody does.
func (m *Metrics) Look(f func() State) { m.registry.MustRegister(lookup(f)) }

// lookup is a prometheus.Collector.
type lookup func() State

// Describe is prometheus.Collector's.
func (l lookup) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		sessionsDesc, clientsDesc, waitingDesc, tmuxDesc, ageDesc, readyDesc, liveDesc, pulseDesc, depthDesc, oldestDesc, longestDesc, openDesc,
		heldDesc, problemsDesc, spoolFilesDesc, spoolBytesDesc, diskFilesDesc, diskBytesDesc,
	} {
		out <- d
	}
}

// Collect is prometheus.Collector's.
func (l lookup) Collect(out chan<- prometheus.Metric) {
	s := l()
	put := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, word := range spec.Statuses {
		put(sessionsDesc, float64(s.Sessions[word]), string(word))
	}
	for _, state := range TmuxStates {
		put(tmuxDesc, one(state == s.TmuxServer), state)
	}
	put(clientsDesc, float64(s.Clients))
	put(waitingDesc, float64(s.Waiting))
	put(ageDesc, s.ObservationAge.Seconds())
	put(readyDesc, one(s.Ready))
	put(liveDesc, one(s.Live))
	put(pulseDesc, s.PulseAge.Seconds())
	for name, q := range s.Queues {
		put(depthDesc, float64(q.Depth), name)
		put(oldestDesc, q.Oldest.Seconds(), name)
		put(longestDesc, q.Longest.Seconds(), name)
	}
	put(openDesc, float64(s.TurnsOpen))
	put(heldDesc, float64(s.HeldRemovals))
	put(problemsDesc, float64(s.ManifestProblems))
	put(spoolFilesDesc, float64(s.Spool.Files))
	put(spoolBytesDesc, float64(s.Spool.Bytes))
	for kind, usage := range s.Disk {
		put(diskFilesDesc, float64(usage.Files), kind)
		put(diskBytesDesc, float64(usage.Bytes), kind)
	}
}

func one(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
