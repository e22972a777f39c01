// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/controller/status"
	"github.com/muxlet/muxlet/spec/durable"
)

// socketCheck is the time between two looks at the API's socket file.
const socketCheck = 2 * time.Second

// onceLimit bounds `muxlet daemon --once`.
const onceLimit = 2 * time.Minute

func newDaemonCommand(g *globals) *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "Keep the declared sessions alive, in the foreground",
		Long: "Keep the declared sessions alive, in the foreground. Ending the daemon ends no\n" +
			"session: they go on in tmux, and the next daemon takes them over.\n" +
			"The settings are read again when their file changes and at SIGHUP.",
		Example: "  muxlet daemon\n  muxlet daemon --manifests ~/src/shop/sessions -v 1\n  muxlet daemon --once",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g.command = cmd
			settings, err := g.settings()
			if err != nil {
				return err
			}
			return g.daemon(cmd.Context(), settings, once)
		},
	}
	cmd.Flags().StringVar(&g.flags.tmuxServer, "tmux-server", "", "who executes the tmux server: Managed, this daemon; External, the unit of systemd that the settings name (default Managed)")
	cmd.Flags().StringVar(&g.flags.metricsListen, "metrics-listen", "", "loopback address on which metrics and health are served too, such as 127.0.0.1:9464 (default none)")
	cmd.Flags().BoolVar(&once, "once", false, "converge once and exit: 0 when every session has come to rest")
	return cmd
}

// daemon runs until ctx ends.
func (g *globals) daemon(ctx context.Context, settings *config.Effective, once bool) error {
	manager, err := takeManager(os.LookupEnv, os.Unsetenv, os.Getpid())
	if err != nil {
		return err
	}
	// A terminal's hang-up is not the daemon's end, and a full pipe on standard error
	// neither. A hang-up asks for the settings to be read again, as systemd does.
	signal.Ignore(syscall.SIGPIPE)
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	level := &slog.LevelVar{}
	level.Set(levelOf(settings.Logging))
	lines, log := g.openLog(settings.Logging.Format, level)
	defer lines.close()
	for _, dir := range []string{settings.StateDir, settings.RuntimeDir, settings.Paths.SocketDir()} {
		if err := makePrivate(dir, g.uid); err != nil {
			return err
		}
	}
	if err := probeState(settings.StateDir); err != nil {
		return err
	}
	held, err := lockAll(settings.Paths)
	if err != nil {
		return err
	}
	defer held.release()
	finishImport(settings.StateDir, log)
	in, err := g.inputs()
	if err != nil {
		return err
	}
	if settings, err = g.rested(ctx, settings); err != nil {
		return err
	}
	if settings, err = recalled(settings, config.File(in), log); err != nil {
		return err
	}
	remember(settings, log)
	recorder, err := status.OpenRecorder(settings.StateDir, int(settings.Retention.Events))
	if err != nil {
		return fmt.Errorf("state directory %s cannot be used: %w", settings.StateDir, err)
	}
	defer func() { _ = recorder.Close() }()
	instance := &instanceLock{}
	defer instance.release()
	reloads, err := newReloader(g, settings, level, recorder, log)
	if err != nil {
		return err
	}
	c, closeController, err := g.newController(settings, reloads, recorder, instance, log)
	if err != nil {
		return err
	}
	defer closeController()
	reloads.apply, reloads.announce = c.Reload, manager.reloading
	log.Info("Started daemon", "version", version, "pid", os.Getpid(), "manifests", settings.Manifests, "stateDir", settings.StateDir,
		"runtimeDir", settings.RuntimeDir, "settings", settings.File)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { serveAPI(ctx, settings.Paths.APISocket(), manager, served{c, reloads}, log) })
	wg.Go(func() { (&notifier{manager: manager, health: c.Health, log: log}).run(ctx) })
	wg.Go(func() { reloads.run(ctx, hangUp) })
	wg.Go(func() { reloads.tmux.run(ctx) })
	wg.Go(func() { reloads.watchers.run(ctx, server.Watchers(served{c, reloads})) })
	wg.Go(func() { guard(ctx, held, cancel, log) })
	result := make(chan error, 1)
	if once {
		wg.Go(func() { result <- c.UntilSettled(ctx, onceLimit); cancel() })
	} else {
		result <- nil
	}
	err = c.Run(ctx)
	cancel()
	wg.Wait()
	log.Info("Stopped daemon", "pid", os.Getpid())
	return errors.Join(err, <-result)
}

