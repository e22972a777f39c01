// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"crypto/rand"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe/tmux"
)

// clears is the removal of what hand-overs have left.
func (h *host) clears() actuate.Action {
	return actuate.Action{Kind: actuate.ActionClearBuffers, Server: h.listing().Server}
}

func TestPromptsOfHandOversThatWereBrokenOffAreDeletedAndNothingElse(t *testing.T) {
	h := newServer(t)
	h.done(h.clears())
	theirs := []string{"muxlet-11111111-mine", "muxlet-22222222-" + rand.Text(), "notes", "muxlet-11111111-" + rand.Text() + "\nx"}
	for _, name := range theirs {
		h.tmux("set-buffer", "-b", name, "of a person")
	}
	for range 120 {
		h.tmux("set-buffer", "-b", "muxlet-11111111-"+rand.Text(), "a prompt")
	}
	before := h.tmux("list-buffers", "-f", "#{==:#{buffer_sample},of a person}", "-F", "#{buffer_name}")
	out := h.Do(t.Context(), h.clears())
	assert.Equal(t, actuate.ResultDone, out.Result)
	assert.Contains(t, out.Message, "120")
	assert.NotContains(t, out.Message, "muxlet-1")
	assert.Equal(t, before, h.tmux("list-buffers", "-F", "#{buffer_name}"))
	h.done(h.clears())
}

func TestBuffersOfAServerThatIsNotTheOneAreLeftAlone(t *testing.T) {
	h := newServer(t)
	h.tmux("set-buffer", "-b", "muxlet-11111111-"+rand.Text(), "a prompt")
	a := h.clears()
	a.Server.StartTime++
	h.unchanged(a)
	assert.NotEmpty(t, h.tmux("list-buffers"))
	a.Server.StartTime = 0
	h.unchanged(a)
	h.Instance = ""
	h.unchanged(h.clears())
}

// parkedConn holds a paste up until it is let go, with its buffer loaded.
type parkedConn struct {
	Conn
	loaded, release chan struct{}
	once            sync.Once
}

func (c *parkedConn) Run(ctx context.Context, stdin io.Reader, args ...string) tmux.Result {
	if args[0] == "load-buffer" {
		c.once.Do(func() {
			c.Conn.Run(ctx, strings.NewReader("early"), args[:4]...)
			close(c.loaded)
			<-c.release
		})
	}
	return c.Conn.Run(ctx, stdin, args...)
}

func TestTheBufferOfAHandOverUnderWayIsNotDeleted(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	action := h.pastes(p, "x")
	parked := &parkedConn{Conn: h.conn, loaded: make(chan struct{}), release: make(chan struct{})}
	h.Conn = parked
	out := make(chan actuate.Outcome)
	go func() { out <- h.Do(context.Background(), action) }()
	<-parked.loaded
	h.done(h.clears())
	require.Contains(t, h.tmux("list-buffers"), "early")
	close(parked.release)
	require.Equal(t, actuate.ResultDone, (<-out).Result)
	h.noBuffers()
}
