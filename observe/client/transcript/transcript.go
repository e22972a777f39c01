// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package transcript reads the transcript of a coding agent for a person: who said what
// and when, with a line for each use of a tool. It changes nothing, keeps no text, and
// holds no more of a file in memory than one line of it, however large the file is.
package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/muxlet/muxlet/spec"
)

// Who says something.
type Who string

// Those who do.
const (
	// User is the person, or the program that sent a turn.
	User Who = "user"
	// Assistant is the agent.
	Assistant Who = "assistant"
	// Tool is the use of a tool, or that one has failed.
	Tool Who = "tool"
	// Failure is why a turn has failed.
	Failure Who = "error"
)

// Entry is one thing that was said or done.
type Entry struct {
	// At is when; zero when the transcript does not tell.
	At  time.Time
	Who Who
	// Text as it was said. That of a Tool is one line.
	Text string
}

// Parser gives what a line of a transcript holds for a person; nothing for any other
// line, nor for one that is damaged.
type Parser func(line []byte) []Entry

// ParserOf the transcripts of clients that tell of themselves in that way; nil when
// theirs are not understood.
func ParserOf(reports spec.ReportsType) Parser {
	switch reports {
	case spec.ReportsClaude:
		return claude
	case spec.ReportsCodex:
		return codex
	case spec.ReportsNone:
	}
	return nil
}

// part of a message's content.
type part struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

// claude reads a line of a transcript of Claude Code (2.1.332). What its own helpers say
// is marked as a side chain, and what it tells the model by itself as meta.
func claude(line []byte) []Entry {
	if !bytes.Contains(line, []byte(`"user"`)) && !bytes.Contains(line, []byte(`"assistant"`)) {
		return nil
	}
	var l struct {
		Type                string
		IsSidechain, IsMeta bool
		Timestamp           string
		Message             struct{ Content json.RawMessage }
	}
	if json.Unmarshal(clean(line), &l) != nil || l.IsSidechain || l.IsMeta || l.Type != "user" && l.Type != "assistant" {
		return nil
	}
	at, who := timeOf(l.Timestamp), Who(l.Type)
	var text string
	if json.Unmarshal(l.Message.Content, &text) == nil {
		return said(at, who, ofCommand(text))
	}
	var parts []part
	if json.Unmarshal(l.Message.Content, &parts) != nil {
		return nil
	}
	var entries []Entry
	for _, p := range parts {
		switch {
		case p.Type == "text":
			entries = append(entries, said(at, who, ofCommand(p.Text))...)
		case p.Type == "tool_use":
			entries = append(entries, Entry{at, Tool, p.Name + ": " + summary(p.Input)})
		case p.Type == "tool_result" && p.IsError:
			entries = append(entries, Entry{at, Tool, "failed: " + resultOf(p.Content)})
		}
	}
	return entries
}

// ofCommand is what a person has typed when it was a command of the client's own. What
// the client adds to that by itself says nothing.
func ofCommand(text string) string {
	const open, end = "<command-name>", "</command-name>"
	if strings.HasPrefix(text, "<local-command-") {
		return ""
	}
	if _, rest, found := strings.Cut(text, open); found && strings.HasPrefix(text, "<command-") {
		name, _, _ := strings.Cut(rest, end)
		return name
	}
	return text
}

// resultOf is the text of a tool's result, in one line.
func resultOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return oneLine(text)
	}
	var parts []part
	_ = json.Unmarshal(content, &parts) // nothing is told of what is not understood
	for _, p := range parts {
		text += p.Text + " "
	}
	return oneLine(text)
}

// codexLine is what counts of a line of a rollout of Codex (0.171.0).
type codexLine struct {
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Payload   struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content []part `json:"content"`
		// Passthrough says which of the content a person has written, and what else it is.
		Passthrough struct {
			Metadata []struct {
				Provenance struct{ Type string } `json:"provenance"`
			} `json:"content_item_metadata"`
		} `json:"internal_chat_message_metadata_passthrough"`

		Name      string          `json:"name"`
		Arguments string          `json:"arguments"`
		Input     string          `json:"input"`
		Action    json.RawMessage `json:"action"`

		Error *struct{ Message string } `json:"error"`
	} `json:"payload"`
}

func codex(line []byte) []Entry {
	if !bytes.Contains(line, []byte(`"response_item"`)) && !bytes.Contains(line, []byte(`"task_complete"`)) {
		return nil
	}
	var l codexLine
	if json.Unmarshal(clean(line), &l) != nil {
		return nil
	}
	at, p := timeOf(l.Timestamp), &l.Payload
	switch {
	case l.Type == "event_msg" && p.Type == "task_complete" && p.Error != nil:
		return said(at, Failure, p.Error.Message)
	case l.Type != "response_item":
		return nil
	}
	switch p.Type {
	case "message":
		return l.message(at)
	case "function_call":
		return []Entry{{at, Tool, p.Name + ": " + summary(json.RawMessage(p.Arguments))}}
	case "custom_tool_call":
		return []Entry{{at, Tool, p.Name + ": " + oneLine(p.Input)}}
	case "local_shell_call":
		return []Entry{{at, Tool, "shell: " + summary(p.Action)}}
	case "web_search_call":
		return []Entry{{at, Tool, "web search: " + summary(p.Action)}}
	}
	return nil
}

// message of a person or of the agent. In the person's name Codex gives the model what
// it knows of the surroundings too.
func (l *codexLine) message(at time.Time) []Entry {
	p := &l.Payload
	switch p.Role {
	case "assistant":
		return said(at, Assistant, texts(p.Content, "output_text"))
	case "user":
	default:
		return nil
	}
	for _, m := range p.Passthrough.Metadata {
		if kind := m.Provenance.Type; kind != "" && kind != "user" {
			return nil
		}
	}
	text := texts(p.Content, "input_text")
	if len(p.Passthrough.Metadata) == 0 && slices.ContainsFunc(surroundings, func(tag string) bool { return strings.HasPrefix(text, tag) }) {
		return nil
	}
	return said(at, User, text)
}

// surroundings begin what Codex says in a person's name, where it does not mark it.
var surroundings = []string{"<environment_context>", "<user_instructions>", "# AGENTS.md instructions"}

func texts(parts []part, kind string) string {
	var all []string
	for _, p := range parts {
		if p.Type == kind && strings.TrimSpace(p.Text) != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// clean is a line without what a crash leaves before it.
func clean(line []byte) []byte { return bytes.Trim(line, "\x00\r\n\t ") }

func timeOf(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// said is one entry, or none for a text of nothing.
func said(at time.Time, who Who, text string) []Entry {
	if text = strings.Trim(text, "\r\n"); strings.TrimSpace(text) == "" {
		return nil
	}
	return []Entry{{at, who, text}}
}

// telling are the arguments of a tool that say most about its use, the best first.
var telling = []string{"command", "cmd", "file_path", "notebook_path", "path", "pattern", "url", "query", "description", "prompt"}

// summary is what a tool was given, in one line.
func summary(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return oneLine(string(input))
	}
	for _, name := range telling {
		switch value := fields[name].(type) {
		case string:
			return oneLine(value)
		case []any:
			var words []string
			for _, word := range value {
				if text, ok := word.(string); ok {
					words = append(words, text)
				}
			}
			return oneLine(strings.Join(words, " "))
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return oneLine(string(input))
}

// longestLine of a tool, in characters.
const longestLine = 160

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 64*longestLine)]), " ")
	if utf8.RuneCountInString(text) <= longestLine {
		return text
	}
	return string([]rune(text)[:longestLine-1]) + "…"
}
