// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/client"
	"github.com/muxlet/muxlet/actuate/launch"
	actuatetmux "github.com/muxlet/muxlet/actuate/tmux"
	"github.com/muxlet/muxlet/actuate/workspace"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/metrics"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	observeclient "github.com/muxlet/muxlet/observe/client"
	"github.com/muxlet/muxlet/observe/client/probe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec/manifest"
)

// build puts a controller together as the daemon does.
func (e *Env) build(l *ledger) (*controller.Controller, func() error, error) {
	if err := e.prepare(); err != nil {
		return nil, nil, err
	}
	deaths, err := process.NewWatcher(time.Second, clock.RealClock{})
	if err != nil {
		return nil, nil, err
	}
	recorder, err := status.OpenRecorder(e.State, 1000)
	if err != nil {
		return nil, nil, errors.Join(err, deaths.Close())
	}
	reports, err := e.listen()
	if err != nil {
		return nil, nil, errors.Join(err, deaths.Close(), recorder.Close())
	}
	conn, counted := *e.conn, metrics.New("test", time.Now())
	conn.Called = counted.TmuxCalled
	o := controller.Options{
		Log: e.log.logger(), Clock: clock.RealClock{}, NewID: uuid.NewString, Version: "test",
		Initial: controller.Settings{
			Manifests: []string{e.Manifests}, ManifestPolicy: manifest.Policy{Settle: Settle, GuardMin: 3, GuardPercent: 50},
			Policy: e.Policy, Resync: Resync, MaxInFlight: e.MaxInFlight,
			MassDeathMin: 5, MassDeathPercent: 50, ArchiveFor: time.Hour, Turns: e.TurnLimits,
			ReportTTL: 5 * time.Minute, FocusAfter: Resync,
		},
		StateDir: e.State, RuntimeDir: e.Runtime, Socket: e.Socket(),
		CompareBoot: func(string) (string, string) { return "unknown", "" },
		Base:        e.base(), Shell: e.Shell,
		Tmux: &conn, Processes: process.Table{LeasePath: func(uid string) string { return launch.LeasePath(e.Runtime, uid) }},
		Receipts: countedReceipts{launch.Receipts{StateDir: e.State}, l}, Deaths: deaths, Limits: process.Limits,
		Clients: &observeclient.Eyes{}, Prober: probe.Runner{}, Reports: reports, Hooks: client.Hooks{Self: e.self, StateDir: e.State},
		PrepareRuntime: e.prepare,
		ClaimInstance:  func(string) error { return nil },
		NewActuator: func(instance string) actuate.Actuator {
			return hooked{inner: countedActuator{e.actuator(&conn, instance), l}, acts: &e.acts}
		},
		Workspaces: countedWorkspaces{&workspace.Directories{Lookup: e.lookup}, l},
		Store:      countedRecords{record.NewStore(e.State), l, &e.saves}, Recorder: recorder,
		Metrics:   counted,
		TurnStore: countedTurns{turn.NewStore(e.State, func() time.Time { return time.Now().UTC().Round(0) }, func() turn.Limits { return e.TurnLimits }), l},
	}
	if e.Adjust != nil {
		e.Adjust(&o)
	}
	c := controller.New(o)
	conn.BinaryOf = c.ServerBinary(process.Executable)
	if e.Meddled {
		// The script stands for the running server's binary too.
		conn.BinaryOf = nil
	}
	return c, func() error { return errors.Join(deaths.Close(), recorder.Close()) }, nil
}

func (e *Env) actuator(conn *tmux.Conn, instance string) actuate.Actuator {
	return actuate.Route{
		Tmux: actuatetmux.New(actuatetmux.Config{
			Conn: conn, Instance: instance, Binary: e.self, StateDir: e.State, RuntimeDir: e.Runtime, Conf: e.conf(),
			Shell:       actuatetmux.Shell{Path: e.Shell, Supported: true, Account: e.Shell},
			LaunchExtra: []string{"--bench", e.Dir},
		}),
		Client: client.Actuator{},
	}
}

func (e *Env) conf() string { return filepath.Join(e.Runtime, "tmux.conf") }

func (e *Env) lookup(name string) (string, bool) {
	for _, pair := range e.base() {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// prepare makes the runtime directory and what must be in it.
func (e *Env) prepare() error {
	for _, dir := range []string{e.State, e.Runtime, filepath.Join(e.Runtime, "lease"), filepath.Join(e.State, "receipts")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	// The product embeds the file; this package may not import it from there.
	_, here, _, _ := runtime.Caller(0)
	conf, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../config/tmux/muxlet.conf"))
	if err != nil {
		return fmt.Errorf("read tmux configuration: %w", err)
	}
	if err := os.WriteFile(e.conf(), conf, 0o600); err != nil {
		return fmt.Errorf("write tmux configuration: %w", err)
	}
	return nil
}

func ticksOf(pid int) uint64 {
	p, _ := process.Identify(pid)
	return p.Ticks
}

// Kill sends SIGKILL to a process by its identity; see Signal.
func (e *Env) Kill(p observe.Process) {
	e.Helper()
	e.Signal(p, "SIGKILL")
}

// logBuffer keeps what the controllers logged, for a test that fails.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write is io.Writer's.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is everything.
func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logBuffer) logger() logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.Level(-1), ReplaceAttr: shortTime}))
}

func shortTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		a.Value = slog.StringValue(a.Value.Time().Format(time.StampMilli))
	}
	return a
}

// Log is what the controllers of this world logged.
func (e *Env) Log() string { return e.log.String() }
