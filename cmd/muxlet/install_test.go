// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/config/systemd"
	"github.com/muxlet/muxlet/observe/process"
)

// systemctlScript stands for systemd: it keeps what a unit is in a file, and writes each call
// that changes something down. A unit that starts has the pid of the test.
const systemctlScript = `#!/bin/sh
state=$STATE_OF_FAKE
scope=system
if [ "$1" = --user ]; then scope=user; shift; fi
verb=$1; shift
mkdir -p "$state/active" "$state/enabled" "$state/pid"
case $verb in
show-environment) if [ -e "$state/down" ]; then echo "Failed to connect to bus: No medium found" >&2; exit 1; fi; cat "$state/environment"; exit 0;;
show)
  echo LoadState=loaded
  if [ -e "$state/active/$1" ]; then echo ActiveState=active; else echo ActiveState=inactive; fi
  if [ -e "$state/enabled/$1" ]; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi
  echo NeedDaemonReload=no; echo Result=success; echo NRestarts=0
  echo MainPID=$(cat "$state/pid/$1" 2>/dev/null || echo 0)
  exit 0;;
esac
echo "$scope $verb $*" >> "$state/calls"
if [ "$(cat "$state/fails" 2>/dev/null)" = "$verb $*" ]; then echo "Job for $1 failed." >&2; exit 1; fi
case $verb in
enable) for u in "$@"; do touch "$state/enabled/$u"; done;;
disable) for u in "$@"; do rm -f "$state/enabled/$u"; done;;
start|restart) touch "$state/active/$1"; echo "$PID_OF_TEST" > "$state/pid/$1";;
stop) rm -f "$state/active/$1" "$state/pid/$1";;
esac
`

// host is a machine with systemd as far as install can tell.
type host struct {
	*cli
	state, root, home, binary string
}

func newHost(t *testing.T) *host {
	t.Helper()
	c := newCLI(t, nil)
	h := &host{cli: c, state: filepath.Join(c.dir, "fake"), root: filepath.Join(c.dir, "root"), home: filepath.Join(c.dir, "home")}
	bin := filepath.Join(c.dir, "bin")
	for _, dir := range []string{h.state, bin, h.home, h.root + "/run/systemd/system", h.root + "/var/lib/systemd/linger", filepath.Join(c.dir, "xdg")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	h.write("fake/environment", "LANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin\n")
	h.program("systemctl", systemctlScript)
	h.program("loginctl", "#!/bin/sh\necho \"loginctl $*\" >> $STATE_OF_FAKE/calls\n")
	t.Setenv("PATH", bin+":/usr/local/bin:/usr/bin:/bin")
	t.Setenv("STATE_OF_FAKE", h.state)
	t.Setenv("PID_OF_TEST", strconv.Itoa(os.Getpid()))
	self, err := os.Executable()
	require.NoError(t, err)
	h.binary = self
	c.env = map[string]string{"XDG_RUNTIME_DIR": filepath.Join(c.dir, "xdg")}
	c.prepare = func(g *globals) {
		g.home, g.root, g.uid = h.home, h.root, os.Getuid()
		g.environ = os.Environ
		g.account = func() (*user.User, error) { return &user.User{Username: "me", HomeDir: h.home}, nil }
		g.lookupUser = func(name string) (*user.User, error) {
			return &user.User{Username: name, HomeDir: filepath.Join(h.root, "home", name)}, nil
		}
		g.called = func() (string, error) { return h.binary, nil }
		g.stays = func(string) bool { return true }
	}
	return h
}

func (h *host) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(h.t, os.WriteFile(path, []byte(text), 0o644))
}

func (h *host) program(name, text string) {
	h.write("bin/"+name, text)
	require.NoError(h.t, os.Chmod(filepath.Join(h.dir, "bin", name), 0o755))
}

// calls are those that changed something, since the last time they were asked for.
func (h *host) calls() string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.state, "calls"))
	if err != nil {
		return ""
	}
	require.NoError(h.t, os.Remove(filepath.Join(h.state, "calls")))
	return string(text)
}

