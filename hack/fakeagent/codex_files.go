// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// thread is one conversation of Codex: a lock from its beginning, a rollout from its
// first turn, both held until the process ends.
type thread struct {
	home, id, directory string
	// path of the rollout, before it is there too.
	path    string
	prompts []string
	shown   []string
	// inherited is what a fork begins with.
	inherited []byte

	lock, rollout *os.File
	ordinal       int
}

func newThread(home, directory string) *thread {
	now := time.Now()
	t := &thread{home: home, id: newID(), directory: directory}
	t.path = filepath.Join(home, "sessions", now.Format("2006/01/02"), "rollout-"+now.Format("2006-01-02T15-04-05")+"-"+t.id+".jsonl")
	t.hold()
	return t
}

// hold the thread against other processes; false when one has it.
func (t *thread) hold() bool {
	path := filepath.Join(t.home, "thread-writer-locks", t.id+".lock")
	_ = os.MkdirAll(filepath.Dir(path), 0o700)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		fatal(err)
	}
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = file.Close()
		return false
	}
	t.lock = file
	return true
}

// open the rollout at a turn, and make it at the first.
func (t *thread) open() {
	if t.rollout != nil {
		return
	}
	_, err := os.Stat(t.path)
	_ = os.MkdirAll(filepath.Dir(t.path), 0o700)
	t.rollout, _ = os.OpenFile(t.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		return
	}
	t.line("session_meta", map[string]any{
		"session_id": t.id, "id": t.id, "cwd": t.directory, "originator": "codex-tui", "cli_version": "0.171.0",
	})
	_, _ = t.rollout.Write(t.inherited)
	index, err := os.OpenFile(filepath.Join(t.home, "session_index.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintf(index, "{\"id\":%q}\n", t.id)
		_ = index.Close()
	}
}

func (t *thread) line(kind string, payload map[string]any) {
	data, err := json.Marshal(map[string]any{
		"timestamp": time.Now().UTC(), "ordinal": t.ordinal, "type": kind, "payload": payload,
	})
	if err != nil {
		return
	}
	t.ordinal++
	_, _ = t.rollout.Write(append(data, '\n'))
}

func (t *thread) event(kind string, fields map[string]any) {
	fields["type"] = kind
	t.line("event_msg", fields)
}

func (t *thread) message(role, kind, text string) {
	t.line("response_item", map[string]any{
		"type": "message", "role": role, "content": []any{map[string]any{"type": kind, "text": text}},
	})
}

func (t *thread) prompted(prompt string) {
	t.message("user", "input_text", prompt)
	t.event("item_completed", map[string]any{"thread_id": t.id, "item": map[string]any{"type": "UserMessage"}})
}

func (t *thread) answered(text string) {
	t.event("item_completed", map[string]any{"thread_id": t.id, "item": map[string]any{"type": "AgentMessage"}})
	t.message("assistant", "output_text", text)
}

// findRollout of an id; empty when there is none.
func findRollout(home, id string) string {
	found, _ := filepath.Glob(filepath.Join(home, "sessions/*/*/*/rollout-*-"+id+".jsonl"))
	if len(found) == 0 || id == "" {
		return ""
	}
	return found[0]
}

// indexed says whether a thread was written down once.
func indexed(home, id string) bool {
	data, err := os.ReadFile(filepath.Join(home, "session_index.jsonl"))
	return err == nil && id != "" && strings.Contains(string(data), `"`+id+`"`)
}

// readRollout takes each line that is one; a damaged line is passed over.
func readRollout(home, path, id string) *thread {
	t := &thread{home: home, id: id, path: path}
	data, err := os.ReadFile(path)
	if err != nil {
		return t
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			Type    string
			Payload struct {
				Type, Role, Cwd string
				Content         []struct{ Text string }
			}
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		t.ordinal++
		switch p := line.Payload; {
		case line.Type == "session_meta":
			t.directory = p.Cwd
		case p.Type != "message" || len(p.Content) == 0:
		case p.Role == "user":
			t.prompts = append(t.prompts, p.Content[0].Text)
			t.shown = append(t.shown, "", "› "+p.Content[0].Text)
		case p.Role == "assistant":
			t.shown = append(t.shown, "", "• "+p.Content[0].Text)
		}
	}
	return t
}

// codexConfig is what counts here of config.toml.
type codexConfig struct {
	path, text, model string
	signedIn          bool
}

var modelLine = regexp.MustCompile(`(?m)^model\s*=\s*"([^"]*)"`)

func loadCodexConfig(home string) codexConfig {
	c := codexConfig{path: filepath.Join(home, "config.toml"), model: "gpt-5.1-codex"}
	data, _ := os.ReadFile(c.path)
	c.text = string(data)
	if m := modelLine.FindStringSubmatch(c.text); m != nil {
		c.model = m[1]
	}
	c.signedIn = strings.Contains(c.text, "model_provider")
	return c
}

// section of a table, up to the next one; empty when it is not there.
func (c codexConfig) section(name string) string {
	_, after, _ := strings.Cut("\n"+c.text, "\n["+name+"]\n")
	text, _, _ := strings.Cut(after, "\n[")
	return text
}

func (c codexConfig) trusts(directory string) bool {
	return strings.Contains(c.section(fmt.Sprintf("projects.%q", directory)), `"trusted"`)
}

// add tables to the file, and read it again.
func (c *codexConfig) add(tables string) {
	file, err := os.OpenFile(c.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = file.WriteString("\n" + tables)
		_ = file.Close()
	}
	*c = loadCodexConfig(filepath.Dir(c.path))
}

// hookTable is the trust in one hook of the command line, by its event and command.
func hookTable(event, command string) (name, hash string) {
	sum := sha256.Sum256([]byte(command))
	snake := regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(event, "${1}_$2")
	return fmt.Sprintf(`hooks.state."/<session-flags>/config.toml:%s:0:0"`, strings.ToLower(snake)), "sha256:" + hex.EncodeToString(sum[:])
}

// untrusted hooks, as the tables that would trust them.
func (c codexConfig) untrusted(h hooks) (tables []string) {
	for event, commands := range h {
		for _, command := range commands {
			if name, hash := hookTable(event, command); !strings.Contains(c.section(name), hash) {
				tables = append(tables, fmt.Sprintf("[%s]\ntrusted_hash = %q\n", name, hash))
			}
		}
	}
	return tables
}
