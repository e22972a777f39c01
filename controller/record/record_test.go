// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const uid = "22222222-2222-4222-8222-222222222222"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// full is a record in which nothing is left out.
func full() Record {
	s := spec.SessionSpec{
		Client: spec.ClientSpec{
			Command: []string{"agent"}, Args: []string{"--model", "opus"}, ShellMode: spec.ShellNone,
			Env: []spec.EnvVar{
				{Name: "LOG", Value: "debug"},
				{Name: "KEY", ValueFrom: &spec.EnvVarSource{FileRef: &spec.FileRef{Path: "/key", Optional: true}}},
			},
			EnvFrom: []spec.EnvFromSource{{FileRef: &spec.FileRef{Path: "/env"}}},
		},
		Workspace: spec.WorkspaceSpec{Directory: "/work"},
		Suspend:   true,
	}
	spec.SetDefaults(&s)
	class := spec.ClientClassSpec{Start: spec.ClassCommand{Command: []string{"claude"}}, Env: s.Client.Env}
	spec.SetClassDefaults(&class)
	process := observe.Process{PID: 4711, Ticks: 1<<63 + 5}
	server := observe.Server{Process: process, StartTime: 1700000000, Socket: "/run/muxlet/tmux.sock", Version: "3.3a", Instance: "i"}
	return Record{
		UID: uid, Name: "shop", CreatedAt: now, Generation: 3, Spec: &s, Labels: map[string]string{"repo": "shop"}, File: "/m/shop.yaml", Held: "held", RemovedAt: now, LastFailed: "a3",
		Class: &class, ClassName: spec.ClassClaude, ClassRevision: "r1",
		Conversation: conversation("c2"), History: []PastConversation{{Conversation: *conversation("c1"), ReplacedAt: now, Reason: spec.ReplacedCleared}}, AdoptedID: "c0",
		Incarnation: 4,
		Attempt: &Attempt{
			ClassRevision: "r1", Resumes: "c2",
			ID: "a5", Incarnation: 5, Fence: FenceOpen, OpenedAt: now, Spec: s, Reason: spec.ReasonStartTimeout, Message: "late", ClosedAt: now,
			Demand: &Demand{Reason: spec.ReasonRestarting, At: now, Fresh: true}, Turn: "shop-7", Initial: true,
			Order: actuate.Order{
				Instance: "i", UID: uid, Session: "shop", Incarnation: 5, Attempt: "a5", Command: []string{"agent"}, Directory: "/work", Args: []string{"--model", "opus"},
				Class: &actuate.ClassOrder{
					Name: spec.ClassClaude, Variables: map[string]string{spec.VarConversationID: "c2"},
					ConfigDirectory: spec.ClassDirectory{Env: "CLAUDE_CONFIG_DIR", Default: "$(HOME)/.claude"},
					Env:             []spec.EnvVar{{Name: "COLORTERM", Value: "truecolor"}}, UnsetEnv: []string{"CLAUDECODE"},
					Resume: &actuate.ResumeOrder{
						ID: "c2", Reports: spec.ReportsClaude, Transcript: "/home/.claude/c2.jsonl", TranscriptPattern: "user", ConfigDirectory: "/home/.claude",
					},
				},
				Env: s.Client.Env, EnvFrom: s.Client.EnvFrom, ShellMode: spec.ShellNone, Base: []string{"PATH=/bin"},
				Scope: &actuate.ScopeOrder{
					Name: "muxlet-i-u-5.scope", Bus: "unix:path=/run/user/1/bus", Problem: "none", Slice: "muxlet.slice", Description: "muxlet session shop",
					MemoryBytes: 1 << 30, CPUMicroseconds: 500_000, Tasks: 100, StopTimeout: time.Second, Required: true,
				},
				PromptFile: "/state/turns/u/1.prompt", PromptArgs: []string{"$(PROMPT)"},
			},
		},
		Client: &Client{
			Incarnation: 4, Attempt: "a4", Process: process, Pane: "%3", PanePID: 4710, StartedAt: now, Launched: &s, Server: server,
			ClassRevision: "r1", Resumes: "c2", Directory: "/work", Home: "/home", ConfigDirectory: "/home/.claude", ReadyAt: now, Engine: observe.Process{PID: 101, Ticks: 1011},
			Demand: &Demand{Reason: spec.ReasonResumed, At: now, Fresh: true}, InitialDue: true,
			Scope: observe.Scope{Name: "muxlet-i-u-4.scope", ControlGroup: "/muxlet.slice/muxlet-i-u-4.scope"}, OOMKills: 1,
		},
		Stop: &Stop{
			Reason: StopTerminated, Process: process, PoliteAt: now, TermAt: now, KillAt: now, Descendants: []observe.Process{process}, TreeTermAt: now, TreeKillAt: now,
		},
		Intent: &Intent{Kind: IntentTerminate, Incarnation: 4, At: now}, Demand: &Demand{Reason: spec.ReasonResumed, At: now, Fresh: true},
		LastTermination: &Termination{Incarnation: 3, Exit: &observe.Exit{Code: 1, Signal: 9}, Reason: spec.ReasonKilled, Message: "ended by SIGKILL", At: now},
		Survivors:       []observe.Process{process},
		BackOff:         BackOff{Deaths: 2, LastDeathAt: now, BoughtAt: now},
		Latch:           &Latch{Reason: spec.ReasonTerminated, Message: "ended by a person", At: now},
		Block:           &Block{Reason: spec.ReasonCommandNotFound, Message: "not there", LookedFor: "agent", LookedIn: []string{"/bin"}, File: "/env", At: now},
	}
}

