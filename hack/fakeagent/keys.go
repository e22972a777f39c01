// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"time"
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

// read what is typed until the terminal is gone. A paste comes in pieces of 4 KiB: each
// of them is looked at once.
func (s *screen) read() {
	buffer := make([]byte, 64*1024)
	pending := ""
	var paste *pasting
	for {
		n, err := os.Stdin.Read(buffer)
		if err != nil || n == 0 {
			close(s.keys)
			return
		}
		text := pending + string(buffer[:n])
		for pending = ""; text != ""; {
			if paste == nil {
				if text, paste = s.consume(text); paste == nil {
					pending = text
					break
				}
			}
			pasted, rest, whole := paste.take(text)
			if text = rest; whole {
				s.insert(strings.ReplaceAll(pasted, "\r", "\n"))
				paste = nil
			}
		}
	}
}

// pasting is a paste whose end has not come yet.
type pasting struct{ text []byte }

// take a piece; whole is true with its end, and rest what comes behind that.
func (p *pasting) take(piece string) (pasted, rest string, whole bool) {
	from := max(len(p.text)-len(pasteEnds)+1, 0)
	p.text = append(p.text, piece...)
	at := bytes.Index(p.text[from:], []byte(pasteEnds))
	if at < 0 {
		return "", "", false
	}
	return string(p.text[:from+at]), string(p.text[from+at+len(pasteEnds):]), true
}

// consume takes whole keys from the text up to a paste, and returns what is not whole
// yet or belongs to the paste.
func (s *screen) consume(text string) (string, *pasting) {
	for text != "" {
		if rest, ok := strings.CutPrefix(text, pasteBegins); ok {
			return rest, &pasting{}
		}
		if strings.HasPrefix(pasteBegins, text) && len(text) > 1 || !utf8.FullRuneInString(text) {
			return text, nil
		}
		key, size := keyOf(text)
		text = text[size:]
		s.key(key)
	}
	return "", nil
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
			s.composer.pasted(text)
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
		if time.Since(s.since) < s.deaf {
			break
		}
		if given, ok := s.composer.take(); ok {
			s.prompts <- given
		}
	case "ctrl-c":
		empty := s.composer.empty()
		s.composer.clear()
		if empty {
			s.keys <- key
		}
	case "ctrl-d", "escape":
		s.keys <- key
	case "backspace":
		s.composer.backspace()
	case "up", "down":
	default:
		s.composer.typed(key)
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
