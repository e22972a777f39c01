// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/muxlet/muxlet/controller/server"
)

const (
	// resumedLines are asked for when a daemon is followed again after another has
	// gone, to find where the lines ended that were printed.
	resumedLines = 1000
	// landmark is how many lines in a row are believed to be the same place.
	landmark = 8
)

// followLogs prints what is new until the person or the session ends it. Once it
// has begun, nothing else does: the daemon may be restarted at any time.
func (o *logsOptions) followLogs(ctx context.Context, client *server.Client, name string) error {
	f := &followed{globals: o.globals}
	lines := o.tail
	for {
		err := client.Follow(ctx, name, lines, f.take)
		switch {
		case ctx.Err() != nil || err == nil:
			return nil
		case f.failed != nil:
			return f.failed
		case !f.began:
			return err
		case server.ReasonOf(err) == server.ReasonNotFound:
			o.complain("--- session deleted ---")
			return nil
		}
		lines, f.resumed = resumedLines, true
		if errors.Is(err, server.ErrStreamEnded) {
			o.complain("--- the muxlet daemon has gone; waiting for the next ---")
		}
		client.Close()
		if !pause(ctx, 5*o.pollPeriod) {
			return nil
		}
	}
}

// followed is what was printed of a log so far.
type followed struct {
	*globals
	began       bool
	incarnation int64
	// printed are the last lines.
	printed []string
	// resumed says that the next frame is the first of another daemon.
	resumed bool
	// failed is why lines could not be printed.
	failed error
}

func (f *followed) take(frame server.LogFrame) error {
	other := frame.Incarnation != 0 && f.began && frame.Incarnation != f.incarnation
	if f.resumed {
		frame.Lines = unseen(f.printed, frame.Lines, other)
	}
	f.began, f.resumed = true, false
	if other {
		f.complain("--- incarnation %d ---", frame.Incarnation)
	}
	if frame.Incarnation != 0 {
		f.incarnation = frame.Incarnation
	}
	if frame.Gap {
		f.complain("--- lines were missed ---")
	}
	if f.failed = f.print(frame.Lines); f.failed != nil {
		return f.failed
	}
	f.printed = append(f.printed, frame.Lines...)
	f.printed = slices.Clone(f.printed[max(len(f.printed)-landmark, 0):])
	if frame.Removed {
		f.complain("--- session deleted ---")
	}
	return nil
}

// unseen is what comes in lines after the lines that were printed last. When
// those are not there, as with a client that draws its screen, all of another
// incarnation is new, and of the same one nothing is.
func unseen(printed, lines []string, other bool) []string {
	for end := len(lines); end > 0; end-- {
		n := min(len(printed), end)
		if n > 0 && slices.Equal(printed[len(printed)-n:], lines[end-n:end]) {
			return lines[end:]
		}
	}
	if other || len(printed) == 0 {
		return lines
	}
	return nil
}
