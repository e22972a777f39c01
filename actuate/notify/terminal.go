// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// tmux has no command that rings a client's bell or passes an OSC on to one: a bell, or
// with allow-passthrough an OSC, that a pane writes reaches those who have that session,
// or that pane, in front of them, and to write into a pane is to write into the screen of
// somebody's program. So the terminal itself is written to, beside tmux.
//
// The danger is to hit the middle of a sequence of tmux. tmux puts whole sequences into
// one write(2), and the kernel lets no other write come in between; only a write to a
// terminal that reads too slowly is cut short. Measured on tmux 3.3a: in 400 of 400
// writes beside a client that draws 16 times a second nothing was hit; beside one that
// draws without a pause 5 of 293 were, and 71 of 109 when its terminal is slow as well.
// Hence a moment is looked for in which tmux draws nothing for it (in all of 300 tries
// there was one at once beside the former), and where there is none, tmux is asked to
// draw the screen anew afterwards.

const (
	// quiet is how long tmux must have drawn nothing, looks how often that is looked for.
	quiet = 30 * time.Millisecond
	looks = 10
	// bodyRunes bounds a text in a sequence.
	bodyRunes = 200
)

var errDoesNotRead = errors.New("it does not read")

// tellTerminals writes to each attached terminal once, and says how many took it. That
// some do not is an error only when no other has.
func (p Person) tellTerminals(ctx context.Context, ways []spec.TerminalNotification, n actuate.Notification) (told int, err error) {
	left, err := p.Conn.Terminals(ctx)
	if err != nil {
		return 0, err
	}
	var failures []error
	write := func(t observe.Terminal) {
		if err := writeTerminal(t, sequence(ways, n, insideTmux(t))); err != nil {
			failures = append(failures, fmt.Errorf("the terminal %s was not told: %w", t.TTY, err))
			return
		}
		told++
	}
	for range looks {
		if len(left) == 0 {
			break
		}
		var busy []observe.Terminal
		if busy, err = p.unquiet(ctx, left, write); err != nil {
			return told, err
		}
		left = busy
	}
	for _, t := range left {
		write(t)
		// What it says of that is nobody's concern: the next change draws it too.
		p.Conn.Run(ctx, nil, "refresh-client", "-t", t.TTY)
	}
	if told > 0 {
		return told, nil
	}
	return 0, errors.Join(failures...)
}

// unquiet calls write with each terminal for which tmux has drawn nothing for a moment,
// and gives the others that are still attached, as they are now.
func (p Person) unquiet(ctx context.Context, of []observe.Terminal, write func(observe.Terminal)) (busy []observe.Terminal, err error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(quiet):
	}
	after, err := p.Conn.Terminals(ctx)
	if err != nil {
		return nil, err
	}
	for _, before := range of {
		for _, t := range after {
			switch {
			case t.TTY != before.TTY || t.PID != before.PID:
			case t.Written == before.Written:
				write(t)
			default:
				busy = append(busy, t)
			}
		}
	}
	return busy, nil
}

// insideTmux says whether the terminal is a pane of another tmux, which takes a sequence
// that is not for itself in a wrapping only.
func insideTmux(t observe.Terminal) bool {
	return strings.HasPrefix(t.Name, "tmux") || strings.HasPrefix(t.Type, "tmux ")
}

// sequence is what a terminal is sent. Its text is in one line, without control bytes.
// OSC 9 that begins with a digit and a semicolon is another thing in ConEmu's dialect,
// and no text of ours does.
func sequence(ways []spec.TerminalNotification, n actuate.Notification, insideTmux bool) []byte {
	const esc, bell = "\x1b", "\a"
	text := actuate.Plain(n.Text(), bodyRunes)
	var out strings.Builder
	osc := func(body string) {
		body = esc + "]" + body + bell
		if insideTmux {
			body = esc + "Ptmux;" + strings.ReplaceAll(body, esc, esc+esc) + esc + `\`
		}
		out.WriteString(body)
	}
	for _, way := range ways {
		switch way {
		case spec.TerminalBell:
			out.WriteString(bell)
		case spec.TerminalOSC9:
			osc("9;muxlet: " + text)
		case spec.TerminalOSC777:
			// The title ends at the next semicolon; the text goes on to the end.
			osc("777;notify;muxlet;" + text)
		}
	}
	return []byte(out.String())
}

// writeTerminal writes to the terminal of a client, without waiting for it.
func writeTerminal(t observe.Terminal, data []byte) error {
	fd, err := unix.Open(t.TTY, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open it: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := isTerminalOf(fd, t.PID); err != nil {
		return err
	}
	// The rest of a sequence that was cut short is tried a few times: what follows would
	// be taken for it.
	for range looks {
		n, err := unix.Write(fd, data)
		if n > 0 {
			data = data[n:]
		}
		switch {
		case len(data) == 0:
			return nil
		case err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("write to it: %w", err)
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(quiet.Milliseconds()))
	}
	return errDoesNotRead
}
