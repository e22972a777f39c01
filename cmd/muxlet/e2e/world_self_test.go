// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every test that says "never two" rests on this.
func TestTheSamplerSeesTwoClientsOfOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mark := `exec env MUXLET_SESSION="$0" MUXLET_CLIENT=instance/uid/1/attempt/$$/1 sleep 1000000`
	for i, session := range []string{"one", "two", "two"} {
		fake := exec.Command("sh", "-c", mark, session)
		fake.Env = w.env
		require.NoError(t, fake.Start())
		t.Cleanup(func() {
			_ = fake.Process.Kill()
			_ = fake.Wait()
		})
		w.waitFor("the fake client runs", func() bool { return len(w.clients("one"))+len(w.clients("two")) == i+1 })
	}
	s := &sampler{w: w, foreign: map[int]bool{}}
	s.once()
	require.Len(t, s.doubled, 1)
	assert.Contains(t, s.doubled[0], "two: ")
}
