// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muxlet/muxlet/spec"
)

var epoch = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// fakeBackend keeps sessions in memory and writes down what was asked of it.
type fakeBackend struct {
	mu       sync.Mutex
	sessions map[string]*spec.Session
	classes  map[string]*spec.ClientClass
	turns    map[string]*spec.Turn
	asked    []string
	// fail is the answer to everything that changes something.
	fail error
	// failResume is the answer to Resume alone.
	failResume error
	// frames are sent to who follows; then it waits.
	frames []LogFrame
	// hook runs in every method first.
	hook     func(method string)
	checks   []Check
	journals *Journals
}

func newFake(names ...string) *fakeBackend {
	f := &fakeBackend{sessions: map[string]*spec.Session{}, classes: map[string]*spec.ClientClass{}, turns: map[string]*spec.Turn{}, journals: newJournals(epoch, 7, 8, 8)}
	for i, name := range names {
		f.put(&spec.Session{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: spec.Namespace, UID: types.UID(fmt.Sprintf("uid-%d", i)),
				CreationTimestamp: metav1.NewTime(epoch), Labels: map[string]string{"number": fmt.Sprint(i)},
			},
			Spec: spec.SessionSpec{ClientClassName: spec.ClassExec},
		})
	}
	return f
}

// put serves a session, and tells those who watch.
func (f *fakeBackend) put(s *spec.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.TypeMeta = sessionTypeMeta
	f.sessions[s.Name] = s
	f.journals.Sessions.Put(s.Name, s)
}

// change puts a changed copy of a session.
func (f *fakeBackend) change(name string, change func(*spec.Session)) {
	f.mu.Lock()
	s := f.sessions[name].DeepCopy()
	f.mu.Unlock()
	change(s)
	f.put(s)
}

func (f *fakeBackend) drop(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, name)
	f.journals.Sessions.Delete(name)
}

func (f *fakeBackend) Journals() *Journals { return f.journals }

func (f *fakeBackend) note(method string, args ...any) error {
	if f.hook != nil {
		f.hook(method)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprint(append([]any{method}, args...)...))
	return f.fail
}

func (f *fakeBackend) calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.asked...)
}

func (f *fakeBackend) Sessions() spec.SessionList {
	if f.hook != nil {
		f.hook("Sessions")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := spec.SessionList{ListMeta: metav1.ListMeta{ResourceVersion: f.journals.Sessions.Revision()}}
	for _, name := range slices.Sorted(maps.Keys(f.sessions)) {
		all.Items = append(all.Items, *f.sessions[name].DeepCopy())
	}
	return all
}

func (f *fakeBackend) Session(name string) (spec.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.sessions[name]; ok {
		return *s.DeepCopy(), nil
	}
	return spec.Session{}, NewNotFound(name)
}

func (f *fakeBackend) putClass(c *spec.ClientClass) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.TypeMeta = classTypeMeta
	f.classes[c.Name] = c
	f.journals.Classes.Put(c.Name, c)
}

func (f *fakeBackend) Classes() spec.ClientClassList {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := spec.ClientClassList{ListMeta: metav1.ListMeta{ResourceVersion: f.journals.Classes.Revision()}}
	for _, name := range slices.Sorted(maps.Keys(f.classes)) {
		all.Items = append(all.Items, *f.classes[name].DeepCopy())
	}
	return all
}

func (f *fakeBackend) Class(name string) (spec.ClientClass, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.classes[name]; ok {
		return *c.DeepCopy(), nil
	}
	return spec.ClientClass{}, NewClassNotFound(name)
}

func (f *fakeBackend) DeleteClass(_ context.Context, name string) error {
	return f.note("DeleteClass:", name)
}

func (f *fakeBackend) Events(session string) corev1.EventList {
	_ = f.note("Events:", session)
	events := corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: f.journals.Events.Revision()}}
	for i, name := range []string{"a", "b", "a"} {
		if session == "" || session == name {
			events.Items = append(events.Items, corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("event-%d", i), Namespace: spec.Namespace},
				InvolvedObject: corev1.ObjectReference{Kind: spec.KindSession, Name: name},
				Type:           corev1.EventTypeNormal, Reason: fmt.Sprintf("Reason%d", i),
			})
		}
	}
	return events
}

