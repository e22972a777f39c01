// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

const (
	ours   = "11111111-1111-4111-8111-111111111111"
	theirs = "22222222-2222-4222-8222-222222222222"
)

func serverOf(pid int, instance string) Server {
	return Server{
		Process: Process{PID: pid, Ticks: uint64(pid) * 10}, StartTime: int64(pid),
		Socket: "/run/muxlet/tmux.sock", Version: "3.3a", Instance: instance,
	}
}

// answered is an answer of the given kind; a listing comes from server 1.
func answered(kind AnswerKind, instance string) Answer {
	a := Answer{Kind: kind, Message: "words of tmux"}
	if kind == AnswerListed {
		a.Message = ""
		a.Listing = Listing{Server: serverOf(1, instance), Panes: []Pane{{PaneID: "%0"}}}
	}
	return a
}

// A recorded server: none, the one that answers, or another.
var (
	none    *Server
	same    = func() *Server { s := serverOf(1, ours); return &s }()
	another = func() *Server { s := serverOf(2, ours); return &s }()
)

// C4, D1, D2, A6: every kind of answer, every recorded server, every judgement of its
// process.
func TestServerIsJudgedFromAnswerAndRecord(t *testing.T) {
	type row struct {
		kind     AnswerKind
		recorded *Server
		process  Liveness
		want     ServerState
		reason   string
		repair   Repair
		isNew    bool
	}
	rows := []row{
		{AnswerListed, none, LivenessUnknown, ServerRunning, "", RepairNone, true},
		{AnswerListed, none, Gone, ServerRunning, "", RepairNone, true},
		{AnswerListed, none, Running, ServerRunning, "", RepairNone, true},
		{AnswerListed, same, LivenessUnknown, ServerRunning, "", RepairNone, false},
		{AnswerListed, same, Gone, ServerRunning, "", RepairNone, false},
		{AnswerListed, same, Running, ServerRunning, "", RepairNone, false},
		{AnswerListed, another, LivenessUnknown, ServerUnknown, spec.ReasonProcessUnknown, RepairNone, false},
		{AnswerListed, another, Gone, ServerRunning, "", RepairNone, true},
		{AnswerListed, another, Running, ServerUnknown, spec.ReasonTwoServers, RepairSocket, false},
	}
	for _, silent := range []AnswerKind{AnswerNoSocket, AnswerRefused} {
		rows = append(rows,
			row{silent, none, LivenessUnknown, ServerNone, "", RepairNone, false},
			row{silent, none, Gone, ServerNone, "", RepairNone, false},
			row{silent, none, Running, ServerNone, "", RepairNone, false},
			row{silent, same, LivenessUnknown, ServerUnknown, spec.ReasonProcessUnknown, RepairNone, false},
			row{silent, same, Gone, ServerNone, "", RepairNone, false},
			row{silent, same, Running, ServerUnknown, spec.ReasonTmuxUnreachable, RepairSocket, false},
		)
	}
	for kind, reason := range map[AnswerKind]string{
		AnswerFailed: spec.ReasonTmuxFailed, AnswerTimeout: spec.ReasonTmuxTimeout,
		AnswerDenied: spec.ReasonTmuxDenied, AnswerNoBinary: spec.ReasonTmuxNotFound,
		AnswerMismatch: spec.ReasonTmuxMismatch, AnswerIncomplete: spec.ReasonListingIncomplete,
		AnswerKind(99): spec.ReasonTmuxFailed,
	} {
		for _, recorded := range []*Server{none, same, another} {
			for _, process := range []Liveness{LivenessUnknown, Gone, Running} {
				rows = append(rows, row{kind, recorded, process, ServerUnknown, reason, RepairNone, false})
			}
		}
	}
	for _, r := range rows {
		t.Run(fmt.Sprintf("kind %d, recorded %v, process %v", r.kind, r.recorded, r.process), func(t *testing.T) {
			a := answered(r.kind, ours)
			v := JudgeServer(a, r.recorded, r.process, ours)
			require.Equal(t, r.want, v.State)
			require.Equal(t, r.reason, v.Reason)
			require.Equal(t, r.repair, v.Repair)
			require.Equal(t, r.isNew, v.New)
			require.Equal(t, r.want == ServerUnknown, v.Message != "")
			if r.want == ServerRunning {
				require.Equal(t, a.Listing, v.Listing)
			} else {
				require.Empty(t, v.Listing)
			}
		})
	}
}

