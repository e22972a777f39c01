// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// kills in a row.
const kills = 400

// noticed is how long the death of a client may go unnoticed.
const noticed = 2 * time.Second

func TestAKilledClientIsReplacedInTheSamePane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "stay")
	before := w.runs("s")
	signal(t, pid(before), unix.SIGKILL)
	after := w.runsAs("s", 2)
	assert.NotEqual(t, pid(before), pid(after))
	assert.Equal(t, before.Status.Tmux.Pane, after.Status.Tmux.Pane)
	assert.Equal(t, before.Status.Tmux.Session, after.Status.Tmux.Session)
	assert.EqualValues(t, 1, after.Status.Client.RestartCount)
	last := after.Status.Client.LastTermination
	require.NotNil(t, last)
	assert.EqualValues(t, 1, last.Incarnation)
	assert.Equal(t, "SIGKILL", last.Signal)
	require.NotNil(t, last.ExitCode)
	assert.EqualValues(t, 137, *last.ExitCode)
	assert.Equal(t, "Killed", last.Reason)
	assert.Contains(t, w.does("get", "-o", "wide"), "SIGKILL")
	assert.Contains(t, w.events("s"), "ended by SIGKILL")
}

func TestTheExitStatusOfAClientIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("s", "wait 0.2 exit 7", "restartPolicy: Never")
	s := w.reaches("s", "Completed")
	require.NotNil(t, s.Status.Client.LastTermination.ExitCode)
	assert.EqualValues(t, 7, *s.Status.Client.LastTermination.ExitCode)
	w.holds("it stays down", 2*time.Second, func() bool { return len(w.startsOf("s")) == 1 })
}

// D5.
func TestAClientThatExitsWithStatusZeroIsCompletedWithOnFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.declare("ok", "wait 0.2 exit 0", "restartPolicy: OnFailure")
	w.declare("bad", "wait 0.2 exit 1", "restartPolicy: OnFailure")
	w.reaches("ok", "Completed")
	w.waitFor("the one that fails is started again", func() bool { return len(w.startsOf("bad")) > 2 })
	w.nth("ok", 1)
}

func TestFourHundredKillsOnAQuietMachineAreAllNoticed(t *testing.T) {
	killAgainAndAgain(t)
}

func TestFourHundredKillsOnALoadedMachineAreAllNoticed(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		busy.Env = w.env
		require.NoError(t, busy.Start())
		t.Cleanup(func() {
			_ = busy.Process.Kill()
			_ = busy.Wait()
		})
	}
	killAgainAndAgain(t)
}

// killAgainAndAgain kills each incarnation as soon as the daemon shows it, and
// measures until the next one writes down its start.
func killAgainAndAgain(t *testing.T) {
	w := newWorld(t, settings{"backOff": settings{"initial": "1ms", "max": "5ms"}})
	w.start()
	w.declare("s", "stay")
	var took []time.Duration
	w.nth("s", 1)
	for n := int64(1); n <= kills; n++ {
		s := w.runsAs("s", n)
		if last := s.Status.Client.LastTermination; n > 1 {
			require.Equal(t, n-1, last.Incarnation)
			assert.Equal(t, "SIGKILL", last.Signal, "the end of incarnation %d: %+v", n-1, last)
		}
		size := len(w.startLines())
		began := time.Now()
		signal(t, pid(s), unix.SIGKILL)
		waitFor(t, "the next client starts", patience, func() bool {
			text := w.startLines()
			return len(text) > size && strings.HasSuffix(text, "\n")
		})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%d kills: from the kill to the next client: median %s, p99 %s, max %s", kills, took[kills/2], took[kills*99/100], took[kills-1])
	assert.Less(t, took[kills-1], noticed)
	assert.Equal(t, kills+1, w.countOf("s"), "one start for each death")
}