func (f *fakeBackend) Delete(_ context.Context, name string) error { return f.note("Delete:", name) }

func (f *fakeBackend) SetSuspend(_ context.Context, name string, suspend bool) error {
	if err := f.note("SetSuspend:", name, ":", suspend); err != nil {
		return err
	}
	if s, ok := f.sessions[name]; ok {
		s.Spec.Suspend = suspend
		return nil
	}
	return NewNotFound(name)
}

func (f *fakeBackend) Resume(_ context.Context, name string, fresh bool) error {
	if err := f.note("Resume:", name, ":", fresh); err != nil {
		return err
	}
	return f.failResume
}

func (f *fakeBackend) Restart(_ context.Context, name string) error {
	return f.note("Restart:", name)
}

func (f *fakeBackend) Terminate(_ context.Context, name string) error {
	return f.note("Terminate:", name)
}

func (f *fakeBackend) Screen(_ context.Context, name string, lines int) (string, error) {
	return "<one> & two\n", f.note("Screen:", name, ":", lines)
}

func (f *fakeBackend) Transcript(_ context.Context, name string) (Transcript, error) {
	if _, err := f.Session(name); err != nil {
		return Transcript{}, err
	}
	return Transcript{Conversation: "c1", Path: "/t/c1.jsonl", Reports: spec.ReportsClaude}, nil
}

func (f *fakeBackend) PreviousScreen(_ context.Context, name string, lines int) (string, error) {
	return "before\n", f.note("PreviousScreen:", name, ":", lines)
}

func (f *fakeBackend) Follow(ctx context.Context, name string, lines int, tell func(LogFrame) error) error {
	if err := f.note("Follow:", name, ":", lines); err != nil {
		return err
	}
	for _, frame := range f.frames {
		if err := tell(frame); err != nil || frame.Removed {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (f *fakeBackend) Prune(_ context.Context, confirm bool) (PruneResult, error) {
	err := f.note("Prune:", confirm)
	held := []HeldRemoval{{Name: "a", Message: "the directory is empty"}}
	if confirm {
		return PruneResult{Removed: held}, err
	}
	return PruneResult{WouldRemove: held}, err
}

func (f *fakeBackend) Status() DaemonStatus {
	if f.hook != nil {
		f.hook("Status")
	}
	return DaemonStatus{Version: "v1", PID: 42, StartedAt: metav1.NewTime(epoch), Manifests: []string{"/m"}}
}

func (f *fakeBackend) HealthChecks() []Check { return f.checks }

// ask sends one request straight to the handler.
func ask(t *testing.T, backend Backend, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	recorder := httptest.NewRecorder()
	Handler(backend).ServeHTTP(recorder, httptest.NewRequest(method, target, http.NoBody))
	return recorder
}

// socketPath is short enough for a Unix socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mx")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "muxlet.sock")
}

// serve starts the API on a socket of its own until the test ends.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	path := socketPath(t)
	l, err := Listen(path)
	require.NoError(t, err)
	serveOn(t, context.Background(), l, h)
	return path
}

func serveOn(t *testing.T, ctx context.Context, l net.Listener, h http.Handler) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, h) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
}

// logLines collects log lines and puts a logger for them into a context.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) in(ctx context.Context) context.Context {
	return logr.NewContext(ctx, funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, args)
	}, funcr.Options{}))
}

func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.lines...)
}

var errBoom = errors.New("boom")

func (f *fakeBackend) Diff(_ context.Context, request DiffRequest) (DiffResult, error) {
	if err := f.note("Diff", len(request.Files)); err != nil {
		return DiffResult{}, err
	}
	var result DiffResult
	for _, file := range request.Files {
		result.Sessions = append(result.Sessions, SessionDiff{Name: string(file.Content), File: file.Path, Effect: spec.Effect{Kind: spec.EffectStarted}})
	}
	return result, nil
}
