// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// Events that are alike are joined once there are similarLimit of them within
// similarWindow, so that one crash loop does not push out everything else.
const (
	similarLimit  = 5
	similarWindow = 10 * time.Minute
	// maxMessage bounds the message of an event, in bytes: a person's own words may be in
	// it, such as a path.
	maxMessage = 4 << 10
)

// Event is one thing that happened to a session, or to muxlet as a whole when
// Session is empty.
type Event struct {
	ID      int64     `json:"id"`
	Session string    `json:"session,omitempty"`
	UID     string    `json:"uid,omitempty"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Recorder keeps a bounded number of events, in memory and in a file of one
// JSON object a line, so that they outlive the daemon. A line is appended
// without fsync: an event is a courtesy, and a power cut may cost the last ones.
// It is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	path   string
	limit  int
	events []*Event
	nextID int64
	file   *os.File
	lines  int
	// kept and dropped are told of each change.
	kept    func(Event)
	dropped func(id int64)
}

// OpenRecorder reads the events below the state directory and keeps at most
// limit of them. Lines that do not parse are passed over.
func OpenRecorder(stateDir string, limit int) (*Recorder, error) {
	dir := filepath.Join(stateDir, "events")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make events directory: %w", err)
	}
	if err := durable.Sweep(dir, time.Time{}); err != nil {
		return nil, err
	}
	r := &Recorder{path: filepath.Join(dir, "events.jsonl"), limit: max(limit, 1), nextID: 1}
	data, err := os.ReadFile(r.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read events: %w", err)
	}
	r.load(data)
	if err := r.compact(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Recorder) load(data []byte) {
	byID := map[int64]*Event{}
	for line := range bytes.Lines(data) {
		e := &Event{}
		if json.Unmarshal(line, e) != nil || e.ID <= 0 {
			continue
		}
		e.Message = shortened(e.Message)
		if old, ok := byID[e.ID]; ok {
			*old = *e
			continue
		}
		byID[e.ID] = e
		r.events = append(r.events, e)
		r.nextID = max(r.nextID, e.ID+1)
	}
	r.trim()
}

// trim drops what is too much: each time the oldest event of the session that has
// the most, so that one that goes on and on pushes out its own events only.
func (r *Recorder) trim() {
	if len(r.events) <= r.limit {
		return
	}
	var sessions []string
	count, drop := map[string]int{}, map[string]int{}
	for _, e := range r.events {
		if count[e.Session] == 0 {
			sessions = append(sessions, e.Session)
		}
		count[e.Session]++
	}
	for extra := len(r.events) - r.limit; extra > 0; extra-- {
		most := slices.MaxFunc(sessions, func(a, b string) int { return count[a] - count[b] })
		count[most]--
		drop[most]++
	}
	r.events = slices.DeleteFunc(r.events, func(e *Event) bool {
		drop[e.Session]--
		if drop[e.Session] >= 0 && r.dropped != nil {
			r.dropped(e.ID)
		}
		return drop[e.Session] >= 0
	})
}

// compact rewrites the file with what is kept, and opens it for appending.
func (r *Recorder) compact() error {
	var out bytes.Buffer
	for _, e := range r.events {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		out.Write(append(line, '\n'))
	}
	if err := durable.WriteFile(r.path, out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open events: %w", err)
	}
	if r.file != nil {
		err = r.file.Close()
	}
	r.file, r.lines = f, len(r.events)
	return err
}

// Record adds an event. The error is about the file only: the event is kept in
// memory all the same.
func (r *Recorder) Record(e Event) error {
	e.Message = shortened(e.Message)
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.join(e)
	if r.kept != nil {
		r.kept(*kept)
	}
	line, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if r.file == nil {
		return errors.New("events file is closed")
	}
	if r.lines >= 2*r.limit {
		return r.compact()
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	r.lines++
	return nil
}

// shortened is a message within its bound.
func shortened(message string) string {
	const cut = "…"
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-len(cut)], "") + cut
}

// join adds e, or counts it on one that says the same, or on the newest of many
// that are like it.
func (r *Recorder) join(e Event) *Event {
	similar := 0
	var newest *Event
	for i := len(r.events) - 1; i >= 0; i-- {
		old := r.events[i]
		if old.Session != e.Session || old.Reason != e.Reason || old.Type != e.Type || e.Last.Sub(old.Last) > similarWindow {
			continue
		}
		if newest == nil {
			newest = old
		}
		similar++
		if old.Message == e.Message {
			old.Last = e.Last
			old.Count++
			return old
		}
	}
	if similar >= similarLimit {
		newest.Message, newest.Last = e.Message, e.Last
		newest.Count++
		return newest
	}
	e.ID, e.Count = r.nextID, 1
	e.First = e.Last
	r.nextID++
	r.events = append(r.events, &e)
	r.trim()
	return &e
}

// SetLimit changes how many events are kept; the oldest are dropped from now on.
func (r *Recorder) SetLimit(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = max(limit, 1)
	r.trim()
}

// Follow tells kept of every event that there is, and from then on of each that
// is added or counted, and dropped of the ids of those that are let go. Both are
// called while the recorder is locked: they must not call it.
func (r *Recorder) Follow(kept func(Event), dropped func(id int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		kept(*e)
	}
	r.kept, r.dropped = kept, dropped
}

// List returns copies of the events of one session, or all when session is
// empty, in the order of their last occurrence.
func (r *Recorder) List(session string) []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Event
	for _, e := range r.events {
		if session == "" || e.Session == session {
			out = append(out, *e)
		}
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.Last.Compare(b.Last) })
	return out
}

// Close closes the file.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.file
	r.file = nil
	if f == nil {
		return nil
	}
	return f.Close()
}

// Object is the event as the API serves it.
func (e Event) Object() corev1.Event {
	kind := spec.KindSession
	if e.Session == "" {
		kind = "Daemon"
	}
	return corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("event-%d", e.ID), Namespace: spec.Namespace, CreationTimestamp: metav1.NewTime(e.First)},
		InvolvedObject: corev1.ObjectReference{APIVersion: spec.GroupVersion.String(), Kind: kind, Namespace: spec.Namespace, Name: e.Session, UID: types.UID(e.UID)},
		Type:           e.Type, Reason: e.Reason, Message: e.Message, Count: e.Count,
		FirstTimestamp: metav1.NewTime(e.First), LastTimestamp: metav1.NewTime(e.Last),
		Source: corev1.EventSource{Component: "muxlet"},
	}
}
