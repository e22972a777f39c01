// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/controller/envtest"
)

// The daemon is killed between the two halves of a hand-over: the prompt would stay
// where a person's next paste finds it.
func TestAPromptThatACrashLeftInTmuxIsGoneWithTheNextDaemon(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("shop")
	instance := e.Controller().Status().Instance
	e.Drop()
	e.Tmux("set-buffer", "-b", "notes", "of a person")
	e.Tmux("set-buffer", "-b", "muxlet-"+instance[:8]+"-"+rand.Text(), "a prompt")
	e.Boot()
	e.Eventually("only the person's buffer is left", func() bool {
		return e.Tmux("list-buffers", "-F", "#{buffer_name}") == "notes"
	})
	assert.Len(t, e.Starts("shop"), 1)
}
