// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// Write writes a file below the manifest directory, in one step.
func (e *Env) Write(file, text string) {
	e.Helper()
	path := filepath.Join(e.Manifests, file)
	hidden := filepath.Join(e.Manifests, "."+file+".tmp")
	err := os.WriteFile(hidden, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		e.Fatalf("write manifest: %v", err)
	}
}

// Remove removes a file from the manifest directory.
func (e *Env) Remove(file string) {
	e.Helper()
	if err := os.Remove(filepath.Join(e.Manifests, file)); err != nil {
		e.Fatalf("remove manifest: %v", err)
	}
}

// Fake is a Session with a fake client, not applied yet: without a shell, in the
// world's own workspace.
func (e *Env) Fake(name string, script Script) *spec.Session {
	e.Helper()
	s := &spec.Session{}
	s.Name = name
	s.Spec.Client = spec.ClientSpec{Command: e.Command(script), ShellMode: spec.ShellNone}
	s.Spec.Workspace.Directory = e.Work
	s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](10)
	return s
}

// Document is the session as YAML.
func (e *Env) Document(s *spec.Session) string {
	e.Helper()
	metadata := map[string]any{"name": s.Name}
	if len(s.Labels) > 0 {
		metadata["labels"] = s.Labels
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": spec.GroupVersion.String(), "kind": spec.KindSession, "metadata": metadata, "spec": s.Spec,
	})
	if err != nil {
		e.Fatalf("encode session: %v", err)
	}
	return string(text)
}

// Apply writes the session's document to the file <name>.yaml.
func (e *Env) Apply(s *spec.Session) {
	e.Helper()
	e.Write(s.Name+".yaml", e.Document(s))
}

// Delete removes the file <name>.yaml.
func (e *Env) Delete(name string) {
	e.Helper()
	e.Remove(name + ".yaml")
}

// Run applies sessions with fake clients that run until they are ended, and waits
// until they run.
func (e *Env) Run(names ...string) {
	e.Helper()
	for _, name := range names {
		e.Apply(e.Fake(name, Script{}))
	}
	for _, name := range names {
		e.WaitFor(name, Running)
	}
}

// Session is what the controller says of a session; ok is false when it knows
// none of that name.
func (e *Env) Session(name string) (s spec.Session, ok bool) {
	e.Helper()
	s, err := e.Controller().Session(name)
	if server.ReasonOf(err) == server.ReasonNotFound {
		return s, false
	}
	if err != nil {
		e.Fatalf("session %s: %v", name, err)
	}
	return s, true
}

// Events of a session with the reason, as the controller tells them.
func (e *Env) Events(session, reason string) []corev1.Event {
	e.Helper()
	var out []corev1.Event
	for _, event := range e.Controller().Events(session).Items {
		if event.Reason == reason {
			out = append(out, event)
		}
	}
	return out
}

// Record is the session's record on disk.
func (e *Env) Record(name string) record.Record {
	e.Helper()
	s, ok := e.Session(name)
	if !ok {
		e.Fatalf("there is no session %s", name)
	}
	r, err := record.NewStore(e.State).Read(string(s.UID))
	if err != nil {
		e.Fatalf("read the record of %s: %v", name, err)
	}
	return r
}

// Records counts the records on disk.
func (e *Env) Records() int {
	e.Helper()
	files, err := filepath.Glob(filepath.Join(e.State, "records", "*.json"))
	if err != nil {
		e.Fatalf("list records: %v", err)
	}
	return len(files)
}

// Check is something that a session can be.
type Check struct {
	// Words complete "the session …".
	Words string
	Holds func(spec.Session) bool
}

// Running is a client that runs in its pane while nothing else is going on.
var Running = Check{"runs", func(s spec.Session) bool {
	return spec.DisplayStatus(&s) == spec.StatusRunning && s.Status.Client.Ready && s.Status.Client.Pid > 0 &&
		s.Status.Decision != nil && (s.Status.Decision.Reason == spec.ReasonRunning || s.Status.Decision.Reason == spec.ReasonReady)
}}

// Incarnation runs: that one and no other.
func Incarnation(n int64) Check {
	return Check{fmt.Sprintf("runs as incarnation %d", n), func(s spec.Session) bool {
		return Running.Holds(s) && s.Status.Client.Incarnation == n
	}}
}

// Shows is the word of the STATUS column.
func Shows(word spec.Status) Check {
	return Check{"shows " + string(word), func(s spec.Session) bool { return spec.DisplayStatus(&s) == word }}
}

// Because is the reason of the last decision.
func Because(reason string) Check {
	return Check{"was decided upon because of " + reason, func(s spec.Session) bool {
		return s.Status.Decision != nil && s.Status.Decision.Reason == reason
	}}
}

// Condition has a status, and a reason unless that is empty.
func Condition(kind string, status metav1.ConditionStatus, reason string) Check {
	return Check{fmt.Sprintf("has condition %s=%s %s", kind, status, reason), func(s spec.Session) bool {
		c := meta.FindStatusCondition(s.Status.Conditions, kind)
		return c != nil && c.Status == status && (reason == "" || c.Reason == reason)
	}}
}

// WaitFor waits until the session is all of what is checked, and returns it.
func (e *Env) WaitFor(name string, checks ...Check) spec.Session {
	e.Helper()
	words := make([]string, len(checks))
	for i, c := range checks {
		words[i] = c.Words
	}
	var s spec.Session
	e.Eventually("session "+name+" "+strings.Join(words, ", "), func() bool {
		var ok bool
		s, ok = e.Session(name)
		for _, c := range checks {
			ok = ok && c.Holds(s)
		}
		return ok
	})
	return s
}

// WaitNoSession waits until the controller knows no session of that name.
func (e *Env) WaitNoSession(name string) {
	e.Helper()
	e.Eventually("session "+name+" is forgotten", func() bool {
		_, ok := e.Session(name)
		return !ok
	})
}

// sessions says how each session is, for a test that fails.
func (e *Env) sessions() string {
	if e.running == nil {
		return "no controller runs"
	}
	var b strings.Builder
	for _, s := range e.running.Sessions().Items {
		fmt.Fprintf(&b, "%s: %s incarnation=%d pid=%d", s.Name, spec.DisplayStatus(&s), s.Status.Client.Incarnation, s.Status.Client.Pid)
		if d := s.Status.Decision; d != nil {
			fmt.Fprintf(&b, " rule=%s action=%s reason=%s: %s", d.Rule, d.Action, d.Reason, d.Message)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Holds is a condition for Always and Eventually: the session is what is checked.
func Holds(e *Env, name string, check Check) func() bool {
	return func() bool {
		s, ok := e.Session(name)
		return ok && check.Holds(s)
	}
}