// units are the names of the files in the user's directory of units.
func (h *host) units() []string {
	entries, _ := os.ReadDir(filepath.Join(h.home, ".config/systemd/user"))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

const created = "/tmp/test/home/.config/systemd/user/muxlet-tmux.service created\n" +
	"/tmp/test/home/.config/systemd/user/muxlet.socket created\n" +
	"/tmp/test/home/.config/systemd/user/muxlet.service created\n" +
	"/tmp/test/home/.config/systemd/user/muxlet.slice created\n"

func TestInstallWritesEnablesAndStartsAndASecondRunDoesNothing(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	pid := strconv.Itoa(os.Getpid())
	assert.Equal(t, created+"muxlet.service started (pid "+pid+")\nmuxlet-tmux.service runs (pid "+pid+")\n", h.out)
	assert.Contains(t, h.errOut, "loginctl enable-linger me")
	assert.Equal(t, "user daemon-reload \nuser enable muxlet-tmux.service muxlet.socket muxlet.service\n"+
		"user start muxlet-tmux.service\nuser restart muxlet.socket\nuser start muxlet.service\n", h.calls())
	daemon, err := os.ReadFile(filepath.Join(h.home, ".config/systemd/user/muxlet.service"))
	require.NoError(t, err)
	assert.Contains(t, string(daemon), "ExecStart="+h.binary+" daemon\n")
	assert.Contains(t, string(daemon), "Environment=MUXLET_RUNTIME_DIR=%t/muxlet\n")

	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	assert.Equal(t, strings.ReplaceAll(created, "created", "unchanged")+"muxlet.service runs (pid "+pid+")\nmuxlet-tmux.service runs (pid "+pid+")\n", h.out)
	assert.Empty(t, h.calls())
}

func TestADryRunTellsAndChangesNothing(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user", "--dry-run", "--enable-linger"), h.errOut)
	assert.Equal(t, strings.ReplaceAll(created, "created", "created (dry run)")+"Would run: systemctl --user daemon-reload\n"+
		"Would run: systemctl --user enable muxlet-tmux.service muxlet.socket muxlet.service\nWould run: systemctl --user start muxlet-tmux.service\n"+
		"Would run: systemctl --user restart muxlet.socket\nWould run: systemctl --user start muxlet.service\nWould run: loginctl enable-linger me\n", h.out)
	assert.Empty(t, h.units())
	assert.Empty(t, h.calls())
}

// An upgrade by rename: the daemon runs a file that is not the one at its path any more. The
// tmux server is left alone.
func TestAReplacedProgramRestartsTheDaemonAndNothingElse(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	h.calls()
	link := filepath.Join(h.dir, "muxlet")
	require.NoError(t, os.Symlink(h.binary, link))
	h.binary = link
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	assert.Equal(t, "user daemon-reload \nuser restart muxlet.service\n", h.calls(), "its unit is another one")
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.WriteFile(link, []byte("a newer one"), 0o755))
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	assert.Equal(t, "user restart muxlet.service\n", h.calls())
}

func TestTheSettingsOfTheCallGoIntoTheUnit(t *testing.T) {
	h := newHost(t)
	h.env["XDG_STATE_HOME"] = "/data/state"
	h.env["MUXLET_MANIFESTS"] = "/m/a:/m/b c"
	require.Equal(t, exitOK, h.run("install", "--user", "--state-dir", h.dir+"/s", "--no-start"), h.errOut)
	daemon, err := os.ReadFile(filepath.Join(h.home, ".config/systemd/user/muxlet.service"))
	require.NoError(t, err)
	assert.Contains(t, string(daemon), " daemon --state-dir "+h.dir+"/s --manifests /m/a --manifests \"/m/b c\"\n")
	assert.Contains(t, string(daemon), "Environment=XDG_STATE_HOME=/data/state\n")
	assert.Contains(t, string(daemon), "Environment=MUXLET_RUNTIME_DIR="+h.dir+"/s/run\n")
	assert.NotContains(t, h.calls(), "start")
}

func TestAnEditedUnitIsTheirsAndADropInStays(t *testing.T) {
	h := newHost(t)
	unit := "home/.config/systemd/user/muxlet.service"
	h.write(unit, "[Service]\nExecStart=mine\n")
	h.write(unit+".d/mine.conf", "[Service]\nNice=5\n")
	assert.Equal(t, exitError, h.run("install", "--user"))
	assert.Contains(t, h.errOut, "muxlet.service was not written by muxlet install, or was edited since: put what you want otherwise into a drop-in (systemctl --user edit muxlet.service)")
	assert.Equal(t, []string{"muxlet.service", "muxlet.service.d"}, h.units(), "nothing else was written")
	require.Equal(t, exitOK, h.run("install", "--user", "--force"), h.errOut)
	assert.Contains(t, h.out, "muxlet.service configured\n")
	require.Equal(t, exitOK, h.run("uninstall", "--user"), h.errOut)
	assert.Equal(t, []string{"muxlet.service.d"}, h.units())
}

