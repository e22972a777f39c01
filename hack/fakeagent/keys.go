// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"unicode/utf8"
)

const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

// named keys, by what a terminal sends for them.
var named = []struct{ bytes, key string }{
	{"\x1b[A", "up"}, {"\x1b[B", "down"}, {"\x1bOA", "up"}, {"\x1bOB", "down"},
	{"\r", "enter"}, {"\n", "enter"}, {"\x03", "ctrl-c"}, {"\x04", "ctrl-d"}, {"\x7f", "backspace"},
}

// read what is typed until the terminal is gone.
func (s *screen) read() {
	buffer := make([]byte, 64*1024)
	pending := ""
	for {
		n, err := os.Stdin.Read(buffer)
		if err != nil || n == 0 {
			close(s.keys)
			return
		}
		pending = s.consume(pending + string(buffer[:n]))
	}
}

// consume takes whole keys from the text and returns what is not whole yet.
func (s *screen) consume(text string) string {
	for text != "" {
		if rest, ok := strings.CutPrefix(text, pasteBegins); ok {
			pasted, after, whole := strings.Cut(rest, pasteEnds)
			if !whole {
				return text
			}
			s.insert(strings.ReplaceAll(pasted, "\r", "\n"))
			text = after
			continue
		}
		if strings.HasPrefix(pasteBegins, text) && len(text) > 1 || !utf8.FullRuneInString(text) {
			return text
		}
		key, size := keyOf(text)
		text = text[size:]
		s.key(key)
	}
	return ""
}

func keyOf(text string) (key string, size int) {
	for _, k := range named {
		if strings.HasPrefix(text, k.bytes) {
			return k.key, len(k.bytes)
		}
	}
	if text[0] == '\x1b' {
		return "escape", 1
	}
	_, size = utf8.DecodeRuneInString(text)
	return text[:size], size
}

// insert text into the composer; into a dialog nothing can be pasted.
func (s *screen) insert(text string) {
	s.update(func() {
		if s.open == nil {
			s.input += text
		}
	})
}

// key that was pressed.
func (s *screen) key(key string) {
	s.mu.Lock()
	if s.open != nil {
		if chosen := s.open.press(key); chosen >= 0 {
			s.open.chosen <- chosen
			s.open = nil
		}
		s.paint()
		s.mu.Unlock()
		s.log.write(entry{Event: "keys", Text: key})
		return
	}
	defer s.mu.Unlock()
	switch key {
	case "enter":
		if text := strings.TrimRight(s.input, "\n"); text != "" {
			s.input = ""
			s.prompts <- text
		}
	case "ctrl-c":
		empty := s.input == ""
		s.input = ""
		if empty {
			s.keys <- key
		}
	case "ctrl-d", "escape":
		s.keys <- key
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(s.input)
		s.input = s.input[:len(s.input)-size]
	case "up", "down":
	default:
		s.input += key
	}
	s.paint()
}

// press a key in a dialog; the option that it chooses, or -1.
func (d *dialog) press(key string) (chosen int) {
	if i := strings.Index(d.letters, key); i >= 0 {
		return i
	}
	switch key {
	case "up":
		d.selected = max(d.selected-1, 0)
	case "down":
		d.selected = min(d.selected+1, d.options-1)
	case "enter":
		return d.selected
	case "escape", "ctrl-c":
		return d.escape
	default:
		if d.numbered && len(key) == 1 && key[0] >= '1' && int(key[0]-'1') < d.options {
			return int(key[0] - '1')
		}
	}
	return -1
}
