// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/client/transcript"
	"github.com/muxlet/muxlet/spec"
)

// Answer returns the last lines of what the client has answered last in a
// conversation since a time, and all lines for 0; what has no time counts when since is
// zero. Since a time an answer is one to the last prompt: the end of the answer before is
// written by Claude Code up to 0.2 s after it has told that the turn is over, and may be
// younger than the hand-over of the next prompt. It is its text without what it did with tools, at most
// what fits into the last 8 MiB of its transcript. While a turn is being worked on,
// that is what the client has said last in it, or before. The error is an
// fs.ErrNotExist when the class has no transcript that is understood or the
// conversation has no answer yet. It returns within Patience.
func (e *Eyes) Answer(ref observe.ConversationRef, since time.Time, lines int) (string, error) {
	read, known := answersOf[reportsOf(ref)]
	if !known || ref.ID == "" {
		return "", fmt.Errorf("look for an answer: the client class tells of none: %w", fs.ErrNotExist)
	}
	parse := transcript.ParserOf(reportsOf(ref))
	type answer struct {
		text string
		err  error
	}
	unseen := answer{err: errors.New("look for an answer: its transcript could not be read in time")}
	a := await(e, ref, "answer", unseen, func() answer {
		text, err := e.answer(ref, func(line []byte) said {
			s := read(line)
			s.asks = !s.is && !since.IsZero() && isPrompt(parse(line))
			s.is = s.is && !s.at.Before(since)
			return s
		})
		return answer{text, err}
	})
	return lastOf(a.text, lines), a.err
}

func isPrompt(entries []transcript.Entry) bool {
	return slices.ContainsFunc(entries, func(e transcript.Entry) bool { return e.Who == transcript.User })
}

func reportsOf(ref observe.ConversationRef) spec.ReportsType {
	if ref.Class == nil || ref.Class.Conversation.Transcript == "" {
		return spec.ReportsNone
	}
	return ref.Class.Reports
}

// lastOf keeps the last lines of a text.
func lastOf(text string, lines int) string {
	text = strings.TrimRight(text, "\n")
	all := strings.Split(text, "\n")
	if lines <= 0 || len(all) <= lines {
		return text
	}
	return strings.Join(all[len(all)-lines:], "\n")
}

func (e *Eyes) answer(ref observe.ConversationRef, read func(line []byte) said) (string, error) {
	found := e.transcript(ref)
	if found.State != observe.EvidenceResumable || found.Path == "" {
		if found.State == observe.EvidenceUnknown {
			return "", fmt.Errorf("look for an answer: %s", found.Message)
		}
		return "", fmt.Errorf("look for an answer: the conversation has none yet: %w", fs.ErrNotExist)
	}
	f, err := e.files().Open(found.Path)
	if err != nil {
		return "", fmt.Errorf("look for an answer: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("look for an answer: %w", err)
	}
	text, err := lastAnswer(f, info.Size(), read)
	switch {
	case err != nil:
		return "", fmt.Errorf("look for an answer: %w", err)
	case text == "":
		return "", fmt.Errorf("look for an answer: the conversation has none yet: %w", fs.ErrNotExist)
	}
	return text, nil
}

// lastAnswer reads as much of a transcript's end as the last answer needs.
func lastAnswer(f io.ReaderAt, length int64, read func(line []byte) said) (string, error) {
	for size := int64(firstTail); ; size *= 4 {
		from := max(0, length-size)
		tail, err := io.ReadAll(io.NewSectionReader(f, from, size))
		if err != nil {
			return "", err
		}
		text, whole := answerIn(tail, from == 0, read)
		if whole || from == 0 || size >= maxTail {
			return text, nil
		}
	}
}

// said is what one line of a transcript holds of an answer. A message of several parts
// takes several lines with one id; without an id it is one of its own.
type said struct {
	is bool
	// asks: it is a prompt. What was said before it answers another one.
	asks bool
	id   string
	text string
	// at is when it was written; zero when that is not told.
	at time.Time
}

// answerIn takes the last message with a text from the tail; whole is false when more
// of it may come before. The first line is cut off unless the tail has all, the last
// one may be being written.
func answerIn(tail []byte, all bool, read func(line []byte) said) (text string, whole bool) {
	var parts []string
	var id string
	for len(tail) > 0 {
		at := bytes.LastIndexByte(tail, '\n')
		if at < 0 && !all {
			break
		}
		s := read(bytes.Trim(tail[at+1:], "\x00"))
		tail = tail[:max(at, 0)]
		switch {
		case s.asks:
			whole, tail = true, nil
		case !s.is:
		case len(parts) > 0 && (s.id != id || id == ""):
			whole, tail = true, nil
		case s.text != "":
			id, parts = s.id, append(parts, s.text)
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n"), whole
}

// answersOf are the readers of the lines that hold an answer, by what tells of a client.
var answersOf = map[spec.ReportsType]func(line []byte) said{
	spec.ReportsClaude: claudeAnswer,
	spec.ReportsCodex:  codexAnswer,
}

// part of a message's content; others than texts have another type.
type part struct {
	Type, Text string
}

func textOf(parts []part, kind string) string {
	var texts []string
	for _, p := range parts {
		if p.Type == kind && strings.TrimSpace(p.Text) != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// claudeAnswer reads a line of a transcript of Claude Code (2.1.332). What its own
// helpers say is marked as a side chain.
func claudeAnswer(line []byte) said {
	if !bytes.Contains(line, []byte(`"assistant"`)) {
		return said{}
	}
	var l struct {
		Type        string
		IsSidechain bool
		Timestamp   time.Time
		Message     struct {
			ID      string
			Content []part
		}
	}
	if json.Unmarshal(line, &l) != nil || l.Type != "assistant" || l.IsSidechain {
		return said{}
	}
	return said{is: true, id: l.Message.ID, text: textOf(l.Message.Content, "text"), at: l.Timestamp}
}

// codexAnswer reads a line of a rollout of Codex (0.171.0).
func codexAnswer(line []byte) said {
	if !bytes.Contains(line, []byte(`"response_item"`)) {
		return said{}
	}
	var l struct {
		Type      string
		Timestamp time.Time
		Payload   struct {
			Type, ID, Role string
			Content        []part
		}
	}
	if json.Unmarshal(line, &l) != nil || l.Type != "response_item" || l.Payload.Type != "message" || l.Payload.Role != "assistant" {
		return said{}
	}
	return said{is: true, id: l.Payload.ID, text: textOf(l.Payload.Content, "output_text"), at: l.Timestamp}
}
