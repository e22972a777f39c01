// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/client"
	"github.com/muxlet/muxlet/actuate/launch"
	"github.com/muxlet/muxlet/actuate/notify"
	actuatesystemd "github.com/muxlet/muxlet/actuate/systemd"
	actuatetmux "github.com/muxlet/muxlet/actuate/tmux"
	"github.com/muxlet/muxlet/actuate/workspace"
	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller"
	controllermetrics "github.com/muxlet/muxlet/controller/metrics"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/observe"
	observeclient "github.com/muxlet/muxlet/observe/client"
	"github.com/muxlet/muxlet/observe/client/probe"
	"github.com/muxlet/muxlet/observe/client/report"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

// deathPoll is how often deaths are looked for where the system gives no notice.
const deathPoll = time.Second

// showWaitingAfter is how long who waits for a person is gathered for the status line.
const showWaitingAfter = 100 * time.Millisecond

const passwdFile = "/etc/passwd"

// tmuxConf is the name of the tmux server's configuration in the runtime directory.
const tmuxConf = "tmux.conf"

// newController puts the parts together.
func (g *globals) newController(s *config.Effective, reloads *reloader, recorder *status.Recorder, instance *instanceLock, log logr.Logger) (c *controller.Controller, closeAll func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find the muxlet program: %w", err)
	}
	configuration := newTmuxConfiguration(s, muxletCommand(self, s))
	reloads.tmux = configuration
	deaths, err := process.NewWatcher(deathPoll, clock.RealClock{})
	if err != nil {
		return nil, nil, fmt.Errorf("watch processes: %w", err)
	}
	given, _ := g.lookupEnv("SHELL")
	shell, err := actuatetmux.AccountShell(passwdFile, g.uid, given)
	if err != nil {
		log.Error(err, "Account's shell is not known, using another", "shell", shell.Path)
	}
	if !shell.Supported {
		tellShell(recorder, shell, g.now())
	}
	base := g.baseEnvironment(shell.Path)
	conn := &tmux.Conn{
		Socket: s.Paths.TmuxSocket(), Command: s.Tmux.Command, Env: base, TimeoutOf: reloads.tmuxTimeout, TicksOf: ticksOf,
	}
	reports, err := listenForReports(s.Paths, log)
	if err != nil {
		return nil, nil, errors.Join(err, deaths.Close())
	}
	configuration.log, configuration.tell = log, reloads.tell
	configuration.trial = &actuatetmux.Trial{
		Conf: configuration.confFile(),
		Conn: &tmux.Conn{Socket: filepath.Join(s.Paths.SocketDir(), "include.sock"), Command: s.Tmux.Command, Env: base},
	}
	groups, closeGroups := g.newScopes(log)
	counted := controllermetrics.New(version, g.now())
	conn.Called = counted.TmuxCalled
	wire := wiring{Effective: s, self: self, shell: shell, conn: conn, configuration: configuration, uid: g.uid}
	c = controller.New(controller.Options{
		Log: log, Clock: clock.RealClock{}, NewID: uuid.NewString, Version: version,
		Initial:  controllerSettings(s),
		StateDir: s.StateDir, RuntimeDir: s.RuntimeDir, Socket: conn.Socket,
		CompareBoot: func(stored string) (string, string) { return compareBoot(stored, s.Observation.BootIDPath) },
		Base:        base, Shell: shell.Path,
		Tmux:      conn,
		Processes: process.Table{LeasePath: func(uid string) string { return launch.LeasePath(s.RuntimeDir, uid) }},
		Receipts:  launch.Receipts{StateDir: s.StateDir}, Deaths: deaths, Limits: process.Limits, Scopes: groups,
		Clients: &observeclient.Eyes{}, Prober: probe.Runner{}, Reports: reports, Hooks: client.Hooks{Self: self, StateDir: s.StateDir},
		ClaimInstance: instance.claim, SharedUnit: sharedUnit, TmuxConfiguration: configuration.Name, ShowWaitingAfter: showWaitingAfter, PrepareRuntime: wire.prepareRuntime, NewActuator: wire.actuator,
		Workspaces: &workspace.Directories{Lookup: g.lookupEnv},
		Notifier:   notify.Person{Environ: g.environ(), Home: g.home, Conn: conn},
		Store:      record.NewStore(s.StateDir), Recorder: recorder, TurnStore: turn.NewStore(s.StateDir, wallClock, reloads.turnLimits),
		Metrics: counted,
	})
	configuration.changed = c.Reconfigure
	conn.BinaryOf, conn.SocketOf = c.ServerBinary(process.Executable), c.RecordedSocket
	return c, func() { closeGroups(); _, _ = deaths.Close(), reports.Close() }, wire.prepareRuntime()
}

