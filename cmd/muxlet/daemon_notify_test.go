// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller"
)

// ear is what a service manager hears.
type ear struct {
	*testing.T
	conn *net.UnixConn
	path string
}

func listen(t *testing.T) *ear {
	t.Helper()
	dir, err := os.MkdirTemp("", "mx")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	e := &ear{T: t, path: filepath.Join(dir, "notify")}
	e.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: e.path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.conn.Close() })
	return e
}

// heard is what has been said so far and was not heard yet, one message each.
func (e *ear) heard() []string {
	e.Helper()
	var out []string
	buffer := make([]byte, 4096)
	for {
		// What was sent is there: a datagram is delivered by the call that sends it.
		require.NoError(e, e.conn.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		n, err := e.conn.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return out
		}
		require.NoError(e, err)
		out = append(out, string(buffer[:n]))
	}
}

// toldTo is a notifier with that ear.
func (e *ear) toldBy(watchdog time.Duration) *notifier {
	return &notifier{manager: &serviceManager{socket: e.path, watchdog: watchdog}, log: logr.Discard()}
}

func TestWhatAServiceManagerHasSaidIsTakenOutOfTheEnvironment(t *testing.T) {
	environment := map[string]string{
		"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "4711", "LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "api",
		"LISTEN_PIDFDID": "1", "HOME": "/home/u",
	}
	lookup := func(name string) (string, bool) { v, ok := environment[name]; return v, ok }
	m, err := takeManager(lookup, func(name string) error { delete(environment, name); return nil }, 4711)
	require.NoError(t, err)
	assert.Equal(t, "/run/n", m.socket)
	assert.Equal(t, 30*time.Second, m.watchdog)
	assert.Nil(t, m.api, "what is meant for another process is not ours")
	assert.Equal(t, map[string]string{"HOME": "/home/u"}, environment)
}

func TestAWatchdogOfAnotherProcessIsNotOurs(t *testing.T) {
	for name, given := range map[string]map[string]string{
		"another pid": {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},
		"no number":   {"WATCHDOG_USEC": "soon"},
		"zero":        {"WATCHDOG_USEC": "0"},
	} {
		lookup := func(name string) (string, bool) { v, ok := given[name]; return v, ok }
		m, err := takeManager(lookup, func(string) error { return nil }, 4711)
		require.NoError(t, err)
		assert.Zero(t, m.watchdog, name)
	}
}

func TestNobodyIsToldWhereNobodyAsked(t *testing.T) {
	m := &serviceManager{}
	require.NoError(t, m.tell("READY=1"))
	require.NoError(t, m.isReady())
	m.reloading()()
}

func TestTheManagerHearsOfTheFirstLookAndOfWhatChanges(t *testing.T) {
	e := listen(t)
	n := e.toldBy(0)
	now := time.Now()
	health := controller.Health{StartedAt: now, Live: true, ReadyReason: "sessions that were not looked at yet: 2", Sessions: map[string]int{"Unknown": 2}}
	require.NoError(t, n.look(health, now))
	assert.Equal(t, []string{"STATUS=2 unknown; sessions that were not looked at yet: 2\nEXTEND_TIMEOUT_USEC=30000000"}, e.heard())
	require.NoError(t, n.look(health, now.Add(9*time.Second)))
	assert.Empty(t, e.heard())
	require.NoError(t, n.look(health, now.Add(10*time.Second)))
	assert.Equal(t, []string{"EXTEND_TIMEOUT_USEC=30000000"}, e.heard(), "it may take as long as it takes")

	health.ReadyAt, health.Ready, health.ReadyReason = now, true, ""
	health.Sessions = map[string]int{"Running": 37, "Dormant": 2, "CrashLoopBackOff": 1}
	require.NoError(t, n.look(health, now))
	assert.Equal(t, []string{"READY=1\nSTATUS=37 running, 2 dormant, 1 backing off"}, e.heard())
	require.NoError(t, n.look(health, now))
	assert.Empty(t, e.heard(), "only changes are told")
	health.Ready, health.ReadyReason = false, "tmux does\nnot answer"
	require.NoError(t, n.look(health, now))
	assert.Equal(t, []string{"STATUS=37 running, 2 dormant, 1 backing off; tmux does not answer"}, e.heard())
}

// A host must not wait for ever, with half of it up, for a tmux that does not answer.
func TestADaemonThatLivesIsReadyAtLastThoughNotAllWasSeen(t *testing.T) {
	e := listen(t)
	n := e.toldBy(0)
	start := time.Now()
	health := controller.Health{StartedAt: start, Live: true, ReadyReason: "tmux does not answer"}
	require.NoError(t, n.look(health, start.Add(readyAtLast-time.Second)))
	assert.Equal(t, []string{"STATUS=no sessions; tmux does not answer\nEXTEND_TIMEOUT_USEC=30000000"}, e.heard())
	require.NoError(t, n.look(health, start.Add(readyAtLast)))
	assert.Equal(t, []string{"READY=1"}, e.heard())
	require.NoError(t, n.look(health, start.Add(2*readyAtLast)))
	assert.Empty(t, e.heard(), "once, and no more time is asked for")
}

