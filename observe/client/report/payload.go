// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/muxlet/muxlet/observe"
)

// maxPayload bounds what is read of a hook's payload, in bytes: the longest prompt, 1
// MiB, with each character escaped as in \u000a, and the rest.
const maxPayload = 6*(1<<20) + 64<<10

// text is a string, or empty for any other JSON value: one field that changes its
// form in a newer client must not cost the others.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = text(s)
	}
	return nil
}

// payload is what Claude Code 2.1 and Codex 0.171 give their hooks on standard
// input, as far as it may leave the hook.
type payload struct {
	Event        text `json:"hook_event_name"`
	Conversation text `json:"session_id"`
	Transcript   text `json:"transcript_path"`
	Source       text `json:"source"`            // SessionStart
	Reason       text `json:"reason"`            // SessionEnd
	Notification text `json:"notification_type"` // Notification
	Failure      text `json:"error"`             // StopFailure
	// Prompt of a UserPromptSubmit: its digest alone leaves the hook. It is any, since
	// text would read it two times more, and it may have 1 MiB.
	Prompt any `json:"prompt"`
}

// Parse reads a hook's payload: one JSON object of at most 6 MiB. It does not wait
// for the end of the input once it has the object. The report has no id, class,
// time, mark and chain yet. A field that is not what it should be is left out; a
// payload without an event is an error, which quotes nothing of it.
func Parse(in io.Reader) (observe.Report, error) {
	limited := &io.LimitedReader{R: in, N: maxPayload}
	var p payload
	if err := json.NewDecoder(limited).Decode(&p); err != nil {
		if limited.N == 0 {
			return observe.Report{}, fmt.Errorf("read a hook's payload: longer than %d bytes", maxPayload)
		}
		return observe.Report{}, errors.New("read a hook's payload: it is no JSON object")
	}
	if !isWord(string(p.Event)) {
		return observe.Report{}, errors.New("read a hook's payload: it names no event")
	}
	r := observe.Report{Event: string(p.Event), Kind: kindOf(p)}
	if isIdentity(string(p.Conversation)) {
		r.Conversation = string(p.Conversation)
	}
	if isPath(string(p.Transcript)) {
		r.Transcript = string(p.Transcript)
	}
	switch r.Kind {
	case observe.ReportStarted:
		r.Source = onlyWord(p.Source)
	case observe.ReportEnded:
		r.Source = onlyWord(p.Reason)
	case observe.ReportFailed:
		r.Failure = onlyWord(p.Failure)
	case observe.ReportPrompted:
		if prompt, ok := p.Prompt.(string); ok && prompt != "" {
			r.Prompt = observe.PromptDigest(prompt)
		}
	case observe.ReportWorking, observe.ReportAsked, observe.ReportDone, observe.ReportOther:
	}
	return r, nil
}

// onlyWord is empty for what is no single word: it could be anybody's text.
func onlyWord(t text) string {
	if !isWord(string(t)) {
		return ""
	}
	return string(t)
}

// kinds are those of the events that both clients, or one of them, have hooks for.
var kinds = map[text]observe.ReportKind{
	"SessionStart":       observe.ReportStarted,
	"UserPromptSubmit":   observe.ReportPrompted,
	"PreToolUse":         observe.ReportWorking,
	"PostToolUse":        observe.ReportWorking,
	"PostToolUseFailure": observe.ReportWorking,
	"PermissionRequest":  observe.ReportAsked,
	"Stop":               observe.ReportDone,
	"StopFailure":        observe.ReportFailed,
	"SessionEnd":         observe.ReportEnded,
}

func kindOf(p payload) observe.ReportKind {
	if kind, ok := kinds[p.Event]; ok {
		return kind
	}
	// Claude Code also notifies of things that ask for nothing, such as a prompt that
	// stays empty for a minute.
	if p.Event == "Notification" && (p.Notification == "permission_prompt" || p.Notification == "elicitation_dialog") {
		return observe.ReportAsked
	}
	return observe.ReportOther
}
