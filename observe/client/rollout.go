// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	// firstTail and maxTail are how much of a rollout's end is read, in bytes: the last
	// event of a turn lies there, behind what the tools have printed since.
	firstTail = 64 << 10
	maxTail   = 8 << 20
	// maxMeta bounds the first line of a rollout.
	maxMeta = 1 << 20
)

// turn is what a rollout says of the last turn. It has no text of it.
type turn struct {
	// startedAt is when it began, endedAt when it ended; endedAt is zero while it goes
	// on.
	startedAt, endedAt time.Time
	// interrupted: a person has ended it, so that it neither went well nor failed.
	interrupted bool
	failure     *observe.Failure
	// subordinate: the thread belongs to an agent that another one has started.
	subordinate bool
}

// files is what that means.
func (t turn) files() observe.Files {
	switch {
	case t.interrupted:
		return observe.Files{Activity: spec.ActivityIdle, ActivityAt: t.endedAt}
	case !t.endedAt.IsZero():
		return observe.Files{Activity: spec.ActivityIdle, ActivityAt: t.endedAt, TurnAt: t.endedAt, Failure: t.failure}
	case !t.startedAt.IsZero():
		return observe.Files{Activity: spec.ActivityWorking, ActivityAt: t.startedAt}
	}
	return observe.Files{Activity: spec.ActivityUnknown}
}

// rolloutLine is what counts of one line of a rollout (codex 0.171.0). What the
// lines of other types hold is not read.
type rolloutLine struct {
	Timestamp time.Time `json:"timestamp"`
	Type      string    `json:"type"`
	Payload   struct {
		Type  string        `json:"type"`
		Error *rolloutError `json:"error"`
		// DurationMS is how long a turn took that has ended, in milliseconds.
		DurationMS int64 `json:"duration_ms"`
	} `json:"payload"`
}

// rolloutError is why a turn has failed.
type rolloutError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codex_error_info"`
}

// lastTurn reads the end of a rollout.
func (e *Eyes) lastTurn(name string) turn {
	info, err := e.files().Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return turn{}
	}
	if t, known := e.memory.turnOf(name, info); known {
		return t
	}
	f, err := e.files().Open(name)
	if err != nil {
		return turn{}
	}
	defer f.Close()
	t, err := readTurn(f, info.Size())
	if err == nil {
		e.memory.keepTurn(name, info, t)
	}
	return t
}

func readTurn(f io.ReaderAt, length int64) (turn, error) {
	t := turn{subordinate: isSubordinate(io.NewSectionReader(f, 0, maxMeta))}
	for size := int64(firstTail); ; size *= 4 {
		from := max(0, length-size)
		tail, err := io.ReadAll(io.NewSectionReader(f, from, size))
		if err != nil {
			return turn{}, err
		}
		if t.read(tail, from == 0) || from == 0 || size >= maxTail {
			return t, nil
		}
	}
}

// read takes the last event of a turn in the tail; false when it has none. The first
// line is cut off unless whole, the last one may be being written.
func (t *turn) read(tail []byte, whole bool) bool {
	for len(tail) > 0 {
		at := bytes.LastIndexByte(tail, '\n')
		if at < 0 && !whole {
			return false
		}
		line := bytes.Trim(tail[at+1:], "\x00")
		tail = tail[:max(at, 0)]
		if !bytes.Contains(line, []byte(`"event_msg"`)) {
			continue
		}
		var l rolloutLine
		if json.Unmarshal(line, &l) == nil && l.Type == "event_msg" && t.take(l) {
			return true
		}
	}
	return false
}

// take returns whether the line is an event of a turn.
func (t *turn) take(l rolloutLine) bool {
	switch l.Payload.Type {
	case "task_started":
		t.startedAt = l.Timestamp.Local()
	case "task_complete", "turn_aborted":
		// Times of day in a message are those of this place.
		t.endedAt, t.interrupted = l.Timestamp.Local(), l.Payload.Type == "turn_aborted"
		t.startedAt = t.endedAt.Add(-time.Duration(max(0, l.Payload.DurationMS)) * time.Millisecond)
		if l.Payload.Error != nil {
			t.failure = l.Payload.Error.failure(t.endedAt)
		}
	default:
		return false
	}
	return true
}

// isSubordinate reads the first line of a rollout, whose thread_source is user for a
// thread that a person talks to. The line is some 20 KiB long.
func isSubordinate(r io.Reader) bool {
	var l struct {
		Type    string `json:"type"`
		Payload struct {
			ThreadSource string `json:"thread_source"`
		} `json:"payload"`
	}
	if json.NewDecoder(r).Decode(&l) != nil || l.Type != "session_meta" {
		return false
	}
	return l.Payload.ThreadSource != "" && l.Payload.ThreadSource != "user"
}

// failure says what kind it is. The message is read for it and not kept.
func (e *rolloutError) failure(at time.Time) *observe.Failure {
	f := observe.FailureOfError(errorKind(e.Info), e.Message, at)
	return &f
}

// errorKind returns the kind and, where it has one, the status of the HTTP answer:
// it is either "internal_server_error" or
// {"http_connection_failed":{"http_status_code":401}}.
func errorKind(info json.RawMessage) observe.ErrorKind {
	var word string
	if json.Unmarshal(info, &word) == nil {
		return observe.ErrorKind{Word: word}
	}
	var wrapped map[string]struct {
		Status int `json:"http_status_code"`
	}
	if json.Unmarshal(info, &wrapped) == nil {
		for w, v := range wrapped {
			return observe.ErrorKind{Word: w, Status: v.Status}
		}
	}
	return observe.ErrorKind{}
}