// wallClock is the time as it is written to disk.
func wallClock() time.Time { return time.Now().UTC().Round(0) }

// tellShell says that another shell stands in for the account's own.
func tellShell(recorder *status.Recorder, shell actuatetmux.Shell, now time.Time) {
	message := fmt.Sprintf("%s: %s is used for shellMode Interactive and Login", shell.Problem(), shell.Path)
	// The recorder keeps it in memory even when the file cannot be written, and the
	// daemon has just proven that its state can.
	_ = recorder.Record(status.Event{Type: string(plan.Warning), Reason: spec.ReasonShellUnsupported, Message: message, Last: now.UTC().Round(0)})
}

// reports takes those of the clients' hooks.
type reports struct {
	*report.Listener
	spool string
	log   logr.Logger
}

func listenForReports(p config.Paths, log logr.Logger) (reports, error) {
	listener, err := report.Listen(p.ReportsSocket(), p.Spool())
	return reports{listener, p.Spool(), log}, err
}

// Spooled is Reports'.
func (r reports) Spooled() ([]observe.Report, error) {
	waiting, err := report.ReadSpool(r.spool)
	found := make([]observe.Report, 0, len(waiting))
	for _, w := range waiting {
		found = append(found, w.Report)
	}
	return found, err
}

// Serve is Reports'.
func (r reports) Serve(ctx context.Context, take func(context.Context, observe.Report) error) error {
	return r.Listener.Serve(logr.NewContext(ctx, r.log), take)
}

func ticksOf(pid int) uint64 {
	p, _ := process.Identify(pid)
	return p.Ticks
}

// wiring is what the actuators and the runtime directory are made of.
type wiring struct {
	*config.Effective
	self          string
	configuration *tmuxConfiguration
	shell         actuatetmux.Shell
	conn          *tmux.Conn
	uid           int
}

func (w wiring) actuator(instance string) actuate.Actuator {
	return actuate.Route{
		Tmux: actuatetmux.New(actuatetmux.Config{
			Conn: w.conn, Instance: instance, Binary: w.self, StateDir: w.StateDir, RuntimeDir: w.RuntimeDir, Shell: w.shell,
			Conf: w.configuration.confFile(), Include: w.configuration.includeFile(), Undo: w.configuration.undoFile(),
		}),
		Client:  client.Actuator{},
		Systemd: actuatesystemd.Actuator{System: underSystemManager(), Environ: os.Environ()},
	}
}

// prepareRuntime makes the runtime directory and what must be in it: somebody
// may have cleaned it away under the running daemon.
func (w wiring) prepareRuntime() error {
	for _, dir := range []string{w.RuntimeDir, filepath.Join(w.RuntimeDir, "lease"), w.Paths.SocketDir(), filepath.Join(w.StateDir, "receipts")} {
		if err := makePrivate(dir, w.uid); err != nil {
			return err
		}
	}
	return w.configuration.write()
}

// baseEnvironment is what tmux, and clients of shellMode None, get of the
// daemon's own environment.
func (g *globals) baseEnvironment(shell string) []string {
	return baseOf(g.lookupEnv, g.home, shell)
}

func baseOf(lookup func(string) (string, bool), home, shell string) []string {
	values := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "SHELL": shell}
	if home != "" {
		values["HOME"] = home
	}
	if u, err := user.Current(); err == nil {
		values["USER"], values["LOGNAME"] = u.Username, u.Username
	}
	var base []string
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG"} {
		value := values[name]
		if given, ok := lookup(name); ok && given != "" && name != "SHELL" {
			value = given
		}
		if value != "" {
			base = append(base, name+"="+value)
		}
	}
	return base
}