// A restart without a reload would start what systemd remembers, and find the drop-in
// unread again the next time.
func TestADropInThatSystemdHasNotReadIsReadOnce(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	script := strings.Replace(systemctlScript, "echo NeedDaemonReload=no;", `if [ -e "$state/stale" ]; then echo NeedDaemonReload=yes; else echo NeedDaemonReload=no; fi;`, 1)
	h.program("systemctl", strings.Replace(script, "case $verb in\nenable)", "case $verb in\ndaemon-reload) rm -f \"$state/stale\";;\nenable)", 1))
	h.calls()
	h.write("fake/stale", "")
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	assert.Equal(t, "user daemon-reload \nuser restart muxlet.service\n", h.calls())
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	assert.Empty(t, h.calls())
}

func TestWhatIsMissingIsSaidWithTheNextStep(t *testing.T) {
	h := newHost(t)
	refused := func(why string, args ...string) {
		t.Helper()
		assert.NotEqual(t, exitOK, h.run(args...))
		assert.Contains(t, h.errOut, why)
		assert.Empty(t, h.units())
		assert.Empty(t, h.calls())
	}
	refused("--user and --system cannot be given together", "install", "--user", "--system")
	refused("a user is named together with --system alone", "install", "--user", "alice")
	h.write("fake/down", "")
	refused("your systemd does not answer", "install", "--user")
	require.NoError(t, os.Remove(filepath.Join(h.state, "down")))
	delete(h.env, "XDG_RUNTIME_DIR")
	refused("XDG_RUNTIME_DIR is not set", "install", "--user")
	h.env["XDG_RUNTIME_DIR"] = filepath.Join(h.dir, "xdg")
	require.NoError(t, os.Remove(h.root+"/run/systemd/system"))
	refused("this machine was not booted with systemd", "install", "--user")
	t.Setenv("PATH", h.dir)
	refused("there is no systemctl here", "install", "--user")
}

// Its unit would have a bad setting, and be there.
func TestAProgramThatSystemdDoesNotExecuteIsRefused(t *testing.T) {
	h := newHost(t)
	h.write(`my "tools"/muxlet`, "")
	h.binary = filepath.Join(h.dir, `my "tools"/muxlet`)
	require.Equal(t, exitError, h.run("install", "--user"))
	assert.Contains(t, h.errOut, "systemd executes nothing whose path has quotes")
	assert.Empty(t, h.units())
}

func TestUninstallSaysWhyThereIsNoSystemd(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	require.NoError(t, os.WriteFile(filepath.Join(h.home, ".config/systemd/user/muxlet.service"), []byte("[Service]\n"), 0o644))
	require.Equal(t, exitOK, h.run("uninstall", "--user"), h.errOut)
	require.Equal(t, exitOK, h.run("uninstall", "--user"), h.errOut)
	assert.Contains(t, h.out, "was edited, and is left")
	assert.NotContains(t, h.out, "No unit of muxlet is there.")
	h.env = nil
	require.Equal(t, exitError, h.run("uninstall", "--user"))
	assert.Contains(t, h.errOut, "XDG_RUNTIME_DIR is not set, as behind su or sudo")
	require.NoError(t, os.Remove(h.root+"/run/systemd/system"))
	require.Equal(t, exitError, h.run("uninstall", "--user"))
	assert.Contains(t, h.errOut, "was not booted with systemd, so that no unit runs")
}

func TestAProgramThatDoesNotStayIsRefused(t *testing.T) {
	h := newHost(t)
	prepare := h.prepare
	h.prepare = func(g *globals) { prepare(g); g.stays = staying }
	assert.Equal(t, exitError, h.run("install", "--user"))
	assert.Contains(t, h.errOut, "does not stay there: put muxlet where it does, such as ~/.local/bin, and run that one")
	assert.Empty(t, h.units())
	for path, want := range map[string]bool{"/usr/local/bin/muxlet": true, "/tmp/muxlet": false, "/root/.cache/go-build/1/muxlet": false, "/run/x": false, "/home/tmp/muxlet": true} {
		assert.Equal(t, want, staying(path), path)
	}
}

