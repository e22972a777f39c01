// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muxlet/muxlet/observe/tmux"
)

// tokenBegin, with a mark and a number, comes before what one of several lines
// prints.
const tokenBegin = "muxlet-begin"

// maxTogether bounds the length of lines that share a call, in bytes: tmux
// refuses a command line of 16 KB and more ("command too long").
const maxTogether = 12 << 10

// companyPatience is how long a line waits for the call before it.
const companyPatience = 200 * time.Millisecond

// together carries out lines of commands that come at the same time in one call
// of tmux. Nobody waits for company: a line that finds no call under way is
// carried out at once, and those that come meanwhile share the next one. An error
// within a line ends that line alone (measured with 3.3a: what if-shell runs is a
// group of its own); each still has a guard of its own.
type together struct {
	run func(ctx context.Context, line []string) tmux.Result
	// patience is how long a line waits for the call before it. One that takes longer
	// may be stuck, and no session waits for another one's.
	patience time.Duration
	// mark cannot be guessed: a line may print what a client has shown.
	mark string

	mu      sync.Mutex
	busy    bool
	waiting []*member
}

// member is one line on its way.
type member struct {
	line []string
	done chan tmux.Result
}

// do carries out line, with others or alone. When ctx ends it is not known what
// became of it.
func (t *together) do(ctx context.Context, line []string) tmux.Result {
	m := &member{line: line, done: make(chan tmux.Result, 1)}
	t.mu.Lock()
	t.waiting = append(t.waiting, m)
	if !t.busy {
		t.busy = true
		// A call goes on without whoever was the first to ask for it.
		go t.work(context.WithoutCancel(ctx))
	}
	t.mu.Unlock()
	patience := time.NewTimer(t.patience)
	defer patience.Stop()
	select {
	case r := <-m.done:
		return r
	case <-ctx.Done():
	case <-patience.C:
		if t.withdraw(m) {
			return t.run(ctx, line)
		}
	}
	select {
	case r := <-m.done:
		return r
	case <-ctx.Done():
		return tmux.Result{ExitCode: -1, Err: fmt.Errorf("waiting for tmux: %w", ctx.Err())}
	}
}

// work makes calls until nobody waits.
func (t *together) work(ctx context.Context) {
	for members := t.next(); len(members) > 0; members = t.next() {
		t.call(ctx, members)
	}
}

// withdraw takes back a line that no call has taken yet.
func (t *together) withdraw(m *member) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, m)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	return i >= 0
}

// next takes as many of those who wait as fit into one call; the work is over
// when there are none.
func (t *together) next() []*member {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, length := 0, 0
	for n < len(t.waiting) {
		for _, word := range t.waiting[n].line {
			length += len(word) + 1
		}
		if n > 0 && length > maxTogether {
			break
		}
		n++
	}
	members := slices.Clone(t.waiting[:n])
	t.waiting = slices.Delete(t.waiting, 0, n)
	t.busy = n > 0
	return members
}

// call carries out the lines of members and gives each what was said to it.
func (t *together) call(ctx context.Context, members []*member) {
	if len(members) == 1 {
		members[0].done <- t.run(ctx, members[0].line)
		return
	}
	var line []string
	for i, m := range members {
		if i > 0 {
			line = append(line, ";")
		}
		line = append(line, "display-message", "-p", tokenBegin+t.mark+" "+strconv.Itoa(i), ";")
		line = append(line, m.line...)
	}
	r := t.run(ctx, line)
	said := apart(r.Stdout, tokenBegin+t.mark, len(members))
	errs := blame(r.Stderr, said)
	for i, m := range members {
		if said[i] == nil && r.Err == nil && !lost(r.Stderr) {
			// An earlier line could not be parsed, and this one was not reached.
			m.done <- t.run(ctx, m.line)
			continue
		}
		own := r
		own.Stdout, own.Stderr = strings.Join(said[i], ""), errs[i]
		m.done <- own
	}
}

// blame gives each line the error that is its own. tmux prints them in the order of
// the lines, and one for each that came to no end. Where the numbers differ each of
// those gets all of them.
func blame(stderr string, said [][]string) []string {
	errs, failed := make([]string, len(said)), []int{}
	for i, lines := range said {
		if printed := strings.Join(lines, ""); find(printed, tokenDone) == nil && find(printed, tokenRefused) == nil {
			failed = append(failed, i)
		}
	}
	printed := slices.Collect(strings.Lines(stderr))
	for n, i := range failed {
		errs[i] = stderr
		if len(printed) == len(failed) {
			errs[i] = printed[n]
		}
	}
	return errs
}

// apart gives each of n lines what it printed behind the token; nil for one that
// was not begun.
func apart(stdout, token string, n int) [][]string {
	said, at := make([][]string, n), -1
	for line := range strings.Lines(stdout) {
		if number, begins := strings.CutPrefix(line, token+" "); begins {
			i, err := strconv.Atoi(strings.TrimSpace(number))
			if err == nil && i == at+1 && i < n {
				at = i
				said[at] = []string{}
				continue
			}
		}
		if at >= 0 {
			said[at] = append(said[at], line)
		}
	}
	return said
}
