// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// Mode is what a prompt gets. A request for a title is always answered well, so
// that it takes no part in what a test counts.
type Mode string

const (
	// ModeOK answers with a text.
	ModeOK Mode = "ok"
	// ModeTool answers with a call of the client's shell tool, and the request that
	// brings the tool's result with a text.
	ModeTool Mode = "tool"
	// ModeHang answers nothing until another mode is set, and then as that says.
	ModeHang Mode = "hang"
	// ModeDrop closes the connection.
	ModeDrop Mode = "drop"
)

// statuses are the modes that are a status of HTTP, with the type of the error as
// Anthropic's API names it.
var statuses = map[Mode]string{
	"401": "authentication_error",
	"403": "permission_error",
	"429": "rate_limit_error",
	"500": "api_error",
	"529": "overloaded_error",
}

// Control says how the server behaves.
type Control struct {
	// Mode is ok, tool, hang, drop, 401, 403, 429, 500 or 529; empty means ok.
	Mode Mode `json:"mode"`
	// Count of requests after which the mode is ok again; 0 for no end.
	Count int `json:"count,omitempty"`
	// Delay before an answer begins, for ok and tool, in Go's words ("1.5s").
	Delay Duration `json:"delay,omitempty"`
	// Command that the tool is to run, in a shell's words.
	Command string `json:"command,omitempty"`
	// Escalate asks to run the command outside of Codex's sandbox, which a person is
	// asked about; Claude's mode of permission alone decides that.
	Escalate bool `json:"escalate,omitempty"`
	// Message of an error, in place of the usual one.
	Message string `json:"message,omitempty"`
	// RetryAfter is the header of that name, in seconds; 0 for none.
	RetryAfter int `json:"retryAfter,omitempty"`
	// ShouldRetry is the header x-should-retry; null for none.
	ShouldRetry *bool `json:"shouldRetry,omitempty"`
	// UsageLimit makes a 429 tell of a plan that is used up, as each API does.
	UsageLimit bool `json:"usageLimit,omitempty"`
	// ResetAt is the time at which the plan may be used again.
	ResetAt *time.Time `json:"resetAt,omitempty"`
	// Partial makes drop begin an answer before it closes the connection.
	Partial bool `json:"partial,omitempty"`
	// Headers are added to an error.
	Headers map[string]string `json:"headers,omitempty"`
}

// Duration is written as Go writes it.
type Duration time.Duration

// UnmarshalJSON reads "1.5s".
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("read a duration: %w", err)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("read a duration: %w", err)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalJSON writes "1.5s".
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

func (c *Control) validate() error {
	if c.Mode == "" {
		c.Mode = ModeOK
	}
	switch c.Mode {
	case ModeOK, ModeHang, ModeDrop:
	case ModeTool:
		if c.Command == "" {
			return errors.New("mode tool needs a command")
		}
	default:
		if statuses[c.Mode] == "" {
			return fmt.Errorf("mode %q: want ok, tool, hang, drop, 401, 403, 429, 500 or 529", c.Mode)
		}
	}
	if c.Count < 0 || c.RetryAfter < 0 || c.Delay < 0 {
		return errors.New("count, retryAfter and delay: want 0 or more")
	}
	return nil
}

// status of HTTP that the mode stands for; 0 for none.
func (c *Control) status() int {
	if statuses[c.Mode] == "" {
		return 0
	}
	code, err := strconv.Atoi(string(c.Mode))
	if err != nil {
		return 0
	}
	return code
}

// switchboard holds the control and lets requests wait for another.
type switchboard struct {
	mu      sync.Mutex
	control Control
	left    int
	changed chan struct{}
}

func newSwitchboard() *switchboard {
	return &switchboard{control: Control{Mode: ModeOK}, changed: make(chan struct{})}
}

// set the control; what hangs is decided anew.
func (s *switchboard) set(c Control) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control, s.left = c, c.Count
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *switchboard) get() Control {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control
}

// take says how one request is to be answered, and counts it. The channel closes
// when another control is set; a count that ran out wakes nobody.
func (s *switchboard) take() (Control, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	control, changed := s.control, s.changed
	if s.left > 0 {
		if s.left--; s.left == 0 {
			s.control = Control{Mode: ModeOK}
		}
	}
	return control, changed
}

// decide waits while the server hangs.
func (s *switchboard) decide(ctx context.Context) (Control, error) {
	for {
		control, changed := s.take()
		if control.Mode != ModeHang {
			return control, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return control, fmt.Errorf("wait for another mode: %w", ctx.Err())
		}
	}
}
