// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/spec"
)

// full is a status in which everything is there.
func full() *spec.SessionStatus {
	at := metav1.NewTime(time.Unix(1_700_000_000, 0))
	code, yes, heard := int32(1), true, at
	return &spec.SessionStatus{
		Conversation: &spec.ConversationStatus{
			ID: "c", Resumable: &yes, History: []spec.PastConversation{{ID: "b", ReplacedAt: at}},
		},
		Activity:        &spec.ActivityStatus{State: spec.ActivityIdle, Since: at, ReportedAt: &heard, RetryTime: &at, AsksSince: &at, SeenAt: &at},
		Conditions:      []metav1.Condition{{Type: spec.ConditionReady, Message: "m", LastTransitionTime: at}},
		Client:          spec.ClientStatus{StartedAt: &at, Scope: &spec.ScopeStatus{}, Survivors: []int{1}, LastTermination: &spec.Termination{ExitCode: &code, FinishedAt: at}},
		Tmux:            &spec.TmuxStatus{},
		Source:          &spec.SourceStatus{},
		Evidence:        &spec.EvidenceStatus{ObservedAt: at, LastScreen: []string{"x"}},
		Decision:        &spec.DecisionStatus{At: at},
		NextAttemptTime: &at,
		LivenessProbe:   &spec.LivenessProbeStatus{Result: spec.ProbeFailed, LastProbeTime: at.DeepCopy(), NextProbeTime: at.DeepCopy()},
	}
}

// leaves calls visit with each value in v that is not made of others.
func leaves(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		visit(path, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		leaves(v.Elem(), path, visit)
	case reflect.Slice:
		for i := range v.Len() {
			leaves(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	default:
		visit(path, v)
	}
}

// alter makes another value of v.
func alter(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "another")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Struct:
		at, ok := v.Interface().(metav1.Time)
		require.True(t, ok)
		v.Set(reflect.ValueOf(metav1.NewTime(at.Add(time.Minute))))
	default:
		require.Fail(t, "status has a new kind of field: say how to change it", v.Kind())
	}
}

// A field that is added to the status and not compared would never reach those
// who watch.
func TestAChangeOfAnyFieldOfTheStatusIsAChange(t *testing.T) {
	n := 0
	leaves(reflect.ValueOf(full()), "status", func(path string, _ reflect.Value) {
		changed := full()
		leaves(reflect.ValueOf(changed), "status", func(p string, v reflect.Value) {
			if p == path {
				alter(t, v)
			}
		})
		n++
		heartbeat := slices.Contains([]string{
			"status.Evidence.ObservedAt", "status.Activity.ReportedAt", "status.LivenessProbe.LastProbeTime", "status.LivenessProbe.NextProbeTime",
		}, path)
		assert.Equal(t, heartbeat, sameStatus(full(), changed), path)
	})
	assert.GreaterOrEqual(t, n, 40)
	require.True(t, sameStatus(full(), full()))
	for _, missing := range []func(*spec.SessionStatus){
		func(s *spec.SessionStatus) { s.Tmux = nil },
		func(s *spec.SessionStatus) { s.Conversation = nil },
		func(s *spec.SessionStatus) { s.Conversation.Resumable = nil },
		func(s *spec.SessionStatus) { s.Activity = nil },
		func(s *spec.SessionStatus) { s.Activity.RetryTime = nil },
		func(s *spec.SessionStatus) { s.Decision = nil },
		func(s *spec.SessionStatus) { s.NextAttemptTime = nil },
		func(s *spec.SessionStatus) { s.Client.StartedAt = nil },
		func(s *spec.SessionStatus) { s.Client.Scope = nil },
		func(s *spec.SessionStatus) { s.Client.LastTermination = nil },
		func(s *spec.SessionStatus) { s.Client.LastTermination.ExitCode = nil },
		func(s *spec.SessionStatus) { s.Conditions = nil },
		func(s *spec.SessionStatus) { s.LivenessProbe = nil },
	} {
		other := full()
		missing(other)
		assert.False(t, sameStatus(full(), other))
		assert.False(t, sameStatus(other, full()))
	}
}