func levelOf(l config.Logging) slog.Level { return slog.Level(-l.Verbosity) }

func logger(out io.Writer, format config.LogFormat, level slog.Leveler) logr.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: plainLevel}
	var h slog.Handler = slog.NewTextHandler(out, options)
	if format == config.LogJSON {
		h = slog.NewJSONHandler(out, options)
	}
	return logr.FromSlogHandler(h)
}

// plainLevel names the levels of logr's verbosities, which slog has no words for.
func plainLevel(_ []string, a slog.Attr) slog.Attr {
	if level, ok := a.Value.Any().(slog.Level); ok && a.Key == slog.LevelKey && level < slog.LevelInfo {
		a.Value = slog.StringValue(slog.LevelDebug.String())
	}
	return a
}

// makePrivate makes a directory that only its owner can enter, and refuses one
// of somebody else. One that is open to others is closed only when it is ours to
// close: when it is empty, or was used by a daemon before.
func makePrivate(dir string, uid int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("directory %s cannot be made: %w: make it, or choose another one with --state-dir or --runtime-dir", dir, cause(err))
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("directory %s cannot be used: %w", dir, cause(err))
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != uid {
		return fmt.Errorf("directory %s belongs to uid %d: choose one of your own", dir, owner.Uid)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if !usedByMuxlet(dir) {
			return fmt.Errorf("directory %s is open to others (mode %04o) and holds other things: choose one of muxlet's own with --state-dir or --runtime-dir", dir, info.Mode().Perm())
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("directory %s is open to others and cannot be closed: %w", dir, cause(err))
		}
	}
	return nil
}

// usedByMuxlet says whether a directory is empty or has a daemon's lock.
func usedByMuxlet(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	named := func(name string) func(os.DirEntry) bool {
		return func(e os.DirEntry) bool { return e.Name() == name }
	}
	return len(entries) == 0 || slices.ContainsFunc(entries, named("lock")) || slices.ContainsFunc(entries, named("muxlet.sock"))
}

func cause(err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// probeState writes and removes a file: a daemon that cannot write its intent
// down must not act.
func probeState(dir string) error {
	probe := filepath.Join(dir, ".probe")
	err := durable.WriteFile(probe, []byte("probe\n"), 0o600)
	if err == nil {
		err = os.Remove(probe)
	}
	if err != nil {
		return fmt.Errorf("state directory %s cannot be written: %w: make it writable, or choose another one with --state-dir", dir, cause(err))
	}
	return nil
}

// serveAPI serves the API until ctx ends, on the manager's socket if there is one: nobody who
// connects while one daemon ends and the next one starts is refused. A socket file that
// somebody removed is made again, since nothing else can reach a daemon.
func serveAPI(ctx context.Context, path string, manager *serviceManager, b server.Backend, log logr.Logger) {
	for ctx.Err() == nil {
		listener, err := manager.listener(path)
		if err != nil {
			log.Error(err, "Socket of the service manager is not used")
		}
		if listener == nil {
			listener, err = server.Listen(path)
		}
		if err != nil {
			log.Error(err, "API is not served", "socket", path)
			wait(ctx, socketCheck)
			continue
		}
		serveWhilePresent(ctx, path, listener, b, log)
	}
}

func serveWhilePresent(ctx context.Context, path string, listener net.Listener, b server.Backend, log logr.Logger) {
	ours, err := os.Stat(path)
	if err != nil {
		_ = listener.Close()
		return
	}
	inner, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- server.Serve(inner, listener, server.Handler(b)) }()
	for {
		select {
		case err := <-done:
			cancel()
			if err != nil && ctx.Err() == nil {
				log.Error(err, "API server ended")
				wait(ctx, socketCheck)
			}
			return
		case <-time.After(socketCheck):
			if now, err := os.Stat(path); err != nil || !os.SameFile(ours, now) {
				log.Info("Socket of the API was removed, making it again", "socket", path)
				cancel()
				if err := <-done; err != nil {
					log.Error(err, "API server ended")
				}
				return
			}
		}
	}
}

// guard keeps the locks although their files may be removed, and ends this daemon
// when another one has taken over: two would start two clients.
func guard(ctx context.Context, held *locks, stop func(), log logr.Logger) {
	for wait(ctx, socketCheck); ctx.Err() == nil; wait(ctx, socketCheck) {
		if err := held.hold(); err != nil {
			log.Error(err, "Lock was lost, stopping")
			stop()
			return
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
