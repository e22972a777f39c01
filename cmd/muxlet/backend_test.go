// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// fakeDaemon is a Backend in memory. What an intent does to a session is said
// by the test.
type fakeDaemon struct {
	mu       sync.Mutex
	sessions map[string]spec.Session
	classes  map[string]spec.ClientClass
	events   []corev1.Event
	screens  map[string]string
	previous map[string]string
	// frames are what a follower is told; then it waits. told counts them.
	frames []server.LogFrame
	told   int
	status server.DaemonStatus
	// transcript is the answer about that of any session.
	transcript    server.Transcript
	transcriptErr error
	held          []server.HeldRemoval
	asked         []string
	// diff is the answer to every request of diffs.
	diff      server.DiffResult
	diffError error
	diffs     []server.DiffRequest
	// on is called for an intent with the session that it is about, without the
	// lock; what it returns is the answer.
	on func(f *fakeDaemon, intent, name string) error
	// seen is called at each look at a session.
	seen     func(f *fakeDaemon, name string)
	journals *server.Journals
	fakeTurns
}

func newFakeDaemon(sessions ...spec.Session) *fakeDaemon {
	f := &fakeDaemon{sessions: map[string]spec.Session{}, classes: map[string]spec.ClientClass{}, screens: map[string]string{}, journals: server.NewJournals(noon, 0)}
	f.status.Manifests = []string{"/home/me/.config/muxlet/sessions"}
	f.status.Version = "v0.0.0-test"
	f.status.TmuxSocket = "/run/muxlet/tmux.sock"
	for _, s := range sessions {
		f.set(s)
	}
	return f
}

// set replaces what is known of a session.
func (f *fakeDaemon) set(s spec.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.TypeMeta = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindSession}
	f.journals.Sessions.Put(s.Name, s.DeepCopy())
	f.sessions[s.Name] = s
}

func (f *fakeDaemon) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, name)
	f.journals.Sessions.Delete(name)
}

// setClass replaces what is known of a client class.
func (f *fakeDaemon) setClass(c spec.ClientClass) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.TypeMeta = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindClientClass}
	f.journals.Classes.Put(c.Name, c.DeepCopy())
	f.classes[c.Name] = c
}

func (f *fakeDaemon) removeClass(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.classes, name)
	f.journals.Classes.Delete(name)
}

func (f *fakeDaemon) Classes() spec.ClientClassList {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := spec.ClientClassList{ListMeta: metav1.ListMeta{ResourceVersion: f.journals.Classes.Revision()}}
	for _, name := range slices.Sorted(maps.Keys(f.classes)) {
		all.Items = append(all.Items, f.classes[name])
	}
	return all
}

func (f *fakeDaemon) Class(name string) (spec.ClientClass, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.classes[name]; ok {
		return c, nil
	}
	return spec.ClientClass{}, server.NewClassNotFound(name)
}

func (f *fakeDaemon) DeleteClass(_ context.Context, name string) error {
	c, err := f.Class(name)
	if err == nil && c.Status.BuiltIn {
		return server.NewClassError(server.ReasonForbidden, name, "it is built in")
	}
	if err == nil {
		f.removeClass(name)
	}
	return err
}

func (f *fakeDaemon) Diff(_ context.Context, request server.DiffRequest) (server.DiffResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.diffs = append(f.diffs, request)
	return f.diff, f.diffError
}

// tell adds an event, or counts it once more.
func (f *fakeDaemon) tell(e corev1.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = slices.DeleteFunc(f.events, func(old corev1.Event) bool { return old.Name == e.Name })
	f.events = append(f.events, e)
	f.journals.Events.Put(e.Name, e.DeepCopy())
}

func (f *fakeDaemon) Journals() *server.Journals { return f.journals }

func (f *fakeDaemon) intents() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fakeDaemon) framesTold() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told
}

func (f *fakeDaemon) intent(intent, name string) error {
	f.mu.Lock()
	_, found := f.sessions[name]
	f.asked = append(f.asked, intent+" "+name)
	f.mu.Unlock()
	if !found {
		return server.NewNotFound(name)
	}
	if f.on == nil {
		return nil
	}
	return f.on(f, intent, name)
}

func (f *fakeDaemon) Sessions() spec.SessionList {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := spec.SessionList{ListMeta: metav1.ListMeta{ResourceVersion: f.journals.Sessions.Revision()}}
	for _, s := range f.sessions {
		all.Items = append(all.Items, *s.DeepCopy())
	}
	slices.SortFunc(all.Items, func(a, b spec.Session) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (f *fakeDaemon) Session(name string) (spec.Session, error) {
	if f.seen != nil {
		f.seen(f, name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, found := f.sessions[name]
	if !found {
		return spec.Session{}, server.NewNotFound(name)
	}
	return *s.DeepCopy(), nil
}

func (f *fakeDaemon) Events(session string) corev1.EventList {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: f.journals.Events.Revision()}}
	for _, e := range f.events {
		if session == "" || e.InvolvedObject.Name == session {
			events.Items = append(events.Items, e)
		}
	}
	return events
}

func (f *fakeDaemon) Delete(_ context.Context, name string) error { return f.intent("delete", name) }

func (f *fakeDaemon) SetSuspend(_ context.Context, name string, suspend bool) error {
	return f.intent(fmt.Sprintf("suspend=%v", suspend), name)
}

func (f *fakeDaemon) Resume(_ context.Context, name string, _ bool) error {
	return f.intent("resume", name)
}

func (f *fakeDaemon) Restart(_ context.Context, name string) error { return f.intent("restart", name) }

func (f *fakeDaemon) Terminate(_ context.Context, name string) error {
	return f.intent("terminate", name)
}

func (f *fakeDaemon) Screen(_ context.Context, name string, lines int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, found := f.sessions[name]; !found {
		return "", server.NewNotFound(name)
	}
	screen, found := f.screens[name]
	if !found {
		return "", server.NewError(server.ReasonTmuxUnavailable, name, fmt.Sprintf("session %q has no pane", name))
	}
	all := strings.Split(screen, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n"), nil
}

func (f *fakeDaemon) Transcript(_ context.Context, name string) (server.Transcript, error) {
	if _, err := f.Session(name); err != nil {
		return server.Transcript{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.transcript, f.transcriptErr
}

func (f *fakeDaemon) PreviousScreen(_ context.Context, name string, lines int) (string, error) {
	screen, found := f.previous[name]
	if !found {
		return "", server.NewError(server.ReasonNotFound, name, "no incarnation of it has ended yet")
	}
	all := strings.Split(screen, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n"), nil
}

func (f *fakeDaemon) Follow(ctx context.Context, name string, lines int, tell func(server.LogFrame) error) error {
	if err := f.intent(fmt.Sprintf("follow=%d", lines), name); err != nil {
		return err
	}
	f.mu.Lock()
	frames := slices.Clone(f.frames)
	f.mu.Unlock()
	for _, frame := range frames {
		if err := tell(frame); err != nil || frame.Removed {
			return err
		}
		f.mu.Lock()
		f.told++
		f.mu.Unlock()
	}
	<-ctx.Done()
	return ctx.Err()
}

func (f *fakeDaemon) Prune(_ context.Context, confirm bool) (server.PruneResult, error) {
	if confirm {
		return server.PruneResult{Removed: f.held}, nil
	}
	return server.PruneResult{WouldRemove: f.held}, nil
}

func (f *fakeDaemon) Status() server.DaemonStatus  { return f.status }
func (f *fakeDaemon) HealthChecks() []server.Check { return nil }
