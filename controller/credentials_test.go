// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// E2: sessions fail together when their key comes from one place or, without a key of
// their own, when they share a config directory.
func TestSessionsShareACredentialByKeyOrByConfigDirectory(t *testing.T) {
	class := func(name string) *plan.Class {
		return &plan.Class{Name: name, Spec: &spec.ClientClassSpec{
			Credentials:     spec.ClassCredentials{Env: []string{"KEY", "TOKEN"}},
			ConfigDirectory: spec.ClassDirectory{Env: "CONFIG", Default: "$(HOME)/.agent"},
		}}
	}
	value := func(name, text string) spec.EnvVar { return spec.EnvVar{Name: name, Value: text} }
	file := func(name, path string) spec.EnvVar {
		return spec.EnvVar{Name: name, ValueFrom: &spec.EnvVarSource{FileRef: &spec.FileRef{Path: path}}}
	}
	of := func(class *plan.Class, known string, env ...spec.EnvVar) credential {
		r := record.Record{}
		if known != "" {
			r.Conversation = &record.Conversation{ConfigDirectory: known}
		}
		return credentialOf(class, &spec.SessionSpec{Client: spec.ClientSpec{Env: env}}, r, []string{"HOME=/home/a"})
	}
	a := class("agent")
	for name, c := range map[string]struct {
		a, b credential
		same bool
	}{
		"nothing of their own":           {of(a, ""), of(a, "", value("LOG", "debug")), true},
		"one has been started":           {of(a, "/home/a/.agent"), of(a, ""), true},
		"another config directory":       {of(a, ""), of(a, "", value("CONFIG", "/other")), false},
		"the profile names another":      {of(a, "/profile"), of(a, ""), false},
		"one key":                        {of(a, "/x", value("KEY", "1")), of(a, "/y", value("KEY", "1")), true},
		"two keys":                       {of(a, "", value("KEY", "1")), of(a, "", value("KEY", "2")), false},
		"one file":                       {of(a, "/x", file("TOKEN", "/k")), of(a, "/y", file("TOKEN", "/k")), true},
		"two files":                      {of(a, "", file("KEY", "/k")), of(a, "", file("KEY", "/l")), false},
		"another class":                  {of(a, ""), of(class("other"), ""), false},
		"the last value of a name wins":  {of(a, "", value("KEY", "1"), value("KEY", "2")), of(a, "", value("KEY", "2")), true},
		"the first variable that is set": {of(a, "", value("TOKEN", "t"), value("KEY", "1")), of(a, "", value("KEY", "1")), true},
	} {
		assert.Equal(t, c.same, c.a == c.b, "%s: %s, %s", name, c.a, c.b)
	}
	assert.NotContains(t, string(of(a, "", value("KEY", "secret-1"))), "secret", "a key is in no name")
}

// What a daemon finds when it starts may be older than what others have done since.
func TestAnOlderFailureThanAGoodTurnHoldsNothing(t *testing.T) {
	failed := time.Unix(1000, 0)
	class := &plan.Class{Name: "agent", Spec: &spec.ClientClassSpec{ConfigDirectory: spec.ClassDirectory{Default: "/agent"}}}
	sight := observe.Sight{Failure: &observe.Failure{Reason: spec.ReasonAuthenticationFailed, Retry: spec.RetryHold, At: failed}}
	for name, c := range map[string]struct {
		turn time.Duration
		held int
	}{"a turn went well later": {time.Second, 0}, "a turn went well before": {-time.Second, 1}} {
		t.Run(name, func(t *testing.T) {
			recorder, err := status.OpenRecorder(t.TempDir(), 10)
			require.NoError(t, err)
			ctl := bare(t, Options{Recorder: recorder})
			for _, name := range []string{"a", "b"} {
				s := newSession(name)
				s.rec = record.Record{UID: name, Name: name, Spec: &spec.SessionSpec{ClientClassName: "agent"}, ClassName: "agent", Class: class.Spec}
				ctl.sessions[name] = s
			}
			ctl.noteTurn(ctl.sessions["a"], failed.Add(c.turn))
			ctl.noteFailure(ctl.sessions["b"], class, observe.Sight{}, sight)
			assert.Len(t, ctl.holds.held, c.held)
		})
	}
}

// One session tries a credential for all that wait for it: one that cannot be started
// would keep the others waiting.
func TestASessionThatCannotBeStartedTriesNoCredential(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(*session, *plan.Input)
		tries   bool
	}{
		"nothing else is in its way": {func(*session, *plan.Input) {}, true},
		"it is blocked":              {func(s *session, _ *plan.Input) { s.rec.Block = &record.Block{} }, false},
		"what blocked it is mended":  {func(s *session, in *plan.Input) { s.rec.Block, in.Block = &record.Block{}, plan.ObstacleCleared }, true},
		"its directory is missing":   {func(_ *session, in *plan.Input) { in.Workspace.Obstacle = spec.ReasonWorkspaceMissing }, false},
		"another has what it had":    {func(_ *session, in *plan.Input) { in.Rival = "b" }, false},
		"a process has what it had":  {func(_ *session, in *plan.Input) { in.Evidence.Holder = 4711 }, false},
		"its document is refused":    {func(_ *session, in *plan.Input) { in.Desired.Refusal.Reason = spec.ReasonDuplicateName }, false},
		"it is to stay down":         {func(s *session, _ *plan.Input) { s.rec.Latch = &record.Latch{} }, false},
	} {
		s, in := newSession("a"), plan.Input{}
		c.arrange(s, &in)
		assert.Equal(t, c.tries, mayTry(s, &in, &spec.SessionSpec{}), name)
	}
}

// A clock that is set back stretches no hold, but for one until a stated time.
func TestAHoldGrowsNotWithAClockThatIsSetBack(t *testing.T) {
	at := time.Unix(100_000, 0)
	h := hold{since: at, until: at.Add(5 * time.Minute)}
	h.clamp(at.Add(time.Minute))
	assert.Equal(t, hold{since: at, until: at.Add(5 * time.Minute)}, h)
	back := at.Add(-time.Hour)
	h.clamp(back)
	assert.Equal(t, hold{since: back, until: back.Add(5 * time.Minute)}, h)
	stated := hold{since: at, until: at.Add(5 * time.Minute), stated: true}
	stated.clamp(back)
	assert.Equal(t, hold{since: back, until: at.Add(5 * time.Minute), stated: true}, stated)
}