func TestTheWatchdogIsFedAsLongAsTheLoopLives(t *testing.T) {
	e := listen(t)
	n := e.toldBy(30 * time.Second)
	start := time.Now()
	live := controller.Health{Live: true, Ready: true, ReadyAt: start}
	at := func(s int, h controller.Health) []string {
		require.NoError(t, n.look(h, start.Add(time.Duration(s)*time.Second)))
		return e.heard()
	}
	assert.Equal(t, []string{"READY=1\nSTATUS=no sessions\nWATCHDOG=1"}, at(0, live))
	fed := 0
	for s := 1; s <= 60; s++ {
		fed += len(at(s, live))
	}
	assert.Equal(t, 6, fed, "a third of the time each")

	mute := live
	mute.Ready, mute.ReadyReason = false, "tmux does not answer"
	assert.Equal(t, []string{"STATUS=no sessions; tmux does not answer\nWATCHDOG=1"}, at(75, mute), "tmux is not the daemon")

	still := live
	still.Live, still.LiveReason, still.Ready = false, "no worker of the loop was free for 1m1s", false
	assert.Equal(t, []string{"STATUS=no sessions; no worker of the loop was free for 1m1s"}, at(90, still))
	assert.Empty(t, at(100, still))
	assert.Equal(t, []string{"STATUS=no sessions\nWATCHDOG=1"}, at(110, live), "it has come round")
}

func TestALoopThatStandsStillBeforeTheFirstLookGetsNoMoreTime(t *testing.T) {
	e := listen(t)
	n := e.toldBy(0)
	require.NoError(t, n.look(controller.Health{LiveReason: "no worker of the loop was free for 1m1s"}, time.Now()))
	assert.Equal(t, []string{"STATUS=no sessions; no worker of the loop was free for 1m1s"}, e.heard())
}

func TestAReloadIsToldBetweenItsTwoWords(t *testing.T) {
	e := listen(t)
	m := &serviceManager{socket: e.path}
	m.reloading()()
	assert.Empty(t, e.heard(), "READY=1 of a reload would be taken for the first one")
	require.NoError(t, m.isReady("STATUS=x"))
	require.NoError(t, m.isReady("STATUS=x"))
	assert.Equal(t, []string{"READY=1\nSTATUS=x"}, e.heard())
	over := m.reloading()
	heard := e.heard()
	require.Len(t, heard, 1)
	assert.Regexp(t, `^RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]+$`, heard[0])
	over()
	assert.Equal(t, []string{"READY=1"}, e.heard())
}

func TestAManagerThatIsBackHearsEverythingAnew(t *testing.T) {
	e := listen(t)
	n := e.toldBy(0)
	health := controller.Health{Live: true, Ready: true, ReadyAt: time.Now()}
	path := e.path
	n.manager.socket = path + ".gone"
	n.note(n.look(health, time.Now()))
	n.note(n.look(health, time.Now()))
	n.manager.socket = path
	n.note(n.look(health, time.Now()))
	assert.Equal(t, []string{"READY=1\nSTATUS=no sessions"}, e.heard())
}

// The daemon's end and each reload would wait with it.
func TestAManagerThatHangsIsNotWaitedFor(t *testing.T) {
	e := listen(t)
	m := &serviceManager{socket: e.path, ready: true}
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		for m.tell("STATUS=x") == nil {
		}
		m.reloading()()
	}()
	select {
	case <-filled:
	case <-time.After(30 * time.Second):
		require.Fail(t, "whoever tells it hangs with it")
	}
}

func TestTheStatusIsOneShortLine(t *testing.T) {
	line := managerStatus(controller.Health{ReadyReason: strings.Repeat("ä ", 1000)})
	assert.Len(t, []rune(line), statusLength)
	assert.NotContains(t, line, "\n")
}

func TestEachStatusHasItsWord(t *testing.T) {
	all := map[string]int{}
	for i, w := range countedWords {
		all[string(w.status)] = i + 1
	}
	assert.Equal(t, "1 running, 2 starting, 3 stopping, 4 dormant, 5 suspended, 6 terminated, 7 completed, 8 backing off, 9 blocked, 10 invalid, 11 in conflict, 12 unknown",
		managerStatus(controller.Health{Sessions: all}))
}

// handed is a socket at path as a manager hands it over.
func handed(t *testing.T, path string) *serviceManager {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return &serviceManager{api: f}
}

func TestTheManagersSocketIsServedAndLeftWhereItIs(t *testing.T) {
	path := filepath.Join(filepath.Dir(listen(t).path), "api")
	m := handed(t, path)
	for range 2 {
		l, err := m.listener(path)
		require.NoError(t, err)
		require.NotNil(t, l)
		conn, err := net.Dial("unix", path)
		require.NoError(t, err)
		_, err = l.Accept()
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.NoError(t, l.Close())
		assert.FileExists(t, path)
	}
}

func TestAManagersSocketThatIsGoneIsUsedNoMore(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(filepath.Dir(listen(t).path), "api")
			m := handed(t, path)
			l, err := m.listener(path)
			require.NoError(t, err)
			require.NoError(t, l.Close())
			require.NoError(t, spoil(path))
			l, err = m.listener(path)
			require.Error(t, err)
			assert.Nil(t, l)
			l, err = m.listener(path)
			require.NoError(t, err, "told once")
			assert.Nil(t, l)
		})
	}
}

// Its file was removed under an earlier daemon, which made one of its own and was killed: at the
// path is what nobody listens on any more, and the manager still holds its socket.
func TestASocketFileThatLeadsNowhereIsNotTheManagers(t *testing.T) {
	path := filepath.Join(filepath.Dir(listen(t).path), "api")
	m := handed(t, path)
	require.NoError(t, os.Remove(path))
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	killed.SetUnlinkOnClose(false)
	require.NoError(t, killed.Close())
	l, err := m.listener(path)
	require.ErrorContains(t, err, "is not at "+path)
	assert.Nil(t, l)
}

func TestAManagersSocketElsewhereIsNotOurs(t *testing.T) {
	path := filepath.Join(filepath.Dir(listen(t).path), "api")
	m := handed(t, path+".other")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	l, err := m.listener(path)
	require.ErrorContains(t, err, path+".other, is not at "+path)
	assert.Nil(t, l)
}
