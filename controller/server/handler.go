// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Handler is the API over a Backend. A request's context carries the logger
// (see Serve).
func Handler(backend Backend) http.Handler {
	api := api{backend}
	return &handler{routes: []route{
		newRoute(sessionsPath, map[string]verb{http.MethodGet: api.listSessions}),
		newRoute(allSessionsPath, map[string]verb{http.MethodGet: api.listSessions}),
		newRoute(sessionsPath+"/"+nameSegment, map[string]verb{http.MethodGet: api.getSession, http.MethodDelete: api.deleteSession}),
		newRoute(sessionsPath+"/"+nameSegment+"/suspend", map[string]verb{http.MethodPost: api.suspend}),
		newRoute(sessionsPath+"/"+nameSegment+"/resume", map[string]verb{http.MethodPost: api.resume}),
		newRoute(sessionsPath+"/"+nameSegment+"/restart", map[string]verb{http.MethodPost: api.restart}),
		newRoute(sessionsPath+"/"+nameSegment+"/terminate", map[string]verb{http.MethodPost: api.terminate}),
		newRoute(sessionsPath+"/"+nameSegment+"/log", map[string]verb{http.MethodGet: api.log}),
		newRoute(classesPath, map[string]verb{http.MethodGet: api.listClasses}),
		newRoute(classesPath+"/"+nameSegment, map[string]verb{http.MethodGet: api.getClass, http.MethodDelete: api.deleteClass}),
		newRoute(eventsPath, map[string]verb{http.MethodGet: api.listEvents}),
		newRoute(allEventsPath, map[string]verb{http.MethodGet: api.listEvents}),
		newRoute(prunePath, map[string]verb{http.MethodPost: api.prune}),
		newRoute(statusPath, map[string]verb{http.MethodGet: api.status}),
		newRoute(configPath, map[string]verb{http.MethodGet: api.config}),
		newRoute(healthPath, map[string]verb{http.MethodGet: api.health}),
		newRoute(readyPath, map[string]verb{http.MethodGet: api.ready}),
		newRoute(versionPath, map[string]verb{http.MethodGet: api.version}),
	}}
}

// handler turns what a verb gives into an answer. It alone writes to the
// connection, after the answer is complete, so that an error or a panic is
// always still a Status. A watch writes for itself once it is known to begin.
type handler struct{ routes []route }

// ServeHTTP answers one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	body, contentType, goesOn, allow, err := h.answer(r)
	if err == nil && goesOn != nil {
		goesOn.serve(w, r)
		return
	}
	code := http.StatusOK
	if err != nil {
		status := statusOf(err)
		code, contentType = int(status.Code), contentJSON
		if body, err = encode(status); err != nil {
			body = nil
		}
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	if len(allow) > 0 {
		header.Set("Allow", strings.Join(allow, ", "))
	}
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		logr.FromContextOrDiscard(r.Context()).V(1).Info("Answer was not taken", "path", r.URL.Path, "err", err)
	}
}

const (
	// maxBodyBytes bounds what a request may send; only delete options are read.
	maxBodyBytes = 1 << 20
	contentJSON  = "application/json"
	contentText  = "text/plain; charset=utf-8"
)

func (h *handler) answer(r *http.Request) (body []byte, contentType string, goesOn stream, allow []string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			logr.FromContextOrDiscard(r.Context()).Error(fmt.Errorf("panic: %v", fault), "Request handler panicked",
				"method", r.Method, "path", r.URL.Path, "stack", string(debug.Stack()))
			err = NewError(metav1.StatusReasonInternalError, "", "the daemon met a fault in itself while it answered: its log has the details")
		}
	}()
	value, allow, err := dispatch(h.routes, r)
	if err != nil {
		return nil, "", nil, allow, err
	}
	switch value := value.(type) {
	case plainText:
		return []byte(value), contentText, nil, nil, nil
	case stream:
		return nil, "", value, nil, nil
	}
	body, err = encode(value)
	return body, contentJSON, nil, nil, err
}

func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return buffer.Bytes(), nil
}