func TestWordsThatOnlyGrowOlderAreNoChange(t *testing.T) {
	for _, r := range []struct {
		a, b string
		same bool
	}{
		{"last seen 7s ago: pane Present", "last seen 1m0s ago: pane Present", true},
		{"unknown for 1.5s", "unknown for 250ms", true},
		{"the next start is in 12s", "the next start is in 5m0s", true},
		{"last seen 7s ago: pane Present", "last seen 7s ago: pane Absent", false},
		{"exited with status 1", "exited with status 2", false},
		{"pid 7 runs", "pid 8 runs", false},
		{"pane %7s", "pane %7t", false},
	} {
		assert.Equal(t, r.same, sameWords(r.a, r.b), "%s / %s", r.a, r.b)
	}
}

func TestOnlyAChangeIsPublished(t *testing.T) {
	c := bare(t, Options{})
	s := newSession("a")
	s.status = *full()
	c.sessions["a"] = s
	publish := func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.publish(s)
		return c.journals.Sessions.Revision()
	}
	first := publish()
	s.status = *full()
	s.status.Evidence.ObservedAt = metav1.Now()
	assert.Equal(t, first, publish(), "another look that saw the same")
	for name, change := range map[string]func(){
		"uid":        func() { s.rec.UID = "u" },
		"generation": func() { s.rec.Generation++ },
		"labels":     func() { s.rec.Labels = map[string]string{"k": "v"} },
		"created":    func() { s.rec.CreatedAt = time.Now() },
		"spec":       func() { s.rec.Spec = &spec.SessionSpec{Suspend: true} },
		"status":     func() { s.status.Client.Pid = 7 },
	} {
		before := c.journals.Sessions.Revision()
		change()
		after := publish()
		assert.NotEqual(t, before, after, name)
		served := c.object(s)
		assert.Equal(t, after, served.ResourceVersion, name)
	}
	s.rec.Spec = s.rec.Spec.DeepCopy()
	assert.Equal(t, c.journals.Sessions.Revision(), publish(), "an equal spec")
}

func TestWhatIsPublishedIsNotChangedAnyMore(t *testing.T) {
	c := bare(t, Options{})
	s := newSession("a")
	s.status = *full()
	s.rec.Labels = map[string]string{"k": "v"}
	c.publish(s)
	objects, _ := c.journals.Sessions.List()
	held := objects[0].DeepCopyObject()
	mine := c.object(s)
	mine.Labels["k"], mine.Status.Conditions[0].Message, mine.Status.Client.LastTermination.Reason = "w", "changed", "changed"
	s.status.Conditions[0].Message = "changed"
	assert.Equal(t, held, objects[0].DeepCopyObject())
}

func TestEventsThatAreLetGoAreDeletedForThoseWhoWatch(t *testing.T) {
	r, err := status.OpenRecorder(t.TempDir(), 2)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	require.NoError(t, r.Record(status.Event{Session: "a", Reason: "R", Message: "before"}))
	c := bare(t, Options{Recorder: r})
	for i := range 12 {
		require.NoError(t, r.Record(status.Event{Session: "a", Reason: fmt.Sprint(i), Message: "m", Last: time.Unix(int64(i), 0)}))
	}
	list := c.Events("a")
	require.Len(t, list.Items, 2)
	assert.Equal(t, []string{"10", "11"}, []string{list.Items[0].Reason, list.Items[1].Reason})
	assert.Equal(t, c.journals.Events.Revision(), list.ResourceVersion)
	before := list.Items[1].ResourceVersion
	require.NoError(t, r.Record(status.Event{Session: "a", Reason: "11", Message: "m", Last: time.Unix(12, 0)}))
	again := c.Events("a").Items[1]
	assert.Equal(t, int32(2), again.Count)
	assert.NotEqual(t, before, again.ResourceVersion)
	assert.Empty(t, c.Events("b").Items)
}

// A session at rest costs those who watch nothing, however often it is looked at.
func BenchmarkPublishAtRest(b *testing.B) {
	c := New(Options{Clock: clock.RealClock{}})
	defer c.queue.ShutDown()
	s := newSession("a")
	s.status = *full()
	for _, kind := range spec.ConditionTypes {
		s.status.Conditions = append(s.status.Conditions, metav1.Condition{Type: kind, Message: "the client runs what the spec says"})
	}
	c.publish(s)
	s.status = *s.status.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		c.publish(s)
	}
}