// Two daemons would fight for the state: the one that is there is named.
func TestADaemonThatWasStartedByHandIsNamed(t *testing.T) {
	h := newHost(t)
	lock := filepath.Join(h.home, ".local/state/muxlet/lock")
	h.write("home/.local/state/muxlet/lock", "12345\n")
	f, err := os.Open(lock)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	assert.Equal(t, exitError, h.run("install", "--user"))
	assert.Contains(t, h.errOut, "started by hand (pid 12345)")
	assert.Contains(t, h.errOut, "kill 12345; the sessions go on")
	assert.Empty(t, h.units())
}

// It would go on where it is, and the new daemon would wait for one that never comes.
func TestATmuxServerOfOtherDirectoriesIsNamed(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	socket := filepath.Join(h.dir, "tmux.sock")
	tmux := exec.Command("tmux", "-S", socket, "-f", "/dev/null", "-D")
	tmux.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, tmux.Start())
	t.Cleanup(func() { _, _ = tmux.Process.Kill(), tmux.Wait() })
	require.Eventually(t, func() bool {
		servers, err := process.FindServers(socket)
		return err == nil && len(servers) == 1
	}, time.Minute, 10*time.Millisecond)
	h.write("fake/pid/muxlet-tmux.service", strconv.Itoa(tmux.Process.Pid))
	h.calls()
	require.Equal(t, exitError, h.run("install", "--user", "--state-dir", "/data"))
	assert.Contains(t, h.errOut, fmt.Sprintf("muxlet-tmux.service (pid %d) serves the sessions of ", tmux.Process.Pid))
	assert.Contains(t, h.errOut, "muxlet uninstall --runtime-dir ")
	assert.Empty(t, h.calls())
}

func TestADaemonThatDoesNotComeUpIsSaidWithItsLog(t *testing.T) {
	h := newHost(t)
	h.write("fake/fails", "start muxlet.service")
	assert.Equal(t, exitError, h.run("install", "--user"))
	assert.Contains(t, h.errOut, "muxlet.service did not come up")
	assert.Contains(t, h.errOut, "journalctl --user -u muxlet.service")
}

func TestLingerIsEnabledWhenAskedFor(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user", "--enable-linger"), h.errOut)
	assert.Contains(t, h.calls(), "loginctl enable-linger me\n")
	assert.NotContains(t, h.errOut, "Warning")
	h.write("root/var/lib/systemd/linger/me", "")
	require.Equal(t, exitOK, h.run("install", "--user", "--enable-linger"), h.errOut)
	assert.Empty(t, h.calls())
	assert.Empty(t, h.errOut)
}

func TestUninstallLeavesTheTmuxServerAlone(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	h.calls()
	require.Equal(t, exitOK, h.run("uninstall", "--user"), h.errOut)
	assert.Equal(t, "user stop muxlet.socket\nuser stop muxlet.service\n"+
		"user disable muxlet.socket muxlet.service muxlet-tmux.service\nuser daemon-reload \n", h.calls())
	assert.Empty(t, h.units())
	assert.FileExists(t, filepath.Join(h.state, "active/muxlet-tmux.service"))
	assert.Contains(t, h.out, "Kept are the state in /tmp/test/home/.local/state/muxlet and the manifests in /tmp/test/home/.config/muxlet/sessions.\n")
	require.Equal(t, exitOK, h.run("uninstall", "--user"), h.errOut)
	assert.Contains(t, h.out, "No unit of muxlet is there.\n")
}

// The unit refuses a stop by hand: that is taken back until it is down.
func TestUninstallEndsTheSessionsWhenAsked(t *testing.T) {
	h := newHost(t)
	require.Equal(t, exitOK, h.run("install", "--user"), h.errOut)
	h.calls()
	dropIn := filepath.Join(h.dir, "xdg/systemd/user/muxlet-tmux.service.d/50-uninstall.conf")
	h.program("systemctl", strings.Replace(systemctlScript, "stop) ", "stop) cat "+dropIn+" >> \"$state/calls\" 2>/dev/null; ", 1))
	require.Equal(t, exitOK, h.run("uninstall", "--user", "--end-sessions"), h.errOut)
	assert.Equal(t, "user stop muxlet.socket\nuser stop muxlet.service\nuser daemon-reload \nuser stop muxlet-tmux.service\n[Unit]\nRefuseManualStop=no\n"+
		"user disable muxlet.socket muxlet.service muxlet-tmux.service\nuser daemon-reload \n", h.calls())
	assert.NoFileExists(t, dropIn)
	assert.NoFileExists(t, filepath.Join(h.state, "active/muxlet-tmux.service"))
}

