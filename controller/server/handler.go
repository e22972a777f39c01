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
	return &handler{routes: append(append(api.turnRoutes(), watcherRoutes(api, api)...),
		newRoute(sessionsPath, map[string]verb{http.MethodGet: api.listSessions}),
		newRoute(allSessionsPath, map[string]verb{http.MethodGet: api.listSessions}),
		newRoute(sessionsPath+"/"+nameSegment, map[string]verb{http.MethodGet: api.getSession, http.MethodDelete: api.deleteSession}),
		newRoute(sessionsPath+"/"+nameSegment+"/suspend", map[string]verb{http.MethodPost: api.suspend}),
		newRoute(sessionsPath+"/"+nameSegment+"/resume", map[string]verb{http.MethodPost: api.resume}),
		newRoute(sessionsPath+"/"+nameSegment+"/restart", map[string]verb{http.MethodPost: api.restart}),
		newRoute(sessionsPath+"/"+nameSegment+"/terminate", map[string]verb{http.MethodPost: api.terminate}),
		newRoute(sessionsPath+"/"+nameSegment+"/attach", map[string]verb{http.MethodPost: api.attach}),
		newRoute(sessionsPath+"/"+nameSegment+"/log", map[string]verb{http.MethodGet: api.log}),
		newRoute(sessionsPath+"/"+nameSegment+"/transcript", map[string]verb{http.MethodGet: api.transcript}),
		newRoute(classesPath, map[string]verb{http.MethodGet: api.listClasses}),
		newRoute(classesPath+"/"+nameSegment, map[string]verb{http.MethodGet: api.getClass, http.MethodDelete: api.deleteClass}),
		newRoute(eventsPath, map[string]verb{http.MethodGet: api.listEvents}),
		newRoute(allEventsPath, map[string]verb{http.MethodGet: api.listEvents}),
		newRoute(diffPath, map[string]verb{http.MethodPost: api.diff}),
		newRoute(prunePath, map[string]verb{http.MethodPost: api.prune}),
		newRoute(testNotificationPath, map[string]verb{http.MethodPost: api.testNotification}),
		newRoute(statusPath, map[string]verb{http.MethodGet: api.status}),
		newRoute(configPath, map[string]verb{http.MethodGet: api.config}),
		newRoute(versionPath, map[string]verb{http.MethodGet: api.version}),
	)}
}

// handler turns what a verb gives into an answer. It alone writes to the
// connection, after the answer is complete, so that an error or a panic is
// always still a Status. A watch writes for itself once it is known to begin.
type handler struct{ routes []route }

// ServeHTTP answers one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, bodyLimit(r))
	a, err := h.answer(r)
	if err == nil && a.goesOn != nil {
		a.goesOn.serve(w, r)
		return
	}
	if err != nil {
		status := statusOf(err)
		a.code, a.contentType = int(status.Code), contentJSON
		if a.body, err = encode(status); err != nil {
			a.body = nil
		}
	}
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	header.Set("Cache-Control", "no-store")
	if len(a.allow) > 0 {
		header.Set("Allow", strings.Join(a.allow, ", "))
	}
	w.WriteHeader(a.code)
	if _, err := w.Write(a.body); err != nil {
		logr.FromContextOrDiscard(r.Context()).V(1).Info("Answer was not taken", "path", r.URL.Path, "err", err)
	}
}

const (
	// maxBodyBytes bounds what a request may send, but for a turn and the files of a diff;
	// else only delete options are read.
	maxBodyBytes = 1 << 20
	contentJSON  = "application/json"
	contentText  = "text/plain; charset=utf-8"
)

// answer to one request.
type answer struct {
	code        int
	contentType string
	body        []byte
	// goesOn is one that writes for itself.
	goesOn stream
	// allow has the methods that are possible where this one is not.
	allow []string
}

// created is the answer of a verb that has made an object.
type created struct{ object any }

func (h *handler) answer(r *http.Request) (a answer, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			logr.FromContextOrDiscard(r.Context()).Error(fmt.Errorf("panic: %v", fault), "Request handler panicked",
				"method", r.Method, "path", r.URL.Path, "stack", string(debug.Stack()))
			err = NewError(metav1.StatusReasonInternalError, "", "the daemon met a fault in itself while it answered: its log has the details")
		}
	}()
	value, allow, err := dispatch(h.routes, r)
	if err != nil {
		return answer{allow: allow}, err
	}
	code := http.StatusOK
	switch it := value.(type) {
	case plainText:
		return answer{code: code, contentType: contentText, body: []byte(it)}, nil
	case codedText:
		return answer{code: it.code, contentType: contentText, body: []byte(it.text)}, nil
	case stream:
		return answer{goesOn: it}, nil
	case created:
		code, value = http.StatusCreated, it.object
	}
	body, err := encode(value)
	return answer{code: code, contentType: contentJSON, body: body}, err
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
