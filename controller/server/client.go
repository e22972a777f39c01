// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/version"

	"github.com/muxlet/muxlet/spec"
)

// ClientTimeout is how long a client waits for an answer.
const ClientTimeout = 5 * time.Second

// ErrNoDaemon says that no daemon can be reached on the socket.
var ErrNoDaemon = errors.New("no muxlet daemon answers")

// noDaemonError is ErrNoDaemon with the socket and what to do about it.
type noDaemonError struct {
	socket string
	start  string
	cause  error
}

// Error is the sentence for a person.
func (e *noDaemonError) Error() string {
	if errors.Is(e.cause, fs.ErrPermission) {
		return fmt.Sprintf("The socket %s may not be opened by this user: it is its daemon's owner's alone (point --runtime-dir at a daemon of your own).", e.socket)
	}
	return fmt.Sprintf("No muxlet daemon answers on %s: start one with \"%s\" (or point --runtime-dir at the running one).", e.socket, e.start)
}

// Is makes it ErrNoDaemon.
func (e *noDaemonError) Is(target error) bool { return target == ErrNoDaemon }

// Unwrap is what the system said.
func (e *noDaemonError) Unwrap() error { return e.cause }

// ErrBroken says that the connection broke before there was an answer: what was asked
// for may have been done or not.
var ErrBroken = errors.New("the connection to the muxlet daemon broke")

// brokenError is ErrBroken with the socket and what to do about it.
type brokenError struct {
	socket string
	cause  error
}

// Error is the sentence for a person.
func (e *brokenError) Error() string {
	return fmt.Sprintf("the muxlet daemon on %s has ended while it was asked: see whether it runs, and try again", e.socket)
}

// Is makes it ErrBroken.
func (e *brokenError) Is(target error) bool { return target == ErrBroken }

// Unwrap is what the system said.
func (e *brokenError) Unwrap() error { return e.cause }

// Client speaks to the daemon on one socket. Its methods return ErrNoDaemon
// when there is none, DeadlineExceeded when it does not answer within
// ClientTimeout, and otherwise the daemon's own errors as
// *apierrors.StatusError. It never tries again by itself.
type Client struct {
	// Start is the command by which a person starts the daemon, as errors name it.
	Start   string
	socket  string
	timeout time.Duration
	http    *http.Client
}

// NewClient is a client for the socket, which need not exist yet.
func NewClient(socket string) *Client {
	var dialer net.Dialer
	c := &Client{Start: "muxlet daemon", socket: socket, timeout: ClientTimeout}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "unix", socket)
			if err != nil && ctx.Err() == nil {
				err = &noDaemonError{socket, c.Start, err}
			}
			return conn, err
		},
		DisableCompression: true,
		MaxIdleConns:       1,
		IdleConnTimeout:    10 * time.Second,
	}}
	return c
}

// Close drops the connections that are kept for the next call.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Sessions lists the sessions that match the label selector; empty: all.
func (c *Client) Sessions(ctx context.Context, selector string) (*spec.SessionList, error) {
	var list spec.SessionList
	return &list, c.call(ctx, http.MethodGet, sessionsPath, query("labelSelector", selector), &list)
}

// Session is one session.
func (c *Client) Session(ctx context.Context, name string) (*spec.Session, error) {
	var session spec.Session
	return &session, c.onSession(ctx, http.MethodGet, name, "", nil, &session)
}

// Events about a session, or all of them when it is empty; oldest first.
func (c *Client) Events(ctx context.Context, session string) (*corev1.EventList, error) {
	var selector string
	if session != "" {
		selector = fields.OneTermEqualSelector(fieldInvolvedName, session).String()
	}
	var list corev1.EventList
	return &list, c.call(ctx, http.MethodGet, eventsPath, query("fieldSelector", selector), &list)
}

// Delete removes the document that declares the session.
func (c *Client) Delete(ctx context.Context, name string) error {
	return c.onSession(ctx, http.MethodDelete, name, "", nil, nil)
}

// Suspend sets spec.suspend.
func (c *Client) Suspend(ctx context.Context, name string) error {
	return c.onSession(ctx, http.MethodPost, name, "suspend", nil, nil)
}

// Resume lifts a suspension and asks for a client; with fresh, for one with a
// conversation of its own.
func (c *Client) Resume(ctx context.Context, name string, fresh bool) error {
	var parameters url.Values
	if fresh {
		parameters = query("fresh", "true")
	}
	return c.onSession(ctx, http.MethodPost, name, "resume", parameters, nil)
}

// Restart asks for the client to be replaced.
func (c *Client) Restart(ctx context.Context, name string) error {
	return c.onSession(ctx, http.MethodPost, name, "restart", nil, nil)
}

// Terminate asks for the client to be ended and kept down.
func (c *Client) Terminate(ctx context.Context, name string) error {
	return c.onSession(ctx, http.MethodPost, name, "terminate", nil, nil)
}

