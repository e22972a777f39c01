// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// reloader keeps the settings of a running daemon up to date with their file. A
// file that cannot be used changes nothing and is named until it is mended; flags
// and environment go before the file as they did at the start; what needs a
// restart stays as it is.
type reloader struct {
	inputs config.Inputs
	flags  func(*config.Effective) *config.Effective
	log    logr.Logger
	level  *slog.LevelVar
	// timeout of a call of tmux, in nanoseconds.
	timeout  atomic.Int64
	recorder *status.Recorder
	// apply puts the settings of the controller in force.
	apply func(controller.Settings)
	// announce says that somebody has asked for a reload; what it returns, that it is over.
	announce func() (over func())
	// tmux is the configuration of the tmux server.
	tmux *tmuxConfiguration
	// watchers are served metrics.
	watchers *watchers

	mu      sync.Mutex
	running *config.Effective
	// waiting are the settings that need a restart to be used.
	waiting []string
	// problems are why the file is not in use; none when it is.
	problems []string
	// unsettled is what the file says of all sessions otherwise, and since when; nil when
	// there is nothing to wait for.
	unsettled      *config.Effective
	unsettledSince time.Time
}

// settingsSettle is how long a file must say the same before it edits sessions. One that is
// written in place is a shorter one for a moment, often a valid one, and each session would
// be edited there and back, and restarted twice.
const settingsSettle = time.Second

func newReloader(g *globals, running *config.Effective, level *slog.LevelVar, recorder *status.Recorder, log logr.Logger) (*reloader, error) {
	in, err := g.inputs()
	if err != nil {
		return nil, err
	}
	r := &reloader{inputs: in, flags: g.withFlags, log: log, level: level, recorder: recorder, running: running, watchers: newWatchers(running.Metrics.Listen, log)}
	r.timeout.Store(int64(running.Tmux.Timeout.Duration))
	return r, nil
}

// tmuxTimeout is the timeout of one call of tmux.
func (r *reloader) tmuxTimeout() time.Duration { return time.Duration(r.timeout.Load()) }

// turnLimits say which turns are kept.
func (r *reloader) turnLimits() turn.Limits {
	return turnLimits(r.current())
}

func turnLimits(s *config.Effective) turn.Limits {
	return turn.Limits{Turns: int(s.Retention.Turns), Age: s.Retention.TurnAge.Duration, Bytes: s.Retention.TurnBytes.Value()}
}

// run reads the settings again at notices of their file, at each hang-up signal,
// and now and then, since notices get lost. It returns when ctx ends.
func (r *reloader) run(ctx context.Context, hangUp <-chan os.Signal) {
	watcher := manifest.NewWatcher(r.log)
	defer func() { _ = watcher.Close() }()
	file := config.File(r.inputs)
	// The file may have gone before this daemon came.
	r.reload(false)
	for {
		if file != "" {
			// Links on the way to it are watched, and the directory that it may appear in.
			watcher.Sync(manifest.Read([]string{file}))
		}
		select {
		case <-ctx.Done():
			return
		case <-hangUp:
			over := r.announce()
			r.reload(true)
			over()
		case <-watcher.Hints():
			r.reload(false)
		case <-time.After(r.lookAfter()):
			r.reload(false)
		}
	}
}

// lookAfter is when the file is looked at without a notice.
func (r *reloader) lookAfter() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsettled == nil {
		return r.running.ResyncPeriod.Duration
	}
	return min(r.running.ResyncPeriod.Duration, settingsSettle)
}

// settled says whether the file has said the same for long enough. What says nothing else of
// all sessions than what is in force, or was asked for, waits for nothing.
func (r *reloader) settled(next *config.Effective, changed []string, asked bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, now := r.unsettled, time.Now()
	switch {
	case asked || !slices.ContainsFunc(changed, config.OfSessions):
	case before == nil || len(next.Changed(before)) > 0:
		r.unsettled, r.unsettledSince = next, now
		return false
	case now.Sub(r.unsettledSince) < settingsSettle:
		return false
	}
	r.unsettled = nil
	return true
}

