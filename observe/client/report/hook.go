// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// Patience is how long a hook waits; a client waits for its hooks.
type Patience struct {
	// Payload is how long it waits for its input.
	Payload time.Duration
	// Answer is how long it waits for the daemon.
	Answer time.Duration
	// Whole is when it gives up, from its beginning.
	Whole time.Duration
	// Large is what is added to Payload and Whole when the payload is larger than 64 KiB:
	// a prompt of 1 MiB comes through its pipe in 20 pieces and takes 20 ms of a quiet
	// processor to read.
	Large time.Duration
}

// largePayload is more than what a pipe holds, in bytes.
const largePayload = 64 << 10

// DefaultPatience keeps `muxlet hook` below 200 ms with the start of its program
// and of its shell, but for a long prompt.
var DefaultPatience = Patience{
	Payload: 60 * time.Millisecond, Answer: 60 * time.Millisecond, Whole: 170 * time.Millisecond, Large: time.Second,
}

// Hook is one run of a hook of a client.
type Hook struct {
	// Class is the word after `muxlet hook`: a client class's name.
	Class string
	// Stdin has the client's payload.
	Stdin io.Reader
	// Getenv reads the hook's environment, as os.Getenv does.
	Getenv func(name string) string
	// PID of the hook's process.
	PID int
	// Now is when it began.
	Now time.Time
	Patience

	// read counts the bytes of the payload.
	read *counter
}

// counter of what was read.
type counter struct {
	in    io.Reader
	bytes atomic.Int64
}

func (c *counter) Read(into []byte) (int, error) {
	n, err := c.in.Read(into)
	c.bytes.Add(int64(n))
	return n, err
}

// longer is what a large payload adds to a time.
func (h Hook) longer(d time.Duration) time.Duration {
	if h.read.bytes.Load() >= largePayload {
		d += h.Large
	}
	return d
}

// late waits as long as the payload allows.
func (h Hook) late(d time.Duration) <-chan struct{} {
	late := make(chan struct{})
	go func() {
		time.Sleep(d)
		time.Sleep(h.longer(d) - d)
		close(late)
	}()
	return late
}

// errOutside says that a hook does not run below a client of muxlet.
var errOutside = errors.New("no client of muxlet runs this hook")

// errLate says that a hook has waited as long as it may.
var errLate = errors.New("it took too long")

// errBroken stands for a panic: what Go prints of one would be shown to a person.
var errBroken = errors.New("the hook broke")

// Run reads the payload and reports it. Nobody but a test hears of its error, which
// quotes nothing of the payload. What it began may go on after it has returned late.
func (h Hook) Run() error {
	h.read = &counter{in: h.Stdin}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if recover() != nil {
				done <- errBroken
			}
		}()
		done <- h.run()
	}()
	select {
	case err := <-done:
		return err
	case <-h.late(h.Whole):
		return errLate
	}
}

func (h Hook) run() error {
	// The payload is read in any case: a client must not find its pipe closed.
	r, err := h.payload()
	if err != nil {
		return err
	}
	mark, err := observe.ParseMark(h.Getenv(observe.EnvClient))
	socket := h.Getenv(observe.EnvReports)
	if err != nil || socket == "" {
		return errOutside
	}
	r.ID, r.Class, r.At, r.Mark = uuid.NewString(), h.Class, h.Now.UTC().Round(0), mark
	// Read before anything is waited for: the client may end meanwhile. A listener
	// looks for itself.
	var chainErr error
	r.Chain, chainErr = process.Ancestors(h.PID)
	if err := check(r); err != nil {
		return err
	}
	if Send(socket, r, time.Now().Add(h.Answer)) == nil {
		return nil
	}
	if chainErr != nil {
		return fmt.Errorf("look for the client: %w", chainErr)
	}
	return Spool(SpoolLink(socket), r, h.Now.Add(h.longer(h.Whole)-syncMargin))
}

// syncMargin is what a rename takes after the sync of a file was given up.
const syncMargin = 20 * time.Millisecond

// payload is what Parse makes of the input, if that comes in time. What is behind
// the object is read too, so that the client can write all of it.
func (h Hook) payload() (observe.Report, error) {
	type parsed struct {
		report observe.Report
		err    error
	}
	done := make(chan parsed, 1)
	go func() {
		r, err := Parse(h.read)
		if err != nil {
			_, _ = io.Copy(io.Discard, h.read)
		}
		done <- parsed{r, err}
	}()
	select {
	case p := <-done:
		return p.report, p.err
	case <-h.late(h.Payload):
		return observe.Report{}, errLate
	}
}