// Screen is the last lines of the session's pane.
func (c *Client) Screen(ctx context.Context, name string, lines int) (string, error) {
	var text plainText
	err := c.onSession(ctx, http.MethodGet, name, "log", query("tailLines", strconv.Itoa(lines)), &text)
	return string(text), err
}

// PreviousScreen is the last lines of what the incarnation that ended last has
// shown.
func (c *Client) PreviousScreen(ctx context.Context, name string, lines int) (string, error) {
	var text plainText
	parameters := url.Values{"previous": {"true"}, "tailLines": {strconv.Itoa(lines)}}
	err := c.onSession(ctx, http.MethodGet, name, "log", parameters, &text)
	return string(text), err
}

// Transcript says where the transcript of the session's conversation is.
func (c *Client) Transcript(ctx context.Context, name string) (Transcript, error) {
	var out Transcript
	err := c.onSession(ctx, http.MethodGet, name, "transcript", nil, &out)
	return out, err
}

// Prune ends the removals that are held back, or only tells which.
func (c *Client) Prune(ctx context.Context, confirm bool) (PruneResult, error) {
	var result PruneResult
	err := c.call(ctx, http.MethodPost, prunePath, query("confirm", strconv.FormatBool(confirm)), &result)
	return result, err
}

// Status of the daemon.
func (c *Client) Status(ctx context.Context) (DaemonStatus, error) {
	var status DaemonStatus
	err := c.call(ctx, http.MethodGet, statusPath, nil, &status)
	return status, err
}

// Version of the daemon.
func (c *Client) Version(ctx context.Context) (version.Info, error) {
	var info version.Info
	err := c.call(ctx, http.MethodGet, versionPath, nil, &info)
	return info, err
}

// Healthy is nil while the daemon's loop turns.
func (c *Client) Healthy(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, healthPath, nil, nil)
}

// Ready is nil once the daemon has read its manifests and looked at tmux.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, readyPath, nil, nil)
}

func query(name, value string) url.Values {
	if value == "" {
		return nil
	}
	return url.Values{name: {value}}
}

// onSession calls a session or a subresource of it.
func (c *Client) onSession(ctx context.Context, method, name, subresource string, parameters url.Values, into any) error {
	path, err := sessionPath(name, subresource)
	if err != nil {
		return err
	}
	return c.call(ctx, method, path, parameters, into)
}

// sessionPath is where a session or a subresource of it is. The daemon lists
// documents whose names are wrong too, so that a person can ask about them; a name
// that is part of a path's grammar is not sent, for it could mean another path.
func sessionPath(name, subresource string) (string, error) {
	if !sendable(name) {
		return "", NewNotFound(name)
	}
	path := sessionsPath + "/" + name
	if subresource != "" {
		path += "/" + subresource
	}
	return path, nil
}

func sendable(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/%?#")
}

// call sends one request and reads its answer into into, which is nil, a
// *plainText or what JSON is decoded into.
func (c *Client) call(ctx context.Context, method, path string, parameters url.Values, into any) error {
	return c.send(ctx, method, path, parameters, nil, into)
}

// send is call with a body; nil for none.
func (c *Client) send(ctx context.Context, method, path string, parameters url.Values, body []byte, into any) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, errNoAnswer)
	defer cancel()
	target := url.URL{Scheme: "http", Host: "muxlet", Path: path, RawQuery: parameters.Encode()}
	request, err := http.NewRequestWithContext(limited, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make a request to the daemon: %w", err)
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", contentJSON)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.explain(limited, err)
	}
	data, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return c.explain(limited, err)
	}
	return decode(response.StatusCode, data, into)
}

var errNoAnswer = errors.New("no answer in time")

// explain makes one sentence of what the transport says.
func (c *Client) explain(ctx context.Context, err error) error {
	if nobody, ok := errors.AsType[*noDaemonError](err); ok {
		return nobody
	}
	if errors.Is(context.Cause(ctx), errNoAnswer) {
		return NewError(ReasonDeadlineExceeded, "", fmt.Sprintf(
			"The muxlet daemon on %s did not answer within %s: see whether it is stopped or overloaded.", c.socket, c.timeout))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) {
		return &brokenError{c.socket, err}
	}
	return fmt.Errorf("ask the muxlet daemon on %s: %w", c.socket, err)
}

func decode(code int, data []byte, into any) error {
	if code >= http.StatusBadRequest {
		return decodeError(code, data)
	}
	if into == nil {
		return nil
	}
	if text, ok := into.(*plainText); ok {
		*text = plainText(data)
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read the daemon's answer: %w", err)
	}
	return nil
}

func decodeError(code int, data []byte) error {
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err != nil || status.Kind != "Status" {
		return NewError(metav1.StatusReasonInternalError, "", fmt.Sprintf(
			"The daemon gave an answer that is not understood (HTTP %d): see whether it is of the same version as this muxlet.", code))
	}
	return &apierrors.StatusError{ErrStatus: status}
}
