// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// N4, D5. A session that is done says so and nothing else: it is not offered as
// one that waits or failed, and nothing but a demand, or an edit by which it would
// not have been done, starts it again.
func TestACompletedSessionIsNotOfferedForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("aaa-done", "exit 0", "restartPolicy: OnFailure")
	w.declare("runs", "stay")
	w.runs("runs")
	done := w.reaches("aaa-done", spec.StatusCompleted)
	stays := func(why string) {
		w.Helper()
		w.holds("it stays completed: "+why, time.Second, func() bool {
			return w.status("aaa-done") == spec.StatusCompleted && w.countOf("aaa-done") == 1
		})
	}
	stays("by itself")
	assert.Equal(t, 0, int(*done.Status.Client.LastTermination.ExitCode))
	assert.False(t, isTrue(done, spec.ConditionStalled), "nobody has to act")
	assert.False(t, isTrue(done, spec.ConditionInputRequired))
	assert.Equal(t, spec.ReasonCompleted, reason(done, spec.ConditionReady))
	said := w.muxlet("get")
	assert.Regexp(t, `(?m)^aaa-done +exec +Completed +False +0 `, said.out)
	assert.Empty(t, said.errOut, "no word about it below the table")
	assert.NotContains(t, w.events("aaa-done"), "Warning")

	signal(t, w.server().pid, unix.SIGKILL)
	w.runsAs("runs", 2)
	w.waitFor("it is seen again", func() bool { return w.status("aaa-done") == spec.StatusCompleted })
	stays("over the loss of the tmux server")
	w.kill()
	w.start()
	w.reaches("aaa-done", spec.StatusCompleted)
	stays("over a restart of the daemon")
	w.write("aaa-done.yaml", "# a comment\n"+w.document("aaa-done", "exit 0", "restartPolicy: OnFailure", "terminationGracePeriodSeconds: 3"))
	w.becomes("aaa-done", "seen in its new generation", isGeneration(2))
	stays("over the edit of a policy")

	w.declare("aaa-done", "say again exit 0", "restartPolicy: OnFailure")
	w.becomes("aaa-done", "seen in its new generation", isGeneration(3))
	stays("over an edit of its command, which the next start takes")
	w.does("resume", "aaa-done")
	assert.Equal(t, "say again exit 0", w.nth("aaa-done", 2).words)
	w.reaches("aaa-done", spec.StatusCompleted)
	w.declare("aaa-done", "say again exit 0", "restartPolicy: Always")
	w.waitFor("it is started again", func() bool { return w.countOf("aaa-done") > 2 })
	w.declare("aaa-done", "say again exit 0", "restartPolicy: Never")
	w.reaches("aaa-done", spec.StatusCompleted)
	require.NotContains(t, strings.ToLower(w.does("describe", "aaa-done")), "problem")
}
