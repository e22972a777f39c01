// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"
)

const metricsPath = "/metrics"

// MetricsSource is a Backend that counts what it does.
type MetricsSource interface {
	// MetricsHandler answers with the metrics, in the form that the peer asks for.
	MetricsHandler() http.Handler
}

func (a api) metrics(call) (any, error) {
	source, ok := a.backend.(MetricsSource)
	if !ok {
		return nil, NewError(ReasonNotFound, "", "this daemon has no metrics")
	}
	return whole{source.MetricsHandler()}, nil
}

// whole is an answer that a handler of its own makes.
type whole struct{ http.Handler }

func (w whole) serve(out http.ResponseWriter, r *http.Request) { w.ServeHTTP(out, r) }

// Watchers is what anybody on this host may ask who watches a daemon: its metrics and its
// health. Nothing that it serves changes anything, or names a session or a path: the
// reasons of a check that fails are told on the API's socket alone, as the kube-apiserver
// withholds them from those whom it does not know.
func Watchers(backend Backend) http.Handler {
	return &handler{routes: watcherRoutes(api{backend}, api{discreet{backend}})}
}

func watcherRoutes(metrics, health api) []route {
	return []route{
		newRoute(metricsPath, map[string]verb{http.MethodGet: metrics.metrics}),
		newRoute(healthPath, map[string]verb{http.MethodGet: health.health}),
		newRoute(readyPath, map[string]verb{http.MethodGet: health.ready}),
	}
}

// discreet is a Backend that keeps its reasons for itself.
type discreet struct{ Backend }

// HealthChecks are Backend's.
func (d discreet) HealthChecks() []Check {
	checks := slices.Clone(d.Backend.HealthChecks())
	for i := range checks {
		if checks[i].Problem != "" {
			checks[i].Problem = "reason withheld: ask on the API's socket"
		}
	}
	return checks
}
