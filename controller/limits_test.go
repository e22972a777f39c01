// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

func openFiles(t *testing.T, pid int) (l unix.Rlimit) {
	t.Helper()
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l))
	return l
}

func limitOpenFiles(t *testing.T, pid int, soft uint64) {
	t.Helper()
	l := openFiles(t, pid)
	l.Cur = soft
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &l, nil))
}

// A server that is about to run out of descriptors gets no more clients, says so,
// and goes on by itself when there is room.
func TestAServerThatRunsOutOfFilesGetsNoMoreClients(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "gone")
	a, server := e.Client("a"), e.Server()
	before := openFiles(t, server.PID)
	e.Drop() // what it saw of the server is true for a second
	limitOpenFiles(t, server.PID, uint64(process.Limits(server).ServerFiles.Used+20))
	e.Boot()
	e.Apply(e.Fake("b", envtest.Script{}))
	e.Kill(e.Client("gone").Process)
	for _, name := range []string{"b", "gone"} {
		s := e.WaitFor(name, envtest.Shows(spec.StatusBlocked), envtest.Condition(spec.ConditionReady, metav1.ConditionFalse, spec.ReasonTooManyOpenFiles),
			envtest.Condition(spec.ConditionStalled, metav1.ConditionTrue, spec.ReasonTooManyOpenFiles))
		assert.Contains(t, s.Status.Decision.Message, "prlimit --pid")
		e.Eventually("an event tells of it", func() bool { return len(e.Events(name, spec.ReasonTooManyOpenFiles)) == 1 })
	}
	e.Always(stays, "nothing is started", func() bool { return len(e.Launches("b")) == 0 && len(e.Launches("gone")) == 1 })
	assert.Equal(t, a.Process, e.Client("a").Process)

	limitOpenFiles(t, server.PID, before.Cur)
	e.WaitFor("b", envtest.Running)
	e.WaitFor("gone", envtest.Incarnation(2))
	assert.Equal(t, a.Process, e.Client("a").Process)
	assert.Equal(t, server, e.Server())
}

func TestASystemThatRunsOutOfTerminalsGetsNoMoreClients(t *testing.T) {
	t.Parallel()
	full := make(chan struct{})
	e := envtest.Start(t, envtest.Config{Adjust: func(o *controller.Options) {
		o.Limits = func(server observe.Process) observe.Limits {
			l := process.Limits(server)
			select {
			case <-full:
				l.Terminals = observe.Use{Used: 10, Limit: 4096}
			default:
				l.Terminals = observe.Use{Used: 4090, Limit: 4096}
			}
			return l
		}
	}})
	e.Apply(e.Fake("a", envtest.Script{}))
	e.WaitFor("a", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonTooManyTerminals))
	assert.Empty(t, e.Launches("a"))
	close(full)
	e.WaitFor("a", envtest.Running)
}

// systemd starts services with room for 1024 descriptors, and lets them have more.
func TestTheServerIsStartedWithRoomForManyPanes(t *testing.T) {
	t.Parallel()
	e := envtest.Make(t, envtest.Config{Meddled: true})
	e.Meddle("ulimit -S -n 256")
	e.Boot()
	e.Run("a")
	l := openFiles(t, e.Server().PID)
	assert.Equal(t, min(l.Max, 65536), l.Cur)
}
