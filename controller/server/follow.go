// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/spec"
)

const (
	// watchSilence is how long nothing may come from a daemon that was asked for
	// bookmarks before it is asked anew.
	watchSilence = bookmarkPeriod*2 + bookmarkPeriod/2
	// The pauses between two tries to reach a daemon grow from the first to the last.
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Follower is told what is there and what changes. An error of Listed or Changed
// ends the watch.
type Follower[T any] struct {
	// Listed gets what is there at the beginning, once.
	Listed func(objects []T) error
	// Changed gets each change after that: Added, Modified or Deleted.
	Changed func(kind watch.EventType, object *T) error
	// Lost is called when the daemon cannot be reached any more, and Back when it can
	// again. What was missed in between is told by Changed. Both may be nil.
	Lost func(err error)
	Back func()
}

// FollowSessions tells f of the sessions that match the selectors until ctx is
// done, whose error it returns. A daemon that cannot be reached at the beginning
// is an error; later it is waited for.
func (c *Client) FollowSessions(ctx context.Context, labelSelector, fieldSelector string, f Follower[spec.Session]) error {
	return follow(ctx, c, sessionsPath, selection(labelSelector, fieldSelector), f, func(ctx context.Context, parameters url.Values) ([]spec.Session, string, error) {
		var list spec.SessionList
		err := c.call(ctx, http.MethodGet, sessionsPath, parameters, &list)
		return list.Items, list.ResourceVersion, err
	})
}

// FollowEvents is the same for events.
func (c *Client) FollowEvents(ctx context.Context, fieldSelector string, f Follower[corev1.Event]) error {
	return follow(ctx, c, eventsPath, selection("", fieldSelector), f, func(ctx context.Context, parameters url.Values) ([]corev1.Event, string, error) {
		var list corev1.EventList
		err := c.call(ctx, http.MethodGet, eventsPath, parameters, &list)
		return list.Items, list.ResourceVersion, err
	})
}

func selection(labelSelector, fieldSelector string) url.Values {
	parameters := url.Values{}
	maps.Copy(parameters, query("labelSelector", labelSelector))
	maps.Copy(parameters, query("fieldSelector", fieldSelector))
	return parameters
}

// object is T with the methods of its pointer.
type object[T any] interface {
	*T
	Object
}

// following is one watch, over all its connections.
type following[T any, P object[T]] struct {
	*Client
	Follower[T]
	path       string
	parameters url.Values
	list       func(ctx context.Context, parameters url.Values) ([]T, string, error)
	// known are the objects as they were told last, by name.
	known map[string]P
	// version is where the watch goes on; empty: from a list.
	version string
	listed  bool
	lost    bool
}

// handlerError is one of the follower's own.
type handlerError struct{ error }

func follow[T any, P object[T]](ctx context.Context, c *Client, path string, parameters url.Values, f Follower[T], list func(context.Context, url.Values) ([]T, string, error)) error {
	w := &following[T, P]{Client: c, Follower: f, path: path, parameters: parameters, list: list, known: map[string]P{}}
	for pause := firstPause; ; {
		began := time.Now()
		err := w.once(ctx)
		if mine, ok := errors.AsType[handlerError](err); ok {
			return mine.error
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			w.version, err = "", nil
		}
		if err != nil {
			if !w.listed || !passing(err) {
				return err
			}
			w.away(err)
		}
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		if !pauseFor(ctx, pause) {
			return ctx.Err()
		}
		pause = min(2*pause, lastPause)
	}
}

// passing says whether trying again can help: nobody answers, or the daemon
// itself is not well. What it refuses it will refuse again.
func passing(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return !ok || status.ErrStatus.Code >= http.StatusInternalServerError
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (w *following[T, P]) away(err error) {
	if !w.lost && w.Lost != nil {
		w.Lost(err)
	}
	w.lost = true
}

func (w *following[T, P]) back() {
	if w.lost && w.Back != nil {
		w.Back()
	}
	w.lost = false
}

// once lists if it must, and then follows one connection to its end.
func (w *following[T, P]) once(ctx context.Context) error {
	if w.version == "" {
		objects, version, err := w.list(ctx, w.parameters)
		if err != nil {
			return err
		}
		w.back()
		if err := w.replace(objects); err != nil {
			return handlerError{err}
		}
		w.version = version
	}
	return w.stream(ctx)
}

// replace takes a list for what is there now, and tells how it differs from what
// was told before.
func (w *following[T, P]) replace(objects []T) error {
	before := w.known
	w.known = map[string]P{}
	for i := range objects {
		w.known[P(&objects[i]).GetName()] = &objects[i]
	}
	if !w.listed {
		w.listed = true
		return w.Listed(objects)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now, ok := w.known[name]; !ok || now.GetUID() != before[name].GetUID() {
			if err := w.Changed(watch.Deleted, before[name]); err != nil {
				return err
			}
			delete(before, name)
		}
	}
	for i := range objects {
		now := P(&objects[i])
		old, ok := before[now.GetName()]
		var err error
		switch {
		case !ok:
			err = w.Changed(watch.Added, now)
		case !equal[T, P](old, now):
			err = w.Changed(watch.Modified, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// equal compares what is served. Another run of the daemon gives the same
// objects other resourceVersions.
func equal[T any, P object[T]](a, b P) bool {
	if a.GetResourceVersion() == b.GetResourceVersion() {
		return true
	}
	x, y := *a, *b
	P(&x).SetResourceVersion("")
	P(&y).SetResourceVersion("")
	return apiequality.Semantic.DeepEqual(x, y)
}

// stream follows one connection. Nil: it has ended as it should.
func (w *following[T, P]) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(w.timeout, func() { cancel(errNoAnswer) })
	defer silence.Stop()
	parameters := url.Values{}
	maps.Copy(parameters, w.parameters)
	parameters.Set("watch", "true")
	parameters.Set("allowWatchBookmarks", "true")
	parameters.Set("resourceVersion", w.version)
	target := url.URL{Scheme: "http", Host: "muxlet", Path: w.path, RawQuery: parameters.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return fmt.Errorf("make a request to the daemon: %w", err)
	}
	response, err := w.http.Do(request)
	if err != nil {
		return w.explain(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest {
		data, err := io.ReadAll(response.Body)
		if err != nil {
			return w.explain(ctx, err)
		}
		return decodeError(response.StatusCode, data)
	}
	w.back()
	decoder := json.NewDecoder(response.Body)
	for {
		silence.Reset(watchSilence)
		var event metav1.WatchEvent
		if err := decoder.Decode(&event); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return w.explain(ctx, err)
		}
		if err := w.take(event); err != nil {
			return err
		}
	}
}

// take tells one event.
func (w *following[T, P]) take(event metav1.WatchEvent) error {
	kind := watch.EventType(event.Type)
	if kind == watch.Error {
		return decodeError(http.StatusInternalServerError, event.Object.Raw)
	}
	now := P(new(T))
	if err := json.Unmarshal(event.Object.Raw, now); err != nil {
		return fmt.Errorf("read the daemon's answer: %w", err)
	}
	w.version = now.GetResourceVersion()
	switch kind {
	case watch.Bookmark:
		return nil
	case watch.Deleted:
		delete(w.known, now.GetName())
	default:
		w.known[now.GetName()] = now
	}
	if err := w.Changed(kind, now); err != nil {
		return handlerError{err}
	}
	return nil
}
