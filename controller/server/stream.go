// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-logr/logr"
)

// LogFrame is one piece of a log that is followed, sent as one line of JSON.
type LogFrame struct {
	// Incarnation whose lines begin with this frame; 0: the one before goes on.
	Incarnation int64 `json:"incarnation,omitempty"`
	// Gap says that there were lines before these which could not be caught.
	Gap bool `json:"gap,omitempty"`
	// Lines that are new.
	Lines []string `json:"lines,omitempty"`
	// Removed says that the session is no more. Nothing comes after it.
	Removed bool `json:"removed,omitempty"`
}

// takeTimeout is how long a peer may take over one frame of a log. One that takes
// long (a terminal that a person has stopped) makes no work meanwhile.
const takeTimeout = time.Hour

// logStream is a log that is followed. What is wrong before its first frame is
// answered as any other error is; after it the answer just ends.
type logStream func(ctx context.Context, tell func(LogFrame) error) error

func (s logStream) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if daemon, ok := ctx.Value(stopping{}).(context.Context); ok {
		defer context.AfterFunc(daemon, cancel)()
	}
	out := &frames{w: w, control: http.NewResponseController(w)}
	// The request is read. Its deadline must not be taken for a peer that has gone.
	if err := out.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	err := s(ctx, out.send)
	switch {
	case err == nil || ctx.Err() != nil:
	case out.began:
		logr.FromContextOrDiscard(ctx).V(1).Info("Stream ended", "path", r.URL.Path, "err", err.Error())
	default:
		status := statusOf(err)
		w.Header().Set("Content-Type", contentJSON)
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
	}
}

// frames sends frames on one connection, each at once.
type frames struct {
	w       http.ResponseWriter
	control *http.ResponseController
	began   bool
}

func (f *frames) send(frame LogFrame) error {
	data, err := encode(frame)
	if err != nil {
		return err
	}
	if !f.began {
		f.began = true
		f.w.Header().Set("Content-Type", contentJSON)
		f.w.Header().Set("Cache-Control", "no-store")
	}
	err = f.control.SetWriteDeadline(time.Now().Add(takeTimeout))
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		_, err = f.w.Write(data)
	}
	if err == nil {
		err = f.control.Flush()
	}
	if err != nil {
		return fmt.Errorf("send a piece of a log: %w", err)
	}
	return nil
}

// ErrStreamEnded says that a stream ended although nothing says that it is over:
// as a rule the daemon has.
var ErrStreamEnded = errors.New("the daemon has ended the stream")

// Follow tells the last lines of the session's pane and then what is new, until
// the session is removed, ctx ends or tell fails. The error is ErrStreamEnded when
// the daemon has gone meanwhile.
func (c *Client) Follow(ctx context.Context, name string, lines int, tell func(LogFrame) error) error {
	path, err := sessionPath(name, "log")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	response, err := c.open(ctx, cancel, path, url.Values{"follow": {"true"}, "tailLines": {strconv.Itoa(lines)}})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	frames := json.NewDecoder(response.Body)
	for {
		var frame LogFrame
		if err := frames.Decode(&frame); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: %w", ErrStreamEnded, err)
		}
		if err := tell(frame); err != nil || frame.Removed {
			return err
		}
	}
}

// open begins to read a stream. Its beginning is waited for as for any answer;
// cancel is that of ctx.
func (c *Client) open(ctx context.Context, cancel context.CancelCauseFunc, path string, parameters url.Values) (*http.Response, error) {
	impatience := time.AfterFunc(c.timeout, func() { cancel(errNoAnswer) })
	target := url.URL{Scheme: "http", Host: "muxlet", Path: path, RawQuery: parameters.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make a request to the daemon: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	impatience.Stop()
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	data, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, c.explain(ctx, err)
	}
	return nil, decodeError(response.StatusCode, data)
}
