// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/spec"
)

// Request is what a person asks of one session.
type Request string

// The requests.
const (
	RequestResume Request = "Resume"
	// RequestFresh is RequestResume with a new conversation.
	RequestFresh Request = "ResumeFresh"
	// RequestAttach is RequestResume by a person who wants to see the client.
	RequestAttach    Request = "Attach"
	RequestRestart   Request = "Restart"
	RequestTerminate Request = "Terminate"
)

// Refusal is why a request was not accepted; the record is then unchanged. The
// reasons are the API's.
type Refusal struct{ Reason, Message string }

// The reasons of a refusal.
const (
	RefusedSuspended = "Suspended"
	RefusedRunning   = "AlreadyRunning"
)

// Apply writes a request down. It is bound to what the record holds now, so that
// a request about one incarnation never ends a later one. The last word counts:
// a client that is wanted again takes back a termination that is under way.
func Apply(in record.Record, req Request, now time.Time) (record.Record, Refusal) {
	rec := in.Copy()
	if r := refusalOf(&rec, req); r.Reason != "" {
		return in, r
	}
	switch req {
	case RequestResume, RequestFresh, RequestAttach:
		takeBackTerminate(&rec)
		rec.Demand = &record.Demand{Reason: demandReason(req), At: now, Fresh: req == RequestFresh}
		if req == RequestFresh && rec.Intent == nil && goesOn(&rec) {
			// Its termination was taken back, and the client has the old conversation.
			rec.Intent = &record.Intent{Kind: record.IntentRestart, Incarnation: highest(&rec), At: now}
		}
	case RequestRestart:
		if rec.Client != nil {
			rec.Intent = &record.Intent{Kind: record.IntentRestart, Incarnation: rec.Client.Incarnation, At: now}
			break
		}
		takeBackTerminate(&rec)
		if rec.Attempt == nil {
			rec.Demand = &record.Demand{Reason: spec.ReasonRestarting, At: now}
		}
	case RequestTerminate:
		rec.Intent = &record.Intent{Kind: record.IntentTerminate, Incarnation: highest(&rec), At: now}
		rec.Demand = nil
	}
	return rec, Refusal{}
}

// refusalOf is why a request cannot be accepted; zero when it can.
func refusalOf(rec *record.Record, req Request) Refusal {
	running := rec.Client != nil || rec.Attempt != nil
	resumes := req == RequestResume || req == RequestFresh || req == RequestAttach
	switch {
	case (resumes || req == RequestRestart) && rec.Spec != nil && rec.Spec.Suspend:
		return Refusal{RefusedSuspended, "spec.suspend is true"}
	case resumes && running && rec.Stop == nil && rec.Intent == nil:
		return Refusal{RefusedRunning, "it runs or is starting already"}
	}
	return Refusal{}
}

func demandReason(req Request) string {
	if req == RequestAttach {
		return spec.ReasonAttached
	}
	return spec.ReasonResumed
}

// goesOn says whether a client runs, or is about to, that nobody ends.
func goesOn(rec *record.Record) bool {
	if rec.Client == nil {
		return rec.Attempt != nil && rec.Attempt.Fence == record.FenceOpen
	}
	return rec.Stop == nil || rec.Stop.Process != rec.Client.Process
}

// highest is the number of the incarnation that runs or is about to.
func highest(rec *record.Record) int64 {
	if rec.Attempt != nil {
		return max(rec.Incarnation, rec.Attempt.Incarnation)
	}
	return rec.Incarnation
}

func takeBackTerminate(rec *record.Record) {
	if rec.Intent != nil && rec.Intent.Kind == record.IntentTerminate {
		rec.Intent = nil
	}
}
