// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What a service manager says to a daemon, and the daemon to it, is sd_notify(3),
// sd_watchdog_enabled(3) and sd_listen_fds(3): three variables and a datagram. The variables
// are the daemon's alone: a probe, a notification's command or a tmux server that had them
// would speak in its name.
var managerVariables = []string{
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES",
}

const (
	// firstListener is the first descriptor that a manager hands over, apiListener the name of
	// that of the API (FileDescriptorName=).
	firstListener = 3
	apiListener   = "api"
	// mostListeners bounds what LISTEN_FDS is believed.
	mostListeners = 64
	// tellPatience is how long a manager that does not read is waited for: the daemon's end, and
	// a reload of the settings, wait for it too.
	tellPatience = 500 * time.Millisecond
)

// serviceManager is whoever has started this daemon, if it wants to be told how it is. The
// zero value is nobody.
type serviceManager struct {
	// socket that is told; empty when there is none.
	socket string
	// watchdog is within which time a sign of life is expected; 0 for none.
	watchdog time.Duration
	// api listens on the API's socket, in the manager's name; nil when it was not handed over.
	api *os.File
	// file of that socket, once it was seen.
	file os.FileInfo

	mu sync.Mutex
	// ready is true once the manager was told so.
	ready bool
}

// takeManager takes what a service manager has said to process pid out of the environment.
func takeManager(lookup func(string) (string, bool), unset func(string) error, pid int) (*serviceManager, error) {
	given := map[string]string{}
	for _, name := range managerVariables {
		value, ok := lookup(name)
		if !ok {
			continue
		}
		given[name] = value
		if err := unset(name); err != nil {
			return nil, fmt.Errorf("take %s out of the environment: %w", name, err)
		}
	}
	m := &serviceManager{socket: given["NOTIFY_SOCKET"]}
	ours := func(name string) bool { return given[name] == "" || given[name] == strconv.Itoa(pid) }
	if usec, err := strconv.ParseInt(given["WATCHDOG_USEC"], 10, 64); err == nil && usec > 0 && ours("WATCHDOG_PID") {
		m.watchdog = time.Duration(usec) * time.Microsecond
	}
	if n, err := strconv.Atoi(given["LISTEN_FDS"]); err == nil && given["LISTEN_PID"] == strconv.Itoa(pid) {
		m.takeListeners(min(n, mostListeners), strings.Split(given["LISTEN_FDNAMES"], ":"))
	}
	return m, nil
}

// takeListeners keeps the descriptor with the API's name, and gives none of them to a child.
func (m *serviceManager) takeListeners(n int, names []string) {
	for i := range n {
		fd := firstListener + i
		unix.CloseOnExec(fd)
		if i < len(names) && names[i] == apiListener && m.api == nil {
			m.api = os.NewFile(uintptr(fd), apiListener)
			continue
		}
		// Nobody would ever answer there.
		_ = unix.Close(fd)
	}
}

// listener is the API's socket as the manager has opened it, as long as its file is at path; nil
// when there is none, or no longer. Closing it leaves the manager's socket, and its file, as
// they are. It belongs to one goroutine.
func (m *serviceManager) listener(path string) (net.Listener, error) {
	if m.api == nil {
		return nil, nil
	}
	l, err := net.FileListener(m.api)
	if err != nil {
		return nil, m.forgetListener(fmt.Errorf("listen on the socket of the service manager: %w", err))
	}
	here, err := os.Stat(path)
	if err == nil && m.file == nil && leads(path) {
		m.file, err = os.Stat(l.Addr().String())
	}
	if err == nil && m.file != nil && os.SameFile(here, m.file) {
		return l, nil
	}
	_ = l.Close()
	return nil, m.forgetListener(fmt.Errorf("the socket of the service manager, %s, is not at %s (any more)", l.Addr(), path))
}

// leads says whether anybody listens at path. The file that the manager has made may have been
// removed, and another one be left there by a daemon that was killed; nothing else tells one
// from the other, since both have the same name.
func leads(path string) bool {
	conn, err := net.DialTimeout("unix", path, tellPatience)
	if err == nil {
		_ = conn.Close()
	}
	return !errors.Is(err, unix.ECONNREFUSED)
}

func (m *serviceManager) forgetListener(why error) error {
	_ = m.api.Close()
	m.api = nil
	return why
}

// tell sends the manager what has changed, one NAME=value a line.
func (m *serviceManager) tell(lines ...string) error {
	if m.socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	defer func() { _ = conn.Close() }()
	err = conn.SetWriteDeadline(time.Now().Add(tellPatience))
	if err == nil {
		_, err = conn.Write([]byte(strings.Join(lines, "\n")))
	}
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	return nil
}

// reloading tells the manager that the settings are read again; what it returns, that they
// were. A manager that was not told that the daemon is ready must not hear it by this.
func (m *serviceManager) reloading() (over func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var now unix.Timespec
	if !m.ready || unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return func() {}
	}
	// A manager that has gone needs no answer.
	_ = m.tell("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/int64(time.Microsecond)))
	return func() { _ = m.tell("READY=1") }
}

// isReady tells the manager so, once.
func (m *serviceManager) isReady(lines ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready {
		return nil
	}
	if err := m.tell(append([]string{"READY=1"}, lines...)...); err != nil {
		return err
	}
	m.ready = true
	return nil
}
