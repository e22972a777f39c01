// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/observe/client/transcript"
)

const (
	// transcriptPolls is how many poll periods lie between two looks at a transcript that
	// is followed, and placeLooks how many of those between two questions for its place.
	transcriptPolls = 5
	placeLooks      = 4
	// entryTime is how a person reads a time.
	entryTime = "2006-01-02 15:04:05"
)

// conversing prints the transcript of a session.
type conversing struct {
	*logsOptions
	name   string
	client *server.Client
	// place is the transcript that is read, file is nil while there is none.
	place server.Transcript
	file  *transcript.File
	parse transcript.Parser
	// surplus is how many entries are passed over at the beginning, behind what was
	// asked for.
	surplus int
}

// conversationOf prints what was said in a session. The file is read here: its text never
// passes through the daemon, which knows where it is.
func (o *logsOptions) conversationOf(ctx context.Context, client *server.Client, name string) error {
	place, err := client.Transcript(ctx, name)
	if err != nil {
		return err
	}
	c := &conversing{logsOptions: o, name: name, client: client}
	defer c.close()
	if place.Path == "" && !o.follow {
		return server.NewError(server.ReasonNotFound, name, fmt.Sprintf("session %q: %s; \"muxlet logs %[1]s\" prints its screen", name, place.Message))
	}
	if place.Path == "" {
		o.complain("--- %s; waiting ---", place.Message)
	}
	if err := c.take(place, o.tail); err != nil {
		return err
	}
	if err := c.drain(); err != nil {
		return err
	}
	if !o.follow {
		return c.rest()
	}
	return c.goOn(ctx)
}

// goOn follows the transcript, and the session from one conversation to the next.
func (c *conversing) goOn(ctx context.Context) error {
	for n := 1; pause(ctx, transcriptPolls*c.pollPeriod); n++ {
		if err := c.drain(); err != nil {
			return err
		}
		if n%placeLooks != 0 {
			continue
		}
		place, err := c.client.Transcript(ctx, c.name)
		switch {
		case server.ReasonOf(err) == server.ReasonNotFound:
			c.complain("--- session deleted ---")
			return nil
		case err != nil || place.Path == "":
			continue // the daemon is away, or there is nothing new to read yet
		case c.file != nil && c.file.Replaced():
			c.complain("--- the transcript was written anew ---")
		case place.Path == c.place.Path:
			continue
		case c.place.Conversation != "" && c.place.Conversation != place.Conversation:
			c.complain("--- conversation %s ---", place.Conversation)
		}
		if err := c.take(place, -1); err != nil {
			return err
		}
	}
	return nil
}

func (c *conversing) close() {
	if c.file != nil {
		_ = c.file.Close() // it was only read
		c.file = nil
	}
}

// take begins to read another transcript, at its last n entries.
func (c *conversing) take(place server.Transcript, n int) error {
	c.close()
	c.place = place
	if place.Path == "" {
		return nil
	}
	if c.parse = transcript.ParserOf(place.Reports); c.parse == nil && !c.raw() {
		return server.NewError(server.ReasonNotFound, c.name, fmt.Sprintf(
			"session %q: how the transcripts of its client class are to be read is not known; -o json prints the lines of %s", c.name, place.Path))
	}
	entries := func(line []byte) int { return len(c.parse(line)) }
	if c.raw() {
		entries = wholeLine
	}
	file, surplus, err := transcript.Open(place.Path, n, entries)
	if err != nil {
		return err
	}
	c.file, c.surplus = file, surplus
	return nil
}

// wholeLine counts a line that is one of JSON: not what is being written.
func wholeLine(line []byte) int {
	if json.Valid(line) {
		return 1
	}
	return 0
}

func (c *conversing) raw() bool { return c.output == outputJSON }

// drain prints every whole line that is there.
func (c *conversing) drain() error {
	if c.file == nil {
		return nil
	}
	for {
		line, err := c.file.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, transcript.ErrLongLine):
			c.complain("--- %v was passed over ---", err)
			continue
		case err != nil:
			return err
		}
		if err := c.show(line); err != nil {
			return err
		}
	}
}

// rest prints the line that has no end, if it is whole all the same.
func (c *conversing) rest() error {
	if line := c.file.Unended(); wholeLine(line) == 1 {
		return c.show(line)
	}
	return nil
}

// show prints a line of the transcript as it is, or what it says.
func (c *conversing) show(line []byte) error {
	if c.raw() {
		return c.write(string(bytes.TrimRight(line, "\r\n")) + "\n")
	}
	for _, e := range c.parse(line) {
		if c.surplus > 0 {
			c.surplus--
			continue
		}
		if err := c.write(entryText(e)); err != nil {
			return err
		}
	}
	return nil
}

func (c *conversing) write(text string) error {
	if _, err := io.WriteString(c.out, text); err != nil {
		return fmt.Errorf("write the conversation: %w", err)
	}
	return nil
}

// entryText is who, when and what: the use of a tool in one line, a text below it.
func entryText(e transcript.Entry) string {
	head := string(e.Who)
	if !e.At.IsZero() {
		head += "  " + e.At.In(time.Local).Format(entryTime)
	}
	if e.Who == transcript.Tool {
		return head + "  " + harmless(e.Text) + "\n\n"
	}
	var text strings.Builder
	text.WriteString(head + "\n")
	for line := range strings.SplitSeq(e.Text, "\n") {
		text.WriteString(harmless(strings.TrimSuffix(line, "\r")) + "\n")
	}
	text.WriteByte('\n')
	return text.String()
}
