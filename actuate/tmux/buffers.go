// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// buffers are the names of the paste buffers that hand-overs under way have made, or
// are about to make.
type buffers struct {
	mu    sync.Mutex
	names map[string]bool
}

// begin returns a name that nobody else has.
func (b *buffers) begin(prefix string) string {
	name := prefix + rand.Text()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names == nil {
		b.names = map[string]bool{}
	}
	b.names[name] = true
	return name
}

func (b *buffers) end(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.names, name)
}

func (b *buffers) underWay(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names[name]
}

// bufferPrefix begins the names of the paste buffers that this muxlet makes.
func (t *Actuator) bufferPrefix() string {
	return "muxlet-" + t.Instance[:min(len(t.Instance), 8)] + "-"
}

// bufferEnd matches what follows bufferPrefix: a person's own buffer is left alone,
// whatever it is called.
var bufferEnd = lazyregexp.New(`^[A-Z2-7]{26}$`)

// buffersAtOnce bounds how many are deleted with one command line, which tmux takes
// up to 16 KB.
const buffersAtOnce = 50

// clearBuffers deletes the buffers that hand-overs have left: a daemon or a client of
// tmux was killed between the load and the paste. The message says how many there
// were. On a server without any it is one call that prints nothing.
func (t *Actuator) clearBuffers(ctx context.Context, a actuate.Action) actuate.Outcome {
	guard, err := serverGuard(a.Server)
	if err != nil {
		return untouched(err)
	}
	if !safePattern.MatchString(t.Instance) || t.Instance == "" {
		return refused("The instance of this muxlet is not known; no paste buffer was deleted.")
	}
	prefix := t.bufferPrefix()
	r := t.Conn.Run(ctx, nil, "list-buffers", "-f", "#{m/r:^"+prefix+"[A-Z2-7]+$,#{buffer_name}}", "-F", "#{buffer_name}")
	if r.Err != nil || r.ExitCode != 0 || r.Stderr != "" {
		return outcome(r)
	}
	left := t.leftBuffers(r.Stdout, prefix)
	for chunk := range slices.Chunk(left, buffersAtOnce) {
		var script []string
		for _, name := range chunk {
			// In a branch of its own: one that is gone by now keeps none of the others.
			script = append(script, command("if-shell", "-F", "1", command("delete-buffer", "-b", name)))
		}
		script = append(script, command("display-message", "-p", tokenDone))
		if out := outcome(t.Conn.Run(ctx, nil, guard.line(sequence(script...))...)); out.Result != actuate.ResultDone {
			return out
		}
	}
	done := actuate.Outcome{Result: actuate.ResultDone}
	if len(left) > 0 {
		done.Message = fmt.Sprintf("Deleted %d paste buffers with prompts that were not handed over to their end.", len(left))
	}
	return done
}

func (t *Actuator) leftBuffers(stdout, prefix string) []string {
	var left []string
	for line := range strings.Lines(stdout) {
		name := strings.TrimSuffix(line, "\n")
		end, ours := strings.CutPrefix(name, prefix)
		if ours && bufferEnd.MatchString(end) && !t.buffers.underWay(name) {
			left = append(left, name)
		}
	}
	return left
}
