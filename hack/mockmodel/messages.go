// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// messages is Anthropic's Messages API (docs.anthropic.com/en/api/messages and
// …/streaming).
type messages struct{}

type messagesRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
	OutputConfig struct {
		Format json.RawMessage `json:"format"`
	} `json:"output_config"`
}

type contentBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (messages) read(body []byte) (question, error) {
	var r messagesRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return question{}, fmt.Errorf("read the request: %w", err)
	}
	q := question{model: r.Model, stream: r.Stream}
	// Claude Code asks for a title with a schema and without a tool.
	q.title = len(r.Tools) == 0 && len(r.OutputConfig.Format) > 0
	for _, tool := range r.Tools {
		q.tools = append(q.tools, tool.Name)
	}
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			q.answersTool = false
		}
		if m.Role != "user" {
			continue
		}
		for _, block := range blocksOf(m.Content) {
			switch block.Type {
			case "text":
				q.said(block.Text)
			case "tool_result":
				q.answersTool = true
			}
		}
	}
	return q, nil
}

// blocksOf a content, which may also be a text alone.
func blocksOf(content json.RawMessage) []contentBlock {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []contentBlock{{Type: "text", Text: text}}
	}
	var blocks []contentBlock
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	return blocks
}

func (messages) conversation(h http.Header) string { return h.Get("X-Claude-Code-Session-Id") }

func (messages) answer(w http.ResponseWriter, q question, a reply) {
	message := map[string]any{
		"id": a.id("msg"), "type": "message", "role": "assistant", "model": q.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 10, "output_tokens": 1},
	}
	block, stop := map[string]any{"type": "text", "text": a.text}, "end_turn"
	if a.command != "" {
		block = map[string]any{
			"type": "tool_use", "id": a.id("toolu"), "name": "Bash",
			"input": map[string]any{"command": a.command, "description": "Run a command"},
		}
		stop = "tool_use"
	}
	usage := map[string]any{"input_tokens": 10, "output_tokens": 10}
	if !q.stream {
		message["content"], message["stop_reason"], message["usage"] = []any{block}, stop, usage
		writeJSON(w, http.StatusOK, message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	writeEvent(w, map[string]any{"type": "message_start", "message": message})
	writeEvent(w, map[string]any{"type": "ping"})
	if a.partial {
		return
	}
	start, delta := opened(block)
	writeEvent(w, map[string]any{"type": "content_block_start", "index": 0, "content_block": start})
	writeEvent(w, map[string]any{"type": "content_block_delta", "index": 0, "delta": delta})
	writeEvent(w, map[string]any{"type": "content_block_stop", "index": 0})
	writeEvent(w, map[string]any{
		"type": "message_delta", "usage": usage,
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil},
	})
	writeEvent(w, map[string]any{"type": "message_stop"})
}

// opened splits a block into how a stream opens it and what is added then.
func opened(block map[string]any) (start, delta map[string]any) {
	if block["type"] == "text" {
		return map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": block["text"]}
	}
	input, err := json.Marshal(block["input"])
	if err != nil {
		input = []byte("{}")
	}
	return map[string]any{"type": "tool_use", "id": block["id"], "name": block["name"], "input": map[string]any{}},
		map[string]any{"type": "input_json_delta", "partial_json": string(input)}
}

func (messages) refuse(w http.ResponseWriter, code int, c Control) {
	h := w.Header()
	h.Set("Request-Id", "req_mock")
	if c.UsageLimit {
		h.Set("Anthropic-Ratelimit-Unified-Status", "rejected")
		h.Set("Anthropic-Ratelimit-Unified-Representative-Claim", "five_hour")
		if c.ResetAt != nil {
			h.Set("Anthropic-Ratelimit-Unified-Reset", strconv.FormatInt(c.ResetAt.Unix(), 10))
		}
	}
	writeJSON(w, code, map[string]any{
		"type": "error", "request_id": "req_mock",
		"error": map[string]any{"type": statuses[c.Mode], "message": c.message()},
	})
}
