// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muxlet/muxlet/spec"
)

// answer of one command.
type answer struct {
	out, errOut string
	code        int
	took        time.Duration
}

// text is everything that a person sees.
func (a answer) text() string { return a.out + a.errOut }

// muxlet runs a verb. A person's terminal is not there.
func (w *World) muxlet(args ...string) answer {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errOut bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.env, w.home, &out, &errOut
	began := time.Now()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(w, err)
	}
	require.NoError(w, ctx.Err(), "muxlet %s does not end", strings.Join(args, " "))
	return answer{out: out.String(), errOut: errOut.String(), code: cmd.ProcessState.ExitCode(), took: time.Since(began)}
}

// does runs a verb that must go well and returns what it prints.
func (w *World) does(args ...string) string {
	w.Helper()
	a := w.muxlet(args...)
	require.Equal(w, 0, a.code, "muxlet %s: %s", strings.Join(args, " "), a.text())
	return a.out
}

// refuses runs a verb that must fail with that code in one sentence, and returns
// the sentence.
func (w *World) refuses(code int, args ...string) string {
	w.Helper()
	a := w.muxlet(args...)
	require.Equal(w, code, a.code, "muxlet %s: %s", strings.Join(args, " "), a.text())
	assert.Empty(w, a.out)
	assert.Equal(w, 1, strings.Count(strings.TrimSpace(a.errOut), "\n")+1, "one line: %s", a.errOut)
	return a.errOut
}

// get is the session as the daemon shows it now; nil when it does not.
func (w *World) get(name string) *spec.Session {
	s, err := w.api.Session(w.Context(), name)
	if err != nil {
		return nil
	}
	return s
}

// status is the word of the STATUS column; empty without a session.
func (w *World) status(name string) spec.Status {
	s := w.get(name)
	if s == nil {
		return ""
	}
	return spec.DisplayStatus(s)
}

// reaches waits until the session has a status and returns it.
func (w *World) reaches(name string, status spec.Status) *spec.Session {
	w.Helper()
	return w.becomes(name, string(status), func(s *spec.Session) bool { return spec.DisplayStatus(s) == status })
}

// becomes waits until the session is as it should be.
func (w *World) becomes(name, what string, as func(*spec.Session) bool) *spec.Session {
	w.Helper()
	var last *spec.Session
	defer func() {
		if w.Failed() && last != nil {
			w.Logf("Session %s is %s: %+v", name, spec.DisplayStatus(last), last.Status)
		}
	}()
	w.waitFor("session "+name+" is "+what, func() bool {
		s := w.get(name)
		if s == nil {
			return false
		}
		last = s
		return as(s)
	})
	return last
}

// runs waits until a client of the session runs and is ready.
func (w *World) runs(name string) *spec.Session {
	w.Helper()
	return w.written(w.becomes(name, "running", isRunning))
}

// written waits until a fake client has written down its start: it runs a moment
// before.
func (w *World) written(s *spec.Session) *spec.Session {
	w.Helper()
	if len(s.Spec.Client.Command) == 0 || s.Spec.Client.Command[0] != w.dir+"/bin/fake" {
		return s
	}
	w.waitFor("client of "+s.Name+" writes down its start", func() bool {
		return slices.ContainsFunc(w.startsOf(s.Name), func(start start) bool { return start.pid == pid(s) })
	})
	return s
}

func isRunning(s *spec.Session) bool {
	return spec.DisplayStatus(s) == spec.StatusRunning && s.Status.Client.Ready && s.Status.Client.Pid != 0
}

// runsAs waits until that incarnation runs.
func (w *World) runsAs(name string, incarnation int64) *spec.Session {
	w.Helper()
	s := w.becomes(name, "running in a later incarnation", func(s *spec.Session) bool {
		return isRunning(s) && s.Status.Client.Incarnation >= incarnation
	})
	require.Equal(w, incarnation, s.Status.Client.Incarnation)
	return w.written(s)
}

// gone waits until the session is not known any more.
func (w *World) gone(name string) {
	w.Helper()
	w.waitFor("session "+name+" is gone", func() bool { return w.get(name) == nil && w.api.Healthy(w.Context()) == nil })
}

// pid of the client that runs.
func pid(s *spec.Session) int { return s.Status.Client.Pid }

// reason of a condition.
func reason(s *spec.Session, kind string) string {
	if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

func isTrue(s *spec.Session, kind string) bool {
	return meta.IsStatusConditionTrue(s.Status.Conditions, kind)
}

// events of the session, one line each.
func (w *World) events(name string) string {
	w.Helper()
	return w.does("get", "events", name)
}

// eventually waits until what the command prints contains all words.
func (w *World) eventually(args []string, words ...string) string {
	w.Helper()
	var text string
	defer func() {
		if w.Failed() {
			w.Logf("muxlet %s:\n%s", strings.Join(args, " "), text)
		}
	}()
	w.waitFor("muxlet "+strings.Join(args, " ")+" shows "+strings.Join(words, " and "), func() bool {
		text = w.muxlet(args...).text()
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false
			}
		}
		return true
	})
	return text
}