func TestUnitsOfTheSystemAreInstalledForEachUser(t *testing.T) {
	h := newHost(t)
	prepare := h.prepare
	h.prepare = func(g *globals) { prepare(g); g.uid = 0; g.reachable = func(string) error { return nil } }
	require.Equal(t, exitUsage, h.run("install"))
	assert.Contains(t, h.errOut, "say whose units are meant")
	require.Equal(t, exitUsage, h.run("install", "--system", "alice", "--state-dir", "/data"))
	assert.Contains(t, h.errOut, "--state-dir means nothing with --system")
	require.Equal(t, exitOK, h.run("install", "--system", "alice", "root"), h.errOut)
	assert.Equal(t, "system daemon-reload \nsystem enable muxlet-tmux@alice.service muxlet@alice.socket muxlet@alice.service\n"+
		"system start muxlet-tmux@alice.service\nsystem restart muxlet@alice.socket\nsystem start muxlet@alice.service\n"+
		"system enable muxlet-tmux@root.service muxlet@root.socket muxlet@root.service\n"+
		"system start muxlet-tmux@root.service\nsystem restart muxlet@root.socket\nsystem start muxlet@root.service\n", h.calls())
	assert.FileExists(t, h.root+"/etc/needrestart/conf.d/muxlet.conf")
	dropIn, err := os.ReadFile(h.root + "/etc/systemd/system/muxlet@root.service.d/10-root.conf")
	require.NoError(t, err)
	assert.Contains(t, string(dropIn), "CapabilityBoundingSet=~\n")
	assert.False(t, systemd.Edited(dropIn))

	require.NoError(t, os.MkdirAll(h.root+"/etc/systemd/system/multi-user.target.wants", 0o755))
	require.NoError(t, os.Symlink("x", h.root+"/etc/systemd/system/multi-user.target.wants/muxlet@root.service"))
	require.Equal(t, exitOK, h.run("uninstall", "--system", "alice"), h.errOut)
	assert.Contains(t, h.out, "The units stay for root.")
	assert.FileExists(t, h.root+"/etc/systemd/system/muxlet@.service")
	require.NoError(t, os.Remove(h.root+"/etc/systemd/system/multi-user.target.wants/muxlet@root.service"))
	h.write("root/run/muxlet-root/lock", "")
	require.Equal(t, exitOK, h.run("uninstall", "--system", "root"), h.errOut)
	assert.NoDirExists(t, h.root+"/run/muxlet-root", "it would be taken for the runtime directory still")
	assert.NoFileExists(t, h.root+"/etc/systemd/system/muxlet@.service")
	assert.NoDirExists(t, h.root+"/etc/systemd/system/muxlet@root.service.d")
	assert.NoFileExists(t, h.root+"/etc/needrestart/conf.d/muxlet.conf")

	h.prepare = func(g *globals) { prepare(g); g.uid = 1000 }
	assert.Equal(t, exitError, h.run("install", "--system", "alice"))
	assert.Contains(t, h.errOut, "run it with sudo")
}

// A server that muxlet started before there were units keeps its sessions.
func TestTheConditionOfTheTmuxUnitIsThatNobodyLivesThere(t *testing.T) {
	h := newHost(t)
	h.env["XDG_RUNTIME_DIR"] = ""
	socket := filepath.Join(h.dir, "t.sock")
	assert.Equal(t, exitOK, h.run("tmux-free", socket), h.errOut)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	assert.Equal(t, exitError, h.run("tmux-free", socket))
	assert.Contains(t, h.errOut, "a tmux server lives on")
	require.NoError(t, l.Close())
	assert.Equal(t, exitOK, h.run("tmux-free", socket), "the file that a dead one has left")
	assert.Equal(t, exitError, h.run("tmux-free", filepath.Join(h.dir, strings.Repeat("x", 300))), "what is not known is not free")
}
