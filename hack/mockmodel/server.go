// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// dialect is one of the two APIs.
type dialect interface {
	// read a request's body.
	read(body []byte) (question, error)
	// conversation is the client's own id of it; empty when it told none.
	conversation(http.Header) string
	// answer with a text or a tool call.
	answer(http.ResponseWriter, question, reply)
	// refuse with a status and the error that belongs to it.
	refuse(http.ResponseWriter, int, Control)
}

// question is what a client asks.
type question struct {
	conversation
	model  string
	stream bool
}

// reply is what it gets.
type reply struct {
	number        int
	text, command string
	escalate      bool
	// partial ends the stream after its first event.
	partial bool
}

// id of a thing in the reply, as both APIs form them.
func (a reply) id(kind string) string { return fmt.Sprintf("%s_mock%06d", kind, a.number) }

// Request is one that was asked, without a word of what was said.
type Request struct {
	Number int       `json:"number"`
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	// Kind is prompt, title or other.
	Kind string `json:"kind"`
	// Turns is the number of prompts that a user has typed.
	Turns int    `json:"turns"`
	Model string `json:"model,omitempty"`
	// Mode that it was answered by; empty while it is not.
	Mode Mode `json:"mode,omitempty"`
	// Conversation is the client's id of it.
	Conversation string `json:"conversation,omitempty"`
}

// Server answers clients and whoever controls it.
type Server struct {
	mux         *http.ServeMux
	switchboard *switchboard
	saveDir     string

	mu       sync.Mutex
	requests []Request
	saved    int
}

// NewServer saves the bodies of requests into a folder, unless that is empty.
func NewServer(saveDir string) *Server {
	s := &Server{mux: http.NewServeMux(), switchboard: newSwitchboard(), saveDir: saveDir}
	s.mux.HandleFunc("GET /control", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.switchboard.get())
	})
	s.mux.HandleFunc("PUT /control", s.putControl)
	s.mux.HandleFunc("GET /requests", s.getRequests)
	s.mux.HandleFunc("POST /v1/messages", s.ask(messages{}))
	s.mux.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	s.mux.HandleFunc("POST /v1/responses", s.ask(responses{}))
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.note(r, Request{Kind: "other"})
		writeJSON(w, http.StatusNotFound, map[string]any{
			"type": "error", "error": map[string]any{"type": "not_found_error", "message": "The mock has nothing at " + r.URL.Path},
		})
	})
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) putControl(w http.ResponseWriter, r *http.Request) {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	var c Control
	err := decoder.Decode(&c)
	if err == nil {
		err = c.validate()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	s.switchboard.set(c)
	writeJSON(w, http.StatusOK, c)
}

func (s *Server) getRequests(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	all := append([]Request{}, s.requests...)
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, all)
}

// note a request, and return its number.
func (s *Server) note(r *http.Request, request Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	request.Number, request.Time, request.Method, request.Path = len(s.requests)+1, time.Now().UTC(), r.Method, r.URL.Path
	s.requests = append(s.requests, request)
	return request.Number
}

func (s *Server) answered(number int, mode Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[number-1].Mode = mode
}

// body of a request; told to the client when it cannot be read or kept.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(r.Body)
	if err == nil && s.saveDir != "" {
		s.mu.Lock()
		s.saved++
		name := strconv.Itoa(s.saved) + ".json"
		s.mu.Unlock()
		err = os.WriteFile(filepath.Join(s.saveDir, name), body, 0o600)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	return body, err == nil
}

func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	s.note(r, Request{Kind: "other"})
	writeJSON(w, http.StatusOK, map[string]any{"input_tokens": len(body)/4 + 1})
}

func (s *Server) ask(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := s.body(w, r)
		if !ok {
			return
		}
		q, err := d.read(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		kind := "prompt"
		if q.title {
			kind = "title"
		}
		number := s.note(r, Request{Kind: kind, Turns: len(q.prompts), Model: q.model, Conversation: d.conversation(r.Header)})
		if q.title {
			s.answered(number, ModeOK)
			d.answer(w, q, reply{number: number, text: `{"title":"Talk to the mock"}`})
			return
		}
		control, err := s.switchboard.decide(r.Context())
		if err != nil {
			return
		}
		s.answered(number, control.Mode)
		s.reply(w, r, d, q, control, number)
	}
}

// reply to a prompt as the control says.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, d dialect, q question, control Control, number int) {
	if code := control.status(); code != 0 {
		refuse(w, d, code, control)
		return
	}
	if control.Mode == ModeDrop {
		if control.Partial {
			d.answer(w, q, reply{number: number, partial: true})
		}
		// The way of net/http to close a connection without an end of the answer.
		panic(http.ErrAbortHandler)
	}
	if !pause(r, time.Duration(control.Delay)) {
		return
	}
	a := reply{number: number, text: fmt.Sprintf("turns=%d first=%s", len(q.prompts), q.first())}
	if control.Mode == ModeTool && !q.answersTool {
		a.command, a.escalate = control.Command, control.Escalate
	}
	d.answer(w, q, a)
}

// pause says false when the client went away meanwhile.
func pause(r *http.Request, delay time.Duration) bool {
	if delay == 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

func refuse(w http.ResponseWriter, d dialect, code int, c Control) {
	h := w.Header()
	for name, value := range c.Headers {
		h.Set(name, value)
	}
	if c.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(c.RetryAfter))
	}
	if c.ShouldRetry != nil {
		h.Set("X-Should-Retry", strconv.FormatBool(*c.ShouldRetry))
	}
	d.refuse(w, code, c)
}

// message of an error.
func (c Control) message() string {
	if c.Message != "" {
		return c.Message
	}
	return fmt.Sprintf("The mock answers %s", c.Mode)
}
