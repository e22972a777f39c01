// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const tmuxUnit = "muxlet-tmux.service"

// external is a world whose tmux server is systemd's to execute.
func external(t *testing.T) *envtest.Env {
	t.Helper()
	return envtest.Make(t, envtest.Config{Adjust: func(o *controller.Options) { o.Initial.ServerUnit = tmuxUnit }})
}

// owner stands for systemd: it executes the server in the foreground and without our
// configuration, as the unit does.
func owner(e *envtest.Env) envtest.Act {
	return func(_ context.Context, a actuate.Action, do func() actuate.Outcome) actuate.Outcome {
		if a.Kind != actuate.ActionStartUnit {
			return do()
		}
		assert.Equal(e, tmuxUnit, a.Unit)
		cmd := exec.Command("tmux", "-S", e.Socket(), "-f", "/dev/null", "-D")
		cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + e.Home, "LANG=C.UTF-8", "SHELL=/bin/sh"}, "/", &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return actuate.Outcome{Result: actuate.ResultFailed, Message: err.Error()}
		}
		go func() { _ = cmd.Wait() }()
		return actuate.Outcome{Result: actuate.ResultDone}
	}
}

// waits is why a session waits for a server.
func waits(e *envtest.Env, name string) string {
	e.Helper()
	s := e.WaitFor(name, envtest.Condition(spec.ConditionReady, metav1.ConditionFalse, spec.ReasonTmuxServerFailed))
	return meta.FindStatusCondition(s.Status.Conditions, spec.ConditionReady).Message
}

func TestTheUnitOfTheServerIsAskedForOnceASessionWaits(t *testing.T) {
	t.Parallel()
	e := external(t)
	e.OnAct(owner(e))
	e.Boot()
	e.Run("work")
	assert.Empty(t, e.Actions(actuate.ActionStartServer), "the daemon executes no server")
	assert.Len(t, e.Actions(actuate.ActionStartUnit), 1)
	assert.Len(t, e.Servers(), 1)
	assert.NotEmpty(t, e.Events("", spec.ReasonServerAsked))
}

func TestAServerThatIsLostIsAskedForAnew(t *testing.T) {
	t.Parallel()
	e := external(t)
	e.OnAct(owner(e))
	e.Boot()
	e.Run("work")
	first := e.Server()
	e.KillServer()
	e.Eventually("the session lives in another server", func() bool {
		l, ok := e.Listing()
		return ok && l.Server.Process != first && len(l.Panes) == 1
	})
	e.WaitFor("work", envtest.Incarnation(2), envtest.Running)
	assert.Empty(t, e.Actions(actuate.ActionStartServer))
}

func TestWithoutTheRightToStartTheUnitSessionsWaitAndSayWhatToType(t *testing.T) {
	t.Parallel()
	e := external(t)
	e.OnAct(func(_ context.Context, a actuate.Action, do func() actuate.Outcome) actuate.Outcome {
		if a.Kind == actuate.ActionStartUnit {
			return actuate.Outcome{Result: actuate.ResultFailed, Reason: spec.ReasonTmuxServerFailed, Message: "start it with: systemctl start x"}
		}
		return do()
	})
	e.Boot()
	e.Apply(e.Fake("work", envtest.Script{}))
	assert.Contains(t, waits(e, "work"), "systemctl start x")
	assert.Empty(t, e.Servers())
	e.OnAct(owner(e))
	e.WaitFor("work", envtest.Running)
}

// That systemd has taken the job proves no server.
func TestAUnitThatBringsNoServerIsTold(t *testing.T) {
	t.Parallel()
	e := external(t)
	e.OnAct(func(_ context.Context, a actuate.Action, do func() actuate.Outcome) actuate.Outcome {
		if a.Kind == actuate.ActionStartUnit {
			return actuate.Outcome{Result: actuate.ResultDone}
		}
		return do()
	})
	e.Boot()
	e.Apply(e.Fake("work", envtest.Script{}))
	assert.Contains(t, waits(e, "work"), "systemd was asked to start "+tmuxUnit)
	e.OnAct(owner(e))
	e.WaitFor("work", envtest.Running)
	require.Len(t, e.Servers(), 1)
}

// A server in the daemon's own unit ends with the daemon: that is told once for each server.
func TestAServerInTheDaemonsOwnUnitIsToldOnce(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) {
		o.SharedUnit = func(observe.Process) string { return "mine.service" }
	}})
	e.Run("work")
	told := func() (n int32) {
		for _, event := range e.Events("", spec.ReasonServerSharesUnit) {
			assert.Equal(t, "Warning", event.Type)
			assert.Contains(t, event.Message, "in this daemon's own unit mine.service")
			n += max(event.Count, 1)
		}
		return n
	}
	e.Eventually("it is told", func() bool { return told() == 1 })
	e.Run("another")
	assert.EqualValues(t, 1, told())
	e.KillServer()
	e.Eventually("it is told of the next server", func() bool { return told() == 2 })
}
