// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// watchLimit ends a watch whose client has named no end.
	watchLimit = 30 * time.Minute
	// bookmarkPeriod is the time between two bookmarks. A client that has asked for
	// them may take their absence for a daemon that does not answer.
	bookmarkPeriod = time.Minute
	// watchBatch is the number of changes that are taken from the journal at once.
	watchBatch = 64
	// initialEventsEnd marks the bookmark after the initial objects.
	initialEventsEnd = metav1.InitialEventsAnnotationKey
)

// stopping is the key, in a request's context, of one that ends as soon as the
// daemon stops: the request's own lets what is in flight end.
type stopping struct{}

// stream is an answer that goes on.
type stream interface {
	serve(w http.ResponseWriter, r *http.Request)
}

// watching is one watch of one journal.
type watching struct {
	journal *Journal
	// matches is the selection.
	matches func(Object) bool
	// empty makes an object of the kind for a bookmark.
	empty func() Object
	// initial objects are sent first.
	initial []Object
	// announced says that a bookmark follows them.
	announced bool
	bookmarks bool
	// from is the revision after which changes are sent.
	from  uint64
	limit time.Duration
}

// watch reads what a list request with watch=true asks for.
func (a api) watch(c call, j *Journal, matches func(Object) bool, empty func() Object) (*watching, error) {
	w := &watching{journal: j, matches: matches, empty: empty}
	var err error
	if w.bookmarks, err = boolParameter(c, "allowWatchBookmarks"); err != nil {
		return nil, err
	}
	if w.limit, err = timeoutOf(c); err != nil {
		return nil, err
	}
	query := c.URL.Query()
	version := query.Get("resourceVersion")
	initial := version == "" || version == "0"
	if query.Has("sendInitialEvents") {
		if query.Get("resourceVersionMatch") != string(metav1.ResourceVersionMatchNotOlderThan) {
			return nil, badRequest("sendInitialEvents needs resourceVersionMatch=%s", metav1.ResourceVersionMatchNotOlderThan)
		}
		if initial, err = boolParameter(c, "sendInitialEvents"); err != nil {
			return nil, err
		}
		w.announced = initial && w.bookmarks
	}
	return w, w.start(version, initial)
}

// start finds out where the watch begins. What cannot be watched from is refused
// before anything is sent.
func (w *watching) start(version string, initial bool) error {
	w.from = 0
	if version != "" && version != "0" {
		revision, err := parseRevision(version)
		if err != nil {
			return err
		}
		if err := w.journal.reaches(revision); err != nil {
			return err
		}
		w.from = revision
	}
	if initial {
		w.initial, w.from = w.journal.list()
	} else if w.from == 0 {
		_, w.from = w.journal.list()
	}
	return nil
}

func timeoutOf(c call) (time.Duration, error) {
	text := c.URL.Query().Get("timeoutSeconds")
	if text == "" {
		return watchLimit, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds < 0 {
		return 0, badRequest("timeoutSeconds is %q: it must be a number of seconds", text)
	}
	if seconds == 0 {
		return watchLimit, nil
	}
	return time.Duration(seconds) * time.Second, nil
}

// serve sends events until the watch's time is over, the client is gone or takes
// nothing any more, it has fallen too far behind, or the daemon stops.
func (w *watching) serve(to http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), w.limit)
	defer cancel()
	if daemon, ok := r.Context().Value(stopping{}).(context.Context); ok {
		release := context.AfterFunc(daemon, cancel)
		defer release()
	}
	s := &sender{control: http.NewResponseController(to), encoder: json.NewEncoder(to)}
	s.encoder.SetEscapeHTML(false)
	// The request is read. Its deadline must not end the watch.
	if err := s.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	header := to.Header()
	header.Set("Content-Type", contentJSON)
	header.Set("Cache-Control", "no-store")
	to.WriteHeader(http.StatusOK)
	if err := w.run(ctx, s); err != nil {
		logr.FromContextOrDiscard(r.Context()).V(1).Info("Watch ended", "path", r.URL.Path, "err", err)
	}
}

// run sends the initial objects, then each change.
func (w *watching) run(ctx context.Context, s *sender) error {
	for _, object := range w.initial {
		if w.matches(object) {
			if err := s.send(watch.Added, object); err != nil {
				return err
			}
		}
	}
	w.initial = nil
	if w.announced {
		if err := s.send(watch.Bookmark, w.bookmark(map[string]string{initialEventsEnd: "true"})); err != nil {
			return err
		}
	}
	if err := s.flush(); err != nil {
		return err
	}
	ticker := time.NewTicker(bookmarkPeriod)
	defer ticker.Stop()
	room := make([]change, 0, watchBatch)
	for ctx.Err() == nil {
		wait, err := w.pass(s, room)
		if err != nil || wait == nil {
			if err != nil {
				return err
			}
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
		case <-ticker.C:
			if err := w.mark(s); err != nil {
				return err
			}
		}
	}
	// The last bookmark lets the client go on from here.
	return w.mark(s)
}

// pass sends the changes that there are, and gives what to wait for when there
// are none.
func (w *watching) pass(s *sender, room []change) (<-chan struct{}, error) {
	changes, upTo, wait, err := w.journal.since(w.from, room)
	if err != nil {
		status := statusOf(err)
		return nil, errors.Join(err, s.send(watch.Error, &status), s.flush())
	}
	w.from = upTo
	for _, c := range changes {
		kind, object := w.seen(c)
		if object == nil {
			continue
		}
		if err := s.send(kind, object); err != nil {
			return nil, err
		}
	}
	if len(changes) == 0 {
		return wait, nil
	}
	return nil, s.flush()
}

// seen is a change as it looks through the selection: what begins to match is
// added, and what no longer does is deleted.
func (w *watching) seen(c change) (watch.EventType, Object) {
	before := c.before != nil && w.matches(c.before)
	after := c.after != nil && w.matches(c.after)
	switch {
	case before && after:
		return watch.Modified, c.after
	case after:
		return watch.Added, c.after
	case before:
		last, ok := c.before.DeepCopyObject().(Object)
		if !ok {
			return "", nil
		}
		last.SetResourceVersion(format(c.revision))
		return watch.Deleted, last
	}
	return "", nil
}

func (w *watching) bookmark(annotations map[string]string) Object {
	object := w.empty()
	object.SetResourceVersion(format(w.from))
	object.SetAnnotations(annotations)
	return object
}

func (w *watching) mark(s *sender) error {
	if !w.bookmarks {
		return nil
	}
	if err := s.send(watch.Bookmark, w.bookmark(nil)); err != nil {
		return err
	}
	return s.flush()
}

// sender writes events to one connection. A peer that takes nothing for
// writeTimeout is given up.
type sender struct {
	control *http.ResponseController
	encoder *json.Encoder
}

func (s *sender) send(kind watch.EventType, object runtime.Object) error {
	err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return s.encoder.Encode(metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: object}})
}

func (s *sender) flush() error {
	err := s.control.Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
