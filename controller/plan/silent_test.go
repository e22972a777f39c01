// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// closedFor is an attempt whose shell was found ended that long ago.
func closedFor(d time.Duration) given {
	return ofRecord(func(r *record.Record) {
		r.Attempt.Fence, r.Attempt.Reason, r.Attempt.Message = record.FenceClosed, spec.ReasonStartFailed, "how it ended was not observed"
		r.Attempt.ClosedAt = ago(d)
	})
}

// tmux 3.3a loses most ends on a quiet machine: the end of a shell is waited for
// as the end of a client is.
func TestTheEndOfAShellWithoutItsLauncherIsCollected(t *testing.T) {
	lost := dead(0, nil, 0)
	unnoticed := ofSeen(func(s *Seen) { s.Panes[0].Live = observe.Gone })
	once := deaths(1, time.Second)
	reaps := func(requeue time.Duration) expect {
		return expect{rule: "Attempt", reason: spec.ReasonStarting, action: actuate.ActionReap, requeue: requeue}
	}
	failure := expect{
		rule: "BackOff", reason: spec.ReasonCrashLoopBackOff, requeue: time.Second, looked: true, events: []string{"Warning StartFailed"},
		changes: allOf(counted, func(r *record.Record) {
			r.LastFailed = r.Attempt.ID
			r.Attempt, r.LastTermination = nil, &record.Termination{Reason: spec.ReasonStartFailed, At: now}
		}),
	}
	check(t, []row{
		{"the fence is closed first", starting(lost), expect{rule: "Attempt", reason: spec.ReasonStarting, requeue: soon, changes: func(r *record.Record) { closed(r, spec.ReasonStartFailed) }}},
		{"then tmux collects it", starting(lost, closedFor(0)), reaps(pollStatus)},
		{"also when tmux holds the shell to be alive", starting(unnoticed, closedFor(0)), reaps(pollStatus)},
		{"less often later", starting(lost, closedFor(400*time.Millisecond)), reaps(100 * time.Millisecond)},
		{"for a second at most", starting(once, lost, closedFor(time.Second)), failure},
		{"not when it is known", starting(once, dead(0, ptr.To(3), 0), closedFor(0)), failure},
		{"not without a pane", starting(once, noPanes, closedFor(0)), failure},
		{"not for an attempt that was given up for another reason", starting(once, lost, ofRecord(func(r *record.Record) { closed(r, spec.ReasonSuspended) }), ofSpec(suspended)), expect{
			rule: "Suspend", reason: spec.ReasonSuspended, looked: true, changes: func(r *record.Record) { r.LastFailed, r.Attempt = r.Attempt.ID, nil },
		}},
		{"nor does a clock that has jumped back stretch it for ever", starting(lost, closedFor(-time.Hour)), func() expect {
			e := reaps(pollStatus)
			e.changes = func(r *record.Record) { r.Attempt.ClosedAt = now }
			return e
		}()},
	})
}

func TestAFailedStartTellsHowItsShellEndedOnceThatIsKnown(t *testing.T) {
	for want, in := range map[string]Input{
		"(exited with status 3)":           starting(deaths(1, time.Second), dead(0, ptr.To(3), 0), closedFor(0)),
		"(ended by SIGHUP)":                starting(deaths(1, time.Second), dead(0, nil, 1), closedFor(0)),
		"(how it ended was not observed)":  starting(deaths(1, time.Second), dead(0, nil, 0), closedFor(time.Second)),
		"exits, fails, or executes anothe": starting(deaths(1, time.Second), dead(0, ptr.To(0), 0), closedFor(0)),
	} {
		require.Contains(t, decide(t, in).Record.LastTermination.Message, want)
	}
}

// What a person is to mend is named: the files that their shell reads.
func TestAStartThatAProfileKeepsUpNamesTheProfile(t *testing.T) {
	late := ofRecord(func(r *record.Record) { r.Attempt.OpenedAt = ago(time.Minute) })
	in := func(shell string, mode spec.ShellMode) given {
		return func(in *Input) { in.Policy.Shell, in.Record.Attempt.Spec.Client.ShellMode = shell, mode }
	}
	for want, g := range map[string]given{
		"mend what /bin/bash reads (~/.bash_profile":                  in("/bin/bash", spec.ShellInteractive),
		"/bin/zsh reads (~/.zshenv, ~/.zprofile, ~/.zshrc, ~/.zlogin": in("/bin/zsh", spec.ShellInteractive),
		"/bin/zsh reads (~/.zshenv, ~/.zprofile, ~/.zlogin":           in("/bin/zsh", spec.ShellLogin),
		"/usr/bin/fish reads (~/.config/fish/config.fish":             in("/usr/bin/fish", spec.ShellLogin),
		"/bin/dash reads (~/.profile, and what that reads), or set":   in("/bin/dash", spec.ShellLogin),
		"mend its files, or set shellMode None":                       in("", spec.ShellInteractive),
		"), or set shellMode None":                                    in("/bin/sh", spec.ShellInteractive),
		"the launcher left no receipt within 1m0s":                    in("/bin/bash", spec.ShellNone),
		"the shell's profile may hang, ask a question, or execute an": in("/bin/bash", spec.ShellLogin),
	} {
		require.Contains(t, decide(t, starting(late, g)).Record.Attempt.Message, want)
	}
	message := decide(t, starting(dead(0, ptr.To(2), 0), in("/bin/bash", spec.ShellNone))).Record.Attempt.Message
	require.Equal(t, "the launcher ended before it left a receipt (exited with status 2); the last screen may say why", message)
}
