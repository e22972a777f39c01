// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// release is a version of tmux: 3.3a is {3, 3, "a"}.
type release struct {
	major, minor int
	letter       string
}

var releasePattern = lazyregexp.New(`^(?:tmux )?(?:next-)?(\d+)\.(\d+)([a-z]?)`)

// releaseOf reads what tmux -V prints, or #{version}; ok is false for what is no release,
// such as tmux master.
func releaseOf(text string) (r release, ok bool) {
	m := releasePattern.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return release{}, false
	}
	r.major, _ = strconv.Atoi(m[1])
	r.minor, _ = strconv.Atoi(m[2])
	r.letter = m[3]
	return r, true
}

// before says whether r is older than the release that text names.
func (r release) before(text string) bool {
	other, _ := releaseOf(text)
	if r.major != other.major {
		return r.major < other.major
	}
	if r.minor != other.minor {
		return r.minor < other.minor
	}
	return r.letter < other.letter
}

// tmuxFault is a fault of tmux that a person can meet.
type tmuxFault struct {
	// from is the first release that has it, gone the first without; empty: all older
	// ones, and none yet.
	from, gone string
	// what goes wrong, and what to do.
	what, fix string
}

// tmuxFaults are those that are known, measured or from tmux's issues.
var tmuxFaults = []tmuxFault{
	{"", "3.3", "it does not tell by which signal a client was ended (no pane_dead_signal)", "tmux 3.3 or newer does"},
	{"", "3.4", "it crashes, with every session, when text is pasted into a pane that is dead; muxlet never does", "do not paste by hand into a pane that says \"Pane is dead\""},
	{"", "3.6", "with utempter (Debian's packages) it often does not notice that a client has ended; muxlet tells it by a SIGCHLD, and tmux 3.6 needs none", ""},
	{"", "", "it crashes when a pane is started anew while a control client (tmux -CC, as iTerm2 uses it) lags behind", "do not attach in control mode to muxlet's tmux server"},
}

// judgeTmux says what is known of a version of tmux.
func judgeTmux(version string) []finding {
	var found []finding
	add := func(l level, fix, format string, args ...any) {
		found = append(found, finding{Level: l, Area: areaTmux, Message: sentence(fmt.Sprintf(format, args...)), Fix: sentence(fix)})
	}
	r, ok := releaseOf(version)
	switch {
	case !ok:
		add(levelNote, "", "%q is no release of tmux that muxlet knows: its faults are not known", version)
		return found
	case r.before("3.2"):
		add(levelError, "install tmux 3.2 or newer, 3.6 if you can", "tmux %s is too old: muxlet needs 3.2", version)
		return found
	}
	for _, f := range tmuxFaults {
		if (f.from == "" || !r.before(f.from)) && (f.gone == "" || r.before(f.gone)) {
			add(levelNote, f.fix, "tmux %s: %s", version, f.what)
		}
	}
	return found
}

// judgeVersions compares the program with the server that runs.
func judgeVersions(program, running string) []finding {
	p, okProgram := releaseOf(program)
	r, okRunning := releaseOf(running)
	if !okProgram || !okRunning || p == r {
		return nil
	}
	f := finding{
		Level: levelNote, Area: areaTmux,
		Message: fmt.Sprintf("The tmux server that runs is %s, the program is %s: muxlet speaks to the server by the server's own program, and the next server is of the new version.", running, program),
	}
	if p.before("3.6") && !r.before("3.6") {
		f.Level = levelWarning
		f.Message = fmt.Sprintf("The tmux server that runs is %s, the program is %s: one so old gets \"server exited unexpectedly\" from it.", running, program)
		f.Fix = "Put a tmux of the server's version, or a newer one, on the PATH."
	}
	return []finding{f}
}

func (p *patient) lookAtTmux(ctx context.Context) {
	conn := &tmux.Conn{Command: p.settings.Tmux.Command, Env: p.daemonEnvironment(p.accountShell().Path)}
	program, err := conn.Program()
	if err != nil {
		p.found(levelError, areaTmux, "install tmux 3.2 or newer, or name it by tmux.command in the settings", "%v", err)
		return
	}
	if _, err := exec.LookPath(program); err != nil {
		p.found(levelError, areaTmux, "install tmux 3.2 or newer, or name it by tmux.command in the settings", "the tmux program %s cannot be executed: %v", program, cause(err))
		return
	}
	version := tmuxVersion(ctx, program)
	if version == "" {
		p.found(levelError, areaTmux, "install tmux anew", "%s -V prints no version", program)
		return
	}
	p.found(levelOK, areaTmux, "", "%s is tmux %s", program, version)
	running := p.runningTmux()
	if running == "" {
		running = version
	}
	p.findings = append(p.findings, judgeTmux(running)...)
	p.findings = append(p.findings, judgeVersions(version, running)...)
	if p.daemon != nil && p.daemon.Tmux.State == "Unknown" {
		p.found(levelError, areaTmux, "see what it hangs in; kill -CONT continues one that was stopped", "tmux could not be asked (%s): %s", p.daemon.Tmux.Reason, p.daemon.Tmux.Message)
	}
	if p.tmuxServer.PID == 0 {
		return
	}
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.tmuxServer.PID)); err == nil && strings.HasSuffix(exe, " (deleted)") {
		p.found(levelNote, areaTmux, "", "the program of the tmux server that runs (pid %d) was replaced: muxlet runs the one that the server still has open", p.tmuxServer.PID)
	}
}

// runningTmux is the version of the server that runs, as the daemon tells.
func (p *patient) runningTmux() string {
	if p.daemon == nil {
		return ""
	}
	return p.daemon.Tmux.ServerVersion
}

// tmuxVersion is what tmux -V prints behind its name; empty when it prints nothing.
func tmuxVersion(ctx context.Context, program string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-V")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "tmux ")
}
