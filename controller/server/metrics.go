// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import "net/http"

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

// Watchers is what whoever watches a daemon from outside may ask: its metrics and its
// health. Nothing that it serves changes anything, or names a session.
func Watchers(backend Backend) http.Handler {
	return &handler{routes: api{backend}.watcherRoutes()}
}

func (a api) watcherRoutes() []route {
	return []route{
		newRoute(metricsPath, map[string]verb{http.MethodGet: a.metrics}),
		newRoute(healthPath, map[string]verb{http.MethodGet: a.health}),
		newRoute(readyPath, map[string]verb{http.MethodGet: a.ready}),
	}
}
