// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// controlFile is in the client's configuration folder or, for all clients, in the
// folder of the installation; the former counts.
const controlFile = "fakeagent.json"

// control says how a client behaves. The fields that a turn looks at are those of
// hack/mockmodel's control, so that a test says the same to both.
type control struct {
	// Mode is ok, tool, hang, drop, 401, 403, 429, 500 or 529; empty means ok.
	Mode string `json:"mode,omitempty"`
	// Delay before an answer, in Go's words.
	Delay string `json:"delay,omitempty"`
	// Count of requests after which the mode is ok again; 0 for no end. The request that
	// brings a tool's result counts as well.
	Count int `json:"count,omitempty"`
	// Command that a tool runs; Escalate makes Codex ask before.
	Command  string `json:"command,omitempty"`
	Escalate bool   `json:"escalate,omitempty"`
	// Message of an error, in place of the usual one.
	Message string `json:"message,omitempty"`
	// UsageLimit makes a 429 tell of a plan that is used up, until ResetAt.
	UsageLimit bool       `json:"usageLimit,omitempty"`
	ResetAt    *time.Time `json:"resetAt,omitempty"`

	// Script is what a turn does whose prompt contains a text; the first that fits counts.
	Script []scene `json:"script,omitempty"`
	// Answer in place of the usual one.
	Answer string `json:"answer,omitempty"`
	// Exits is what the next starts do instead; the first is taken and removed.
	Exits []plannedExit `json:"exits,omitempty"`
	// WrapperStays makes Codex's wrapper outlive its native child.
	WrapperStays bool `json:"wrapperStays,omitempty"`
	// StartDelay is the time before anything is shown, FlushDelay that between a prompt
	// and its line in the transcript, RetryPause that between two of Claude's attempts.
	StartDelay string `json:"startDelay,omitempty"`
	FlushDelay string `json:"flushDelay,omitempty"`
	RetryPause string `json:"retryPause,omitempty"`
	// Retries is the number of attempts that Claude Code makes; 0 means 3.
	Retries int `json:"retries,omitempty"`
	// Deaf is how long after it is shown first the composer loses Enter, and keeps what
	// was pasted, as Claude Code 2.1.197 did.
	Deaf string `json:"deaf,omitempty"`
	// Notice is a screen that is shown once, and left by Enter.
	Notice string `json:"notice,omitempty"`
}

// scene is what a turn does whose prompt contains a text.
type scene struct {
	Prompt string `json:"prompt"`
	// Answer, and what happens before it; see control.
	Answer  string `json:"answer,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Command string `json:"command,omitempty"`
	Delay   string `json:"delay,omitempty"`
}

// plannedExit is a start that comes to nothing.
type plannedExit struct {
	Code int    `json:"code"`
	Text string `json:"text,omitempty"`
	// After which time.
	After string `json:"after,omitempty"`
	// Resume says that only a resume does it.
	Resume bool `json:"resume,omitempty"`
}

// loadControl reads the control of a client; the zero value when there is none.
func loadControl(root, config string) (control, string) {
	for _, path := range []string{filepath.Join(config, controlFile), filepath.Join(root, controlFile)} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var c control
		if json.Unmarshal(data, &c) == nil {
			return c, path
		}
	}
	return control{}, ""
}

// change the control of a client in one step, while no other client does; false when
// there is none, or the change is not wanted.
func change(root, config string, to func(*control) bool) bool {
	lock, err := os.OpenFile(filepath.Join(root, "control.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX) != nil {
		return false
	}
	c, path := loadControl(root, config)
	if path == "" || !to(&c) {
		return false
	}
	data, err := json.Marshal(c)
	if err != nil {
		return false
	}
	temporary := path + "." + strconv.Itoa(os.Getpid())
	return os.WriteFile(temporary, data, 0o600) == nil && os.Rename(temporary, path) == nil
}

// takeExit returns what this start is to do instead; nil for nothing.
func takeExit(root, config string, resumes bool) *plannedExit {
	var first plannedExit
	taken := change(root, config, func(c *control) bool {
		if len(c.Exits) == 0 || c.Exits[0].Resume && !resumes {
			return false
		}
		first, c.Exits = c.Exits[0], c.Exits[1:]
		return true
	})
	if !taken {
		return nil
	}
	return &first
}

// takeRequest returns how one request is answered, and counts it.
func takeRequest(root, config string) control {
	c, _ := loadControl(root, config)
	if c.Count == 0 {
		return c
	}
	change(root, config, func(now *control) bool {
		if c = *now; now.Count == 0 {
			return false
		}
		if now.Count--; now.Count == 0 {
			now.Mode = ""
		}
		return true
	})
	return c
}

// span is a duration in Go's words, or what is usual.
func span(text string, usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return usual
}

// directive is what a prompt itself says about its turn:
//
//	!fail 429 [until 2:38 PM]   !hang   !drop   !tool sleep 1000   !ask sleep 1000
//	!slow 2s   !exit 3   anything else: what the control says
//
// !ask is a tool that asks for a permission first.
func (c control) directive(prompt string) control {
	for _, s := range c.Script {
		if strings.Contains(prompt, s.Prompt) {
			c.Answer, c.Mode, c.Command, c.Delay = s.Answer, s.Mode, s.Command, s.Delay
			return c
		}
	}
	word, rest, _ := strings.Cut(prompt, " ")
	switch word {
	case "!fail":
		status, until, _ := strings.Cut(rest, " until ")
		c.Mode = strings.TrimSpace(status)
		if at, err := time.Parse(time.Kitchen, strings.ReplaceAll(until, " ", "")); err == nil {
			c.UsageLimit, c.ResetAt = true, &at
		}
	case "!hang", "!drop":
		c.Mode = word[1:]
	case "!tool", "!ask":
		c.Mode, c.Command = word[1:], rest
	case "!slow":
		c.Mode, c.Delay = "ok", rest
	case "!exit":
		c.Mode, c.Message = "exit", rest
	}
	return c
}