// X1: a tmux of before 3.6 says of a newer server that lives that it has exited.
func TestAServerThatIsSaidToHaveExitedAndRunsMayBeOfAnotherVersion(t *testing.T) {
	a := Answer{Kind: AnswerFailed, Message: "server exited unexpectedly"}
	for process, words := range map[Liveness]string{
		Running: "of another version", Gone: "proves nothing", LivenessUnknown: "proves nothing",
	} {
		v := JudgeServer(a, same, process, ours)
		require.Equal(t, ServerUnknown, v.State)
		require.Equal(t, spec.ReasonTmuxFailed, v.Reason)
		require.Contains(t, v.Message, words)
		require.Contains(t, v.Message, a.Message)
	}
}

// I3: a daemon with another state directory has a server of its own.
func TestForeignServerIsNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs string
		want         ServerState
	}{
		"theirs is another":        {ours, theirs, ServerUnknown},
		"theirs is ours":           {ours, ours, ServerRunning},
		"theirs is not set":        {ours, "", ServerRunning},
		"ours is not known yet":    {"", theirs, ServerRunning},
		"neither is known or set":  {"", "", ServerRunning},
		"theirs only starts alike": {ours, ours + "0", ServerUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			for _, recorded := range []*Server{none, another} {
				v := JudgeServer(answered(AnswerListed, c.theirs), recorded, Gone, c.ours)
				require.Equal(t, c.want, v.State)
				if c.want == ServerUnknown {
					require.Equal(t, spec.ReasonForeignServer, v.Reason)
					require.Contains(t, v.Message, c.theirs)
				}
			}
		})
	}
}

func TestServerWithThePidOfTheRecordedOneIsAnotherRun(t *testing.T) {
	recorded := serverOf(1, ours)
	recorded.StartTime++
	v := JudgeServer(answered(AnswerListed, ours), &recorded, Running, ours)
	require.Equal(t, ServerUnknown, v.State)
	require.Equal(t, spec.ReasonTwoServers, v.Reason)
}

// A server that was found in the process table has no start time yet: its
// process alone says that it is the recorded one.
func TestServerFoundInTheProcessTableIsTheRecordedOneByItsProcess(t *testing.T) {
	recorded := serverOf(1, ours)
	recorded.StartTime = 0
	require.Equal(t, ServerRunning, JudgeServer(answered(AnswerListed, ours), &recorded, Running, ours).State)
	recorded.Process.Ticks++
	require.Equal(t, ServerUnknown, JudgeServer(answered(AnswerListed, ours), &recorded, Running, ours).State)
}

// A server that dies while it is asked proves nothing in the pass that sees it.
func TestServerThatExitedWhileAskedIsUnknownInThisPass(t *testing.T) {
	a := Answer{Kind: AnswerFailed, Message: "server exited unexpectedly"}
	v := JudgeServer(a, same, Gone, ours)
	require.Equal(t, ServerUnknown, v.State)
	require.Contains(t, v.Message, "server exited unexpectedly")
}

func TestEmptyListingOfOurServerIsAListing(t *testing.T) {
	a := Answer{Kind: AnswerListed, Listing: Listing{Server: serverOf(1, ours)}}
	v := JudgeServer(a, same, Running, ours)
	require.Equal(t, ServerRunning, v.State)
	require.Empty(t, v.Listing.Panes)
}

func TestZeroValuesAreIgnorance(t *testing.T) {
	require.Equal(t, ServerUnknown, ServerView{}.State)
	require.Equal(t, LivenessUnknown, Lease{}.State)
	require.Equal(t, PresenceUnknown, Pane{}.State)
	require.Equal(t, AnswerFailed, Answer{}.Kind)
	require.Equal(t, RepairNone, ServerView{}.Repair)
}

func TestJudgementsHaveWords(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"Unknown": ServerUnknown, "None": ServerNone, "Running": ServerRunning, "ServerState(9)": ServerState(9),
		"Socket": RepairSocket, "Repair(9)": Repair(9), "Present": Present, "Absent": Absent, "Dead": Dead,
		"Presence(9)": Presence(9), "Gone": Gone, "Liveness(9)": Liveness(9), "7@9": Process{PID: 7, Ticks: 9},
	} {
		require.Equal(t, want, v.String())
	}
}