func conversation(id string) *Conversation {
	return &Conversation{
		ID: id, Source: spec.SourceReported, Class: spec.ClassClaude, Directory: "/work", Home: "/home", ConfigDirectory: "/home/.claude",
		BoundAt: now, Used: true, Begun: true, NotFound: 1,
	}
}

// small is a record of which gen tells the versions apart.
func small(gen int64) Record { return Record{UID: uid, Name: "shop", CreatedAt: now, Generation: gen} }

// A field that full leaves out would escape every test of this package.
func TestTheFullRecordLeavesNothingOut(t *testing.T) {
	visit(reflect.ValueOf(full()), "record", func(path string, v reflect.Value) {
		if strings.Contains(path, "Spec.") || strings.Contains(path, "Launched.") || strings.Contains(path, ".Env") || strings.Contains(path, "record.Class.") {
			return // what is in a spec is the business of package spec
		}
		require.False(t, v.IsZero(), path)
	})
}

// visit calls f for every field below v.
func visit(v reflect.Value, path string, f func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Elem(), path, f)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			name := path + "." + v.Type().Field(i).Name
			f(name, v.Field(i))
			visit(v.Field(i), name, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	default:
	}
}

func TestARecordSaysTheSameAfterItWasWritten(t *testing.T) {
	data, err := json.Marshal(full())
	require.NoError(t, err)
	var back Record
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, full(), back)
}

// A plan works on a copy. What it changes there never shows in the original.
func TestACopySharesNothing(t *testing.T) {
	original := full()
	copied := original.Copy()
	require.Equal(t, original, copied)
	seen := map[uintptr]string{}
	note := func(check bool) func(string, reflect.Value) {
		return func(path string, v reflect.Value) {
			switch v.Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Map:
				if v.IsNil() || v.Type() == reflect.TypeFor[*time.Location]() {
					return
				}
				if other, shared := seen[v.Pointer()]; check {
					require.False(t, shared, "%s is shared with %s", path, other)
				} else {
					seen[v.Pointer()] = path
				}
			default:
			}
		}
	}
	visit(reflect.ValueOf(original), "original", note(false))
	visit(reflect.ValueOf(copied), "copy", note(true))
}

func TestACopyOfAnEmptyRecordIsEmpty(t *testing.T) {
	require.Equal(t, Record{}, Record{}.Copy())
}

func TestRestartsAreCountedFromTheSecondIncarnationOn(t *testing.T) {
	for incarnation, want := range []int64{0, 0, 1, 2} {
		require.Equal(t, want, (&Record{Incarnation: int64(incarnation)}).RestartCount())
	}
}

// Restart and update leave the descendants; what is for good does not, nor does an
// attempt whose client never ran.
func TestDescendantsAreEndedWhereTheStopIsForGood(t *testing.T) {
	for reason, want := range map[StopReason]bool{
		StopSuspended: true, StopTerminated: true, StopRemoved: true, StopStartTimeout: true,
		StopRestarting: false, StopUpdating: false, StopOrphan: false, StopDuplicate: false, StopLeftover: false,
	} {
		require.Equal(t, want, reason.EndsTree(), reason)
	}
}

// The zero value of a fence forbids.
func TestAFenceIsClosedUnlessItSaysOpen(t *testing.T) {
	var a Attempt
	require.NoError(t, json.Unmarshal([]byte(`{"id":"a1"}`), &a))
	require.Equal(t, FenceClosed, a.Fence)
	require.Equal(t, int32(10), ptr.Deref(full().Spec.TerminationGracePeriodSeconds, 0))
}
