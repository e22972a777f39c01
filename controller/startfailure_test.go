// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strings"
	"testing"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// What the back-off names as the last end is what tmux said, and not that there is
// no pane: that is what follows from it.
func TestAStartThatTmuxRefusesIsToldInTmuxsWords(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Meddled: true})
	e.Run("a")
	e.Meddle(`case "$*" in *respawn-pane*) echo "respawn pane failed: fork failed: Resource temporarily unavailable" >&2; exit 1;; esac`)
	e.Kill(e.Client("a").Process)
	e.Eventually("the reason is tmux's", func() bool {
		for _, event := range e.Events("a", spec.ReasonStartFailed) {
			if strings.Contains(event.Message, "fork failed: Resource temporarily unavailable") {
				return true
			}
		}
		return false
	})
	e.Meddle("")
	e.WaitFor("a", envtest.Incarnation(2))
}
