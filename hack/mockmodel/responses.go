// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// responses is OpenAI's Responses API (platform.openai.com/docs/api-reference/responses
// and …/responses-streaming).
type responses struct{}

type responsesRequest struct {
	Model  string          `json:"model"`
	Stream bool            `json:"stream"`
	Input  json.RawMessage `json:"input"`
	Tools  []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	} `json:"tools"`
	Text struct {
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
	} `json:"text"`
}

type inputItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func (responses) read(body []byte) (question, error) {
	var r responsesRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return question{}, fmt.Errorf("read the request: %w", err)
	}
	q := question{model: r.Model, stream: r.Stream}
	// Codex asks for a title in a thread of its own, with a schema and without a tool.
	q.title = len(r.Tools) == 0 && r.Text.Format.Type == "json_schema"
	for _, tool := range r.Tools {
		q.tools = append(q.tools, tool.Name)
	}
	for _, item := range itemsOf(r.Input) {
		switch item.Type {
		case "message", "":
			q.answersTool = false
			for _, block := range blocksOf(item.Content) {
				if item.Role == "user" && (block.Type == "input_text" || block.Type == "text") {
					q.said(block.Text)
				}
			}
		case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
			q.answersTool = true
		}
	}
	return q, nil
}

// itemsOf an input, which may also be a text alone.
func itemsOf(input json.RawMessage) []inputItem {
	var text string
	if json.Unmarshal(input, &text) == nil {
		return []inputItem{{Type: "message", Role: "user", Content: input}}
	}
	var items []inputItem
	if json.Unmarshal(input, &items) != nil {
		return nil
	}
	return items
}

func (responses) conversation(h http.Header) string { return h.Get("Thread-Id") }

func (responses) answer(w http.ResponseWriter, q question, a reply) {
	item := map[string]any{
		"id": a.id("msg"), "type": "message", "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": a.text, "annotations": []any{}}},
	}
	if a.command != "" {
		item = callOf(q, a)
	}
	response := map[string]any{
		"id": a.id("resp"), "object": "response", "model": q.model, "status": "completed", "output": []any{item},
		"usage": map[string]any{
			"input_tokens": 10, "output_tokens": 10, "total_tokens": 20,
			"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
		},
	}
	if !q.stream {
		writeJSON(w, http.StatusOK, response)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	writeEvent(w, map[string]any{"type": "response.created", "response": map[string]any{"id": response["id"], "object": "response", "status": "in_progress", "output": []any{}}})
	if a.partial {
		return
	}
	writeEvent(w, map[string]any{"type": "response.output_item.added", "output_index": 0, "item": item})
	writeEvent(w, map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item})
	writeEvent(w, map[string]any{"type": "response.completed", "response": response})
}

// callOf the shell tool under the name that the client offers it by.
func callOf(q question, a reply) map[string]any {
	name, arguments := "exec_command", map[string]any{"cmd": a.command}
	switch {
	case slices.Contains(q.tools, "shell_command"):
		name, arguments = "shell_command", map[string]any{"command": a.command}
	case slices.Contains(q.tools, "shell"):
		name, arguments = "shell", map[string]any{"command": []string{"sh", "-c", a.command}}
	}
	if a.escalate {
		arguments["sandbox_permissions"], arguments["justification"] = "require_escalated", "May the mock run this?"
	}
	data, err := json.Marshal(arguments)
	if err != nil {
		data = []byte("{}")
	}
	return map[string]any{
		"id": a.id("fc"), "type": "function_call", "status": "completed",
		"call_id": a.id("call"), "name": name, "arguments": string(data),
	}
}

func (responses) refuse(w http.ResponseWriter, code int, c Control) {
	fault := map[string]any{"type": statuses[c.Mode], "code": statuses[c.Mode], "message": c.message()}
	if c.UsageLimit {
		fault["type"], fault["code"], fault["plan_type"] = "usage_limit_reached", "usage_limit_reached", "plus"
		if c.ResetAt != nil {
			fault["resets_at"] = c.ResetAt.Unix()
		}
	}
	writeJSON(w, code, map[string]any{"error": fault})
}
