// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	actuatetmux "github.com/muxlet/muxlet/actuate/tmux"
	"github.com/muxlet/muxlet/config"
	tmuxconf "github.com/muxlet/muxlet/config/tmux"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// tmuxConfiguration is what our tmux server is to have: our own configuration, and what the
// person's file asks for. Three files in the runtime directory hold it: tmux.conf, include.conf
// and undo.conf, which takes back what earlier files have asked for.
type tmuxConfiguration struct {
	dir string
	// command is the argv of muxlet in the keys of tmux.
	command []string
	// trial runs a person's file.
	trial *actuatetmux.Trial
	log   logr.Logger
	tell  func(kind plan.EventType, reason, message string)
	// changed is called when the server is to have another configuration.
	changed func()
	// again asks for a look at the settings and the file; true for one at which nothing is
	// taken for unchanged.
	again chan bool

	mu       sync.Mutex
	settings config.Tmux
	// givenPrefix is true when the settings give the prefix: it goes before the file's.
	givenPrefix bool
	resync      time.Duration
	// name of the configuration; empty until the person's file was tried.
	name     string
	problems []string
	// tried is what the file was when it was tried, by which configuration.
	tried string
}

func newTmuxConfiguration(s *config.Effective, command []string) *tmuxConfiguration {
	t := &tmuxConfiguration{dir: s.RuntimeDir, command: command, changed: func() {}, again: make(chan bool, 1)}
	t.use(s)
	return t
}

// muxletCommand is how the keys of tmux run muxlet for this daemon: what runs there has
// neither the environment nor the flags with which the daemon was started.
func muxletCommand(self string, s *config.Effective) []string {
	command := []string{self, "--state-dir", s.StateDir, "--runtime-dir", s.RuntimeDir}
	if s.File != "" {
		command = append(command, "--config", s.File)
	}
	return command
}

// use takes other settings.
func (t *tmuxConfiguration) use(s *config.Effective) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settings, t.resync = s.Tmux, s.ResyncPeriod.Duration
	t.givenPrefix = s.Origin["tmux.prefix"] != config.OriginDefault
}

// look asks for a look at the file; a thorough one tries it again in any case.
func (t *tmuxConfiguration) look(thorough bool) {
	select {
	case t.again <- thorough:
	default:
	}
}

func (t *tmuxConfiguration) path(name string) string { return filepath.Join(t.dir, name) }

func (t *tmuxConfiguration) confFile() string    { return t.path(tmuxConf) }
func (t *tmuxConfiguration) includeFile() string { return t.path("include.conf") }
func (t *tmuxConfiguration) undoFile() string    { return t.path("undo.conf") }

// Name of the configuration that the server is to have; empty while it is not known.
func (t *tmuxConfiguration) Name() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.name
}

// Problems are what is wrong with the person's file.
func (t *tmuxConfiguration) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.problems)
}

func (t *tmuxConfiguration) conf() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return tmuxconf.Render(tmuxconf.Settings{Prefix: t.settings.Prefix, Command: t.command})
}

// write writes our own configuration. It may be called at any time.
func (t *tmuxConfiguration) write() error {
	conf := t.conf()
	if there, err := os.ReadFile(t.confFile()); err == nil && bytes.Equal(there, conf) {
		return nil
	}
	if err := durable.WriteFile(t.confFile(), conf, 0o600); err != nil {
		return fmt.Errorf("write tmux configuration: %w", err)
	}
	return nil
}

// run keeps the configuration up to date with the settings and with the person's file until
// ctx ends.
func (t *tmuxConfiguration) run(ctx context.Context) {
	t.trial.Clear(ctx)
	thorough := true
	for {
		t.refresh(ctx, thorough)
		t.mu.Lock()
		resync := t.resync
		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case thorough = <-t.again:
		case <-time.After(resync):
			thorough = false
		}
	}
}

// refresh finds out what the server is to have. A file that cannot be tried leaves what it
// has asked for before in force.
func (t *tmuxConfiguration) refresh(ctx context.Context, thorough bool) {
	conf := t.conf()
	t.mu.Lock()
	file, tried := t.settings.Include, t.tried
	t.mu.Unlock()
	now := signature(conf, file)
	if !thorough && now == tried {
		return
	}
	if err := t.write(); err != nil {
		t.log.Error(err, "Tmux configuration was not written")
		return
	}
	var problems []string
	included, err := actuatetmux.Included{}, error(nil)
	if file != "" {
		included, err = t.trial.Try(ctx, file)
		problems = included.Problems
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		problems = append(problems, "tmux.include: "+err.Error())
	} else if err = t.keep(t.withoutPrefix(included)); err != nil {
		t.log.Error(err, "What tmux.include asks for was not written")
		return
	}
	t.settle(now, file, problems, included.LeftOut)
}

// signature tells whether anything has changed.
func signature(conf []byte, file string) string {
	sum := sha256.Sum256(conf)
	text := hex.EncodeToString(sum[:]) + " " + file
	if info, err := os.Stat(file); err == nil {
		text += fmt.Sprint(" ", info.Size(), info.ModTime().UnixNano())
	}
	return text
}

// withoutPrefix leaves out the prefix of the file when the settings give one.
func (t *tmuxConfiguration) withoutPrefix(in actuatetmux.Included) actuatetmux.Included {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.givenPrefix {
		prefix := func(line string) bool { return strings.HasPrefix(line, "set-option -q -g prefix ") }
		in.Set = slices.DeleteFunc(slices.Clone(in.Set), prefix)
	}
	return in
}

// keep writes what the file asks for, and what takes back whatever any file has asked for
// since the server was started.
func (t *tmuxConfiguration) keep(in actuatetmux.Included) error {
	undo := map[string]bool{}
	var lines []string
	old, err := os.ReadFile(t.undoFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what was included before: %w", err)
	}
	scanner := bufio.NewScanner(bytes.NewReader(old))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	for _, line := range slices.Concat(lines, in.Undo) {
		undo[line] = true
	}
	all := make([]string, 0, len(undo))
	for line := range undo {
		all = append(all, line)
	}
	slices.Sort(all)
	return errors.Join(t.writeLines(t.undoFile(), all), t.writeLines(t.includeFile(), in.Set))
}

func (t *tmuxConfiguration) writeLines(path string, lines []string) error {
	text := strings.Join(lines, "\n")
	if text != "" {
		text += "\n"
	}
	if err := durable.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write tmux configuration: %w", err)
	}
	return nil
}

// settle names the configuration, passes it on and tells what is new.
func (t *tmuxConfiguration) settle(tried, file string, problems, leftOut []string) {
	include, err := os.ReadFile(t.includeFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.log.Error(err, "What tmux.include asks for was not read")
		return
	}
	sum := sha256.Sum256(slices.Concat(t.conf(), []byte{0}, include))
	name := hex.EncodeToString(sum[:8])
	t.mu.Lock()
	news, wrong := t.name != name, !slices.Equal(t.problems, problems)
	t.name, t.problems, t.tried = name, problems, tried
	t.mu.Unlock()
	if news {
		t.changed()
	}
	left := ""
	if len(leftOut) > 0 {
		left = "; left out: " + strings.Join(leftOut, ", ")
	}
	switch {
	case wrong && len(problems) > 0:
		t.tell(plan.Warning, spec.ReasonTmuxIncludeInvalid, strings.Join(problems, "; ")+left)
	case file != "" && len(problems) == 0 && (news || wrong):
		t.tell(plan.Normal, spec.ReasonTmuxIncludeRead, "Read "+file+" (tmux.include)"+left)
	}
}
