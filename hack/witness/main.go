// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Command witness is a client for tests that writes down what it receives before it
// does anything about it, so that it can be counted afterwards whoever was killed when.
// It shows an input line, knows bracketed paste, and answers at once. It asks nothing,
// remembers nothing and talks to nobody.
//
//	witness LOG [DELAY]
//
// LOG gets a line of JSON for its start, for when it shows its input line (DELAY after
// its start), for each paste and for each text that is submitted. Each is on disk before
// the next byte is read or shown.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// entry is one line of the log; the tests have the same.
type entry struct {
	At time.Time `json:"at"`
	// Event is start, ready, paste or prompt.
	Event string `json:"event"`
	Pid   int    `json:"pid"`
	// Session and Mark are MUXLET_SESSION and MUXLET_CLIENT.
	Session string `json:"session"`
	Mark    string `json:"mark"`
	// Text of a paste or a prompt.
	Text string `json:"text,omitempty"`
}

func main() {
	fmt.Fprintln(os.Stderr, "Error:", run(os.Args[1:]))
	os.Exit(1)
}

// run ends when the terminal does, or the log cannot be written.
func run(args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("usage: witness LOG [DELAY]")
	}
	w := &witness{log: args[0]}
	if err := w.write("start", ""); err != nil {
		return err
	}
	delay := time.Duration(0)
	if len(args) == 2 {
		var err error
		if delay, err = time.ParseDuration(args[1]); err != nil {
			return err
		}
	}
	if _, err := term.MakeRaw(int(os.Stdin.Fd())); err != nil {
		return fmt.Errorf("put the terminal into raw mode: %w", err)
	}
	<-time.After(delay)
	if err := w.write("ready", ""); err != nil {
		return err
	}
	if err := w.show("\x1b[?2004h"); err != nil {
		return err
	}
	return w.serve()
}

// witness is the client.
type witness struct {
	log string
	// input is what stands in the input line, taken how many texts were submitted.
	input string
	taken int
}

// write adds a line to the log, and returns when it is on disk.
func (w *witness) write(event, text string) error {
	data, err := json.Marshal(entry{
		At: time.Now(), Event: event, Pid: os.Getpid(), Text: text,
		Session: os.Getenv("MUXLET_SESSION"), Mark: os.Getenv("MUXLET_CLIENT"),
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(w.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// show paints the screen: how many texts it took, and its input line, at whose end the
// cursor is.
func (w *witness) show(before string) error {
	text := fmt.Sprintf("%s\x1b[H\x1b[J* took %d\r\n\r\n> %s", before, w.taken, strings.ReplaceAll(w.input, "\n", "\r\n  "))
	_, err := os.Stdout.WriteString(text)
	return err
}

const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

func (w *witness) serve() error {
	buffer := make([]byte, 64<<10)
	pending := ""
	for {
		n, err := os.Stdin.Read(buffer)
		if err != nil {
			return err
		}
		if pending, err = w.consume(pending + string(buffer[:n])); err != nil {
			return err
		}
		if err := w.show(""); err != nil {
			return err
		}
	}
}

// consume takes what was typed, up to what is not complete yet, which it returns.
func (w *witness) consume(text string) (rest string, err error) {
	for text != "" {
		if after, ok := strings.CutPrefix(text, pasteBegins); ok {
			pasted, next, whole := strings.Cut(after, pasteEnds)
			if !whole {
				return text, nil
			}
			if err := w.write("paste", pasted); err != nil {
				return "", err
			}
			w.input += strings.ReplaceAll(pasted, "\r", "\n")
			text = next
			continue
		}
		if strings.HasPrefix(pasteBegins, text) || !utf8.FullRuneInString(text) {
			return text, nil
		}
		_, size := utf8.DecodeRuneInString(text)
		if err := w.key(text[:size]); err != nil {
			return "", err
		}
		text = text[size:]
	}
	return "", nil
}

// key is what a person types.
func (w *witness) key(key string) error {
	switch {
	case key == "\r" && w.input == "":
	case key == "\r":
		if err := w.write("prompt", w.input); err != nil {
			return err
		}
		w.input = ""
		w.taken++
	case key >= " " && key != "\x7f":
		w.input += key
	}
	return nil
}
