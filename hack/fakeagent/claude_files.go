// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// transcript of one conversation of Claude Code. Its lines reach the file a moment
// after they are said: what is killed before loses them.
type transcript struct {
	path, id string
	// begun is true when it has a line of type user. Prompts are those that a person has
	// typed; shown is what a resumed client shows of the conversation.
	begun   bool
	prompts []string
	shown   []string

	mu      sync.Mutex
	pending []pendingLine
}

type pendingLine struct {
	due  time.Time
	data []byte
}

var notAlphanumeric = regexp.MustCompile(`[^A-Za-z0-9]`)

func newTranscript(config, directory, id string) *transcript {
	folder := notAlphanumeric.ReplaceAllString(directory, "-")
	return &transcript{id: id, path: filepath.Join(config, "projects", folder, id+".jsonl")}
}

// findTranscript of an id in whatever directory it began; empty when there is none.
func findTranscript(config, id string) string {
	found, _ := filepath.Glob(filepath.Join(config, "projects", "*", id+".jsonl"))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

type claudeLine struct {
	Type    string `json:"type"`
	Message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// text of a line: a prompt is a text, an answer a list of parts.
func (l claudeLine) text() (text string, ok bool) {
	var parts []struct{ Text string }
	if json.Unmarshal(l.Message.Content, &parts) == nil && len(parts) > 0 {
		return parts[0].Text, true
	}
	ok = json.Unmarshal(l.Message.Content, &text) == nil
	return text, ok
}

// readTranscript takes each line that is one; a damaged line is passed over.
func readTranscript(path string) *transcript {
	t := &transcript{path: path, id: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
	data, err := os.ReadFile(path)
	if err != nil {
		return t
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line claudeLine
		if json.Unmarshal(bytes.Trim(lines.Bytes(), "\x00"), &line) != nil {
			continue
		}
		text, ok := line.text()
		if !ok {
			continue
		}
		switch line.Type {
		case "user":
			if t.begun = true; strings.HasPrefix(text, "<") {
				continue
			}
			t.prompts = append(t.prompts, text)
			t.shown = append(t.shown, "", "❯ "+text)
		case "assistant":
			t.shown = append(t.shown, "", "● "+text)
		}
	}
	return t
}

// fork copies the conversation to another id.
func (t *transcript) fork(config, directory, id string) *transcript {
	t.flush()
	data, err := os.ReadFile(t.path)
	forked := newTranscript(config, directory, id)
	forked.prompts, forked.shown = t.prompts, t.shown
	if err == nil {
		forked.later(0, bytes.ReplaceAll(data, []byte(t.id), []byte(id)))
	}
	return forked
}

func (t *transcript) prompted(prompt string, persists bool, after time.Duration) {
	t.prompts = append(t.prompts, prompt)
	if persists {
		t.later(after, append(t.preamble(), t.user(prompt)...))
	}
}

// cleared is what a conversation begins with that /clear has made: lines of type
// user before anybody has typed a prompt.
func (t *transcript) cleared() {
	t.later(0, slices.Concat(t.preamble(), t.user("<local-command-caveat>"), t.user("<command-name>/clear</command-name>")))
}

// preamble comes before each prompt. Glued to a line that was cut, it is lost, and not
// the prompt.
func (t *transcript) preamble() []byte {
	return slices.Concat(t.line("mode", map[string]any{"mode": "normal"}), t.line("permission-mode", map[string]any{"permissionMode": "default"}))
}

func (t *transcript) user(text string) []byte {
	return t.line("user", map[string]any{
		"message": map[string]any{"role": "user", "content": text}, "uuid": uuid.NewString(),
		"timestamp": time.Now().UTC(), "userType": "external", "entrypoint": "cli", "version": "2.1.332",
	})
}

func (t *transcript) answered(text string, persists bool, after time.Duration) {
	if persists {
		t.later(after, t.line("assistant", map[string]any{
			"message": map[string]any{"id": "msg_" + uuid.NewString(), "role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}}}, "uuid": uuid.NewString(), "timestamp": time.Now().UTC(),
		}))
	}
}

func (t *transcript) line(kind string, fields map[string]any) []byte {
	line := map[string]any{"type": kind, "sessionId": t.id}
	maps.Copy(line, fields)
	data, err := json.Marshal(line)
	if err != nil {
		return nil
	}
	return append(data, '\n')
}

// later writes data when it is due, in the order in which it was said.
func (t *transcript) later(after time.Duration, data []byte) {
	t.mu.Lock()
	t.pending = append(t.pending, pendingLine{due: time.Now().Add(after), data: data})
	t.mu.Unlock()
	time.AfterFunc(after, func() { t.write(time.Now()) })
}

// flush writes what is not yet due, as an orderly end does.
func (t *transcript) flush() { t.write(time.Now().Add(time.Hour)) }

func (t *transcript) write(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.pending) > 0 && !t.pending[0].due.After(now) {
		_ = os.MkdirAll(filepath.Dir(t.path), 0o700)
		file, err := os.OpenFile(t.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = file.Write(t.pending[0].data)
			_ = file.Close()
		}
		t.pending = t.pending[1:]
	}
}

// registry is the client's file below sessions/. It is removed at an orderly end.
type registry struct {
	path string
	mu   sync.Mutex
	data map[string]any
}

func register(config, directory, id string) *registry {
	pid := os.Getpid()
	now := time.Now().UnixMilli()
	r := &registry{path: filepath.Join(config, "sessions", strconv.Itoa(pid)+".json"), data: map[string]any{
		"pid": pid, "sessionId": id, "cwd": directory, "startedAt": now, "procStart": startTicks(),
		"version": "2.1.332", "peerProtocol": 1, "kind": "interactive", "entrypoint": "cli",
	}}
	_ = os.MkdirAll(filepath.Dir(r.path), 0o700)
	return r
}

func (r *registry) update(id, status, waitingFor string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now().UnixMilli()
	r.data["sessionId"], r.data["status"], r.data["updatedAt"], r.data["statusUpdatedAt"] = id, status, now, now
	delete(r.data, "waitingFor")
	if waitingFor != "" {
		r.data["waitingFor"] = waitingFor
	}
	data, err := json.Marshal(r.data)
	if err != nil {
		return
	}
	temporary := r.path + ".tmp"
	if os.WriteFile(temporary, data, 0o644) == nil {
		_ = os.Rename(temporary, r.path)
	}
}

func (r *registry) remove() {
	if r != nil {
		_ = os.Remove(r.path)
	}
}

// answers to dialogs, in .claude.json.
type claudeAnswers struct {
	path string
	all  map[string]any
}

func loadAnswers(config string) claudeAnswers {
	a := claudeAnswers{path: filepath.Join(config, ".claude.json"), all: map[string]any{}}
	if data, err := os.ReadFile(a.path); err == nil {
		_ = json.Unmarshal(data, &a.all)
	}
	return a
}

func (a claudeAnswers) onboarded() bool {
	done, _ := a.all["hasCompletedOnboarding"].(bool)
	return done
}

// object below the named ones, made when it is not there.
func (a claudeAnswers) object(names ...string) map[string]any {
	at := a.all
	for _, name := range names {
		next, ok := at[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	return at
}

// trusts says whether the directory or one above it was trusted.
func (a claudeAnswers) trusts(directory string) bool {
	for dir := directory; ; dir = filepath.Dir(dir) {
		project, _ := a.object("projects")[dir].(map[string]any)
		if yes, _ := project["hasTrustDialogAccepted"].(bool); yes {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// keyAnswer is what was said of a key: approved, rejected or nothing.
func (a claudeAnswers) keyAnswer(key string) string {
	tail := key[max(0, len(key)-20):]
	for _, word := range []string{"approved", "rejected"} {
		list, _ := a.object("customApiKeyResponses")[word].([]any)
		for _, entry := range list {
			if entry == tail {
				return word
			}
		}
	}
	return ""
}

func (a claudeAnswers) answerKey(key, word string) {
	responses := a.object("customApiKeyResponses")
	list, _ := responses[word].([]any)
	responses[word] = append(list, key[max(0, len(key)-20):])
	a.save()
}

func (a claudeAnswers) save() {
	data, err := json.Marshal(a.all)
	if err != nil {
		return
	}
	temporary := a.path + "." + strconv.Itoa(os.Getpid())
	if os.WriteFile(temporary, data, 0o600) == nil {
		_ = os.Rename(temporary, a.path)
	}
}
