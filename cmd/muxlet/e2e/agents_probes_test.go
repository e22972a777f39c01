// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// probedBy are the lines of a document by which a client is asked each second.
func probedBy(command string) string {
	return "livenessProbe: {exec: {command: " + command + "}, initialDelaySeconds: 0, periodSeconds: 1}"
}

// probeSaid says whether the last of the session's probes has that result.
func probeSaid(want spec.ProbeResult) func(*spec.Session) bool {
	return func(s *spec.Session) bool {
		p := s.Status.LivenessProbe
		return p != nil && p.Result == want && p.LastProbeTime != nil
	}
}

// failsThrice is a probe that fails three times once there is a file called sick.
const failsThrice = `[sh, -c, '[ -e sick ] || exit 0; echo no >> noes; [ $(wc -l < noes) -lt 3 ] || rm sick; echo wedged >&2; exit 1']`

// C6: an agent that hangs is told by a person's own program, and its conversation goes on.
func TestAnAgentThatItsProbeFindsWedgedComesBackWithItsConversation(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, before := chatting(t, a, probedBy(failsThrice))
		w.becomes("s", "found alive", probeSaid(spec.ProbeSucceeded))
		require.NoError(t, os.WriteFile(filepath.Join(w.work, "sick"), nil, 0o600))
		after := w.back(before)
		w.resumed(after, conversation(before))
		assert.Equal(t, "no\nno\nno\n", w.read(filepath.Join(w.work, "noes")))
		w.turn("s", "beta", 2, "first of s")
		last := w.kept("s", 2)
		assert.Equal(t, before.Status.Client.Incarnation+1, last.Status.Client.Incarnation)
		assert.EqualValues(t, 1, last.Status.ConsecutiveDeaths)
		assert.Equal(t, spec.ReasonLivenessProbeFailed, last.Status.Client.LastTermination.Reason)
		assert.Contains(t, w.events("s"), "its liveness probe failed 3 times in a row; the last time sh ended with status 1: wedged")
		w.becomes("s", "found alive again", probeSaid(spec.ProbeSucceeded))
		description := w.does("describe", "s")
		assert.Contains(t, description, "Liveness probe:")
		assert.Contains(t, description, "Last result:  Succeeded")
	})
}

func TestAProbeThatGivesNoAnswerLeavesAnAgentAlone(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w, before := chatting(t, a, probedBy("[sh, -c, 'echo $$ >> asked; sleep 600']"))
		asks := func() int {
			asked, _ := os.ReadFile(filepath.Join(w.work, "asked"))
			lines := 0
			for _, b := range asked {
				if b == '\n' {
					lines++
				}
			}
			return lines
		}
		w.waitFor("it was asked five times", func() bool { return asks() >= 5 })
		after := w.becomes("s", "not known to be alive", probeSaid(spec.ProbeUnknown))
		assert.Equal(t, pid(before), pid(after))
		assert.Zero(t, after.Status.LivenessProbe.ConsecutiveFailures)
		assert.Contains(t, w.events("s"), "gave no answer within 1s")
		assert.Contains(t, w.does("describe", "s"), "The liveness probe gives no answer, and so guards nothing")
		w.employ("s", probedBy("[no-such-program]"))
		after = w.becomes("s", "asked by what does not exist", func(s *spec.Session) bool {
			return probeSaid(spec.ProbeUnknown)(s) && s.Status.LivenessProbe.Message == "no-such-program is not in the client's PATH"
		})
		w.stays(after, 2*time.Second)
		assert.Equal(t, pid(before), pid(after), "neither does an edit of the probe restart anything")
		w.turn("s", "beta", 2, "first of s")
	})
}

// A daemon that is killed leaves no probe behind, and the next one goes on.
func TestProbesGoOnAfterTheDaemonIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	hangs := strings.Replace(probedBy("[sh, -c, '[ ! -e sick ] || exit 1; echo $$ > asking; exec sleep 600']"), "periodSeconds: 1", "periodSeconds: 1, timeoutSeconds: 300", 1)
	w.declare("s", "", hangs)
	before := w.runs("s")
	asking := filepath.Join(w.home, "work", "asking")
	asked := func() int {
		text, _ := os.ReadFile(asking)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return pid
	}
	w.waitFor("it is asked", func() bool { return asked() != 0 })
	probe := asked()
	w.kill()
	w.waitFor("the probe ended with the daemon", func() bool {
		_, runs := w.look(probe)
		return !runs
	})
	w.start()
	w.waitFor("it is asked again", func() bool { return asked() != probe })
	assert.Equal(t, pid(before), pid(w.runs("s")))
	w.stop()
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "work", "sick"), nil, 0o600))
	w.start()
	w.becomes("s", "another incarnation", func(s *spec.Session) bool { return s.Status.Client.Incarnation > before.Status.Client.Incarnation })
	require.NoError(t, os.Remove(filepath.Join(w.home, "work", "sick")))
}