func (r *reloader) current() *config.Effective {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// reload reads the settings once. Nothing is said when nothing has changed, unless
// somebody asked.
func (r *reloader) reload(asked bool) {
	running := r.current()
	next, err := config.Reload(r.inputs, running)
	if err != nil {
		r.refuse(config.Problems(err), asked)
		return
	}
	inUse, waiting := r.flags(next).Onto(running)
	changed := inUse.Changed(running)
	if !r.settled(inUse, changed, asked) {
		return
	}
	r.mu.Lock()
	mended := len(r.problems) > 0
	news := len(changed) > 0 || !slices.Equal(waiting, r.waiting)
	r.running, r.waiting, r.problems = inUse, waiting, nil
	r.mu.Unlock()
	if len(changed) > 0 {
		r.putInForce(inUse)
	}
	if len(changed) > 0 || asked {
		r.tmux.use(inUse)
		r.tmux.look(asked)
	}
	if news || mended || asked {
		r.log.Info("Reloaded settings", "settings", inUse.File, "changed", changed, "needRestart", waiting)
	}
	if news || mended {
		r.tell(plan.Normal, spec.ReasonSettingsReloaded, reloadedMessage(changed, waiting))
	}
}

// refuse keeps the earlier settings and says why, once for the same mistake.
func (r *reloader) refuse(problems []string, asked bool) {
	r.mu.Lock()
	news := !slices.Equal(problems, r.problems)
	r.problems, r.unsettled = problems, nil
	r.mu.Unlock()
	if !news && !asked {
		return
	}
	message := strings.Join(problems, "; ")
	r.log.Info("Settings cannot be used, the earlier ones stay in force", "problem", message)
	if news {
		r.tell(plan.Warning, spec.ReasonSettingsInvalid, "The settings cannot be used, the earlier ones stay in force: "+message)
	}
}

func (r *reloader) putInForce(s *config.Effective) {
	r.level.Set(levelOf(s.Logging))
	r.timeout.Store(int64(s.Tmux.Timeout.Duration))
	r.watchers.use(s.Metrics.Listen)
	r.recorder.SetLimit(int(s.Retention.Events))
	r.apply(controllerSettings(s))
	remember(s, r.log)
}

func reloadedMessage(changed, waiting []string) string {
	message := "The settings are in force"
	if len(changed) > 0 {
		message = "The settings were read again; changed: " + strings.Join(changed, ", ")
	}
	if len(waiting) > 0 {
		message += fmt.Sprintf("; %s: used once the daemon is started again", strings.Join(waiting, ", "))
	}
	return message
}

func (r *reloader) tell(kind plan.EventType, reason, message string) {
	err := r.recorder.Record(status.Event{Type: string(kind), Reason: reason, Message: message, Last: time.Now().UTC().Round(0)})
	if err != nil {
		r.log.Error(err, "Event was not written")
	}
}

// controllerSettings are what the controller needs of the settings.
func controllerSettings(s *config.Effective) controller.Settings {
	return controller.Settings{
		Manifests: s.Manifests, SessionDefaults: s.Sessions,
		ManifestPolicy: manifest.Policy{Settle: s.Removal.Settle.Duration, GuardMin: int(s.Removal.GuardMin), GuardPercent: int(s.Removal.GuardPercent), DefaultClass: s.DefaultClientClassName},
		Policy: plan.Policy{
			BackOffInitial: s.BackOff.Initial.Duration, BackOffMax: s.BackOff.Max.Duration, BackOffReset: s.BackOff.ResetAfter.Duration,
			UnknownGrace: s.Observation.UnknownGracePeriod.Duration,
		},
		Scopes: s.Scopes,
		Resync: s.ResyncPeriod.Duration, TmuxTimeout: s.Tmux.Timeout.Duration, MaxInFlight: int(s.Starts.MaxInFlight),
		MassDeathMin: int(s.MassDeath.MinSessions), MassDeathPercent: int(s.MassDeath.Percent),
		ReportTTL: s.Activity.ReportTTL.Duration, FocusAfter: s.Activity.FocusAfter.Duration,
		Notifications: controller.Notifications{
			Way: actuate.NotificationWay{Command: s.Notifications.Command, Timeout: s.Notifications.Timeout.Duration, Terminal: s.Notifications.Terminal},
			On:  s.Notifications.On, MinInterval: s.Notifications.MinInterval.Duration,
		},
		ServerUnit: serverUnit(s),
		ArchiveFor: s.Retention.Archive.Duration, ArchiveBytes: s.Retention.ArchiveBytes.Value(), ScreenBytes: s.Retention.ScreenBytes.Value(),
		Turns: turnLimits(s),
	}
}

// serverUnit is the unit that executes the tmux server; empty when the daemon does.
func serverUnit(s *config.Effective) string {
	if s.Tmux.Server == config.TmuxExternal {
		return s.Tmux.Unit
	}
	return ""
}

// served is the API's backend: the controller, and the settings that it runs
// with.
type served struct {
	*controller.Controller
	settings *reloader
}

// Status is the controller's, with what is wrong with the settings.
func (s served) Status() server.DaemonStatus {
	st := s.Controller.Status()
	s.settings.mu.Lock()
	defer s.settings.mu.Unlock()
	st.Problems = slices.Concat(s.settings.problems, s.settings.tmux.Problems(), s.settings.watchers.Problems(), st.Problems)
	return st
}

// Config is what the daemon runs with.
func (s served) Config() server.RunningConfig {
	s.settings.mu.Lock()
	defer s.settings.mu.Unlock()
	out := server.RunningConfig{File: s.settings.running.File, Problems: slices.Clone(s.settings.problems)}
	for _, setting := range s.settings.running.Settings() {
		out.Settings = append(out.Settings, server.RunningSetting(setting))
	}
	return out
}
