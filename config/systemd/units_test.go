// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/config"
)

func user() Settings {
	return Settings{
		Binary: "/home/al ice/bin/muxlet", Tmux: "/usr/bin/tmux", UserRuntimeDir: "/run/user/2001",
		Paths:     config.Paths{StateDir: "/home/al ice/.local/state/muxlet", RuntimeDir: "/run/user/2001/muxlet", UID: 2001},
		Arguments: []string{"--state-dir", "/data/100% $HOME \"x\""},
	}
}

func rendered(t *testing.T, s Settings) map[string]string {
	t.Helper()
	files, err := Units(s)
	require.NoError(t, err)
	out := map[string]string{}
	for _, f := range files {
		assert.False(t, Edited(f.Content), f.Name)
		out[f.Name] = string(f.Content)
	}
	return out
}

func TestTheUserUnitsHaveTheRealPaths(t *testing.T) {
	units := rendered(t, user())
	assert.Len(t, units, 4)
	daemon := units["muxlet.service"]
	assert.Contains(t, daemon, `ExecStart="/home/al ice/bin/muxlet" daemon --state-dir "/data/100%% $$HOME \"x\""`+"\n")
	assert.Contains(t, daemon, "Environment=MUXLET_RUNTIME_DIR=%t/muxlet\n")
	assert.Contains(t, daemon, "MUXLET_TMUX_UNIT=muxlet-tmux.service\n")
	assert.Contains(t, units["muxlet.socket"], "ListenStream=%t/muxlet/muxlet.sock\n")
	tmux := units["muxlet-tmux.service"]
	assert.Contains(t, tmux, "ExecStart=/usr/bin/tmux -S %t/muxlet/tmux.sock -f /dev/null -D\n")
	assert.Contains(t, tmux, `esac' "/home/al ice/bin/muxlet" %t/muxlet/tmux.sock`+"\n")
}

func TestTheSystemUnitsAreTemplatesByTheUsersName(t *testing.T) {
	units := rendered(t, Settings{System: true, Binary: "/usr/local/bin/muxlet", Tmux: "/usr/bin/tmux"})
	assert.Len(t, units, 5)
	assert.Contains(t, units["muxlet@.service"], "User=%i\n")
	assert.Contains(t, units["muxlet@.service"], "Environment=MUXLET_RUNTIME_DIR=/run/muxlet-%i\n")
	assert.Contains(t, units["muxlet@.service"], "MUXLET_TMUX_UNIT=muxlet-tmux@%i.service\n")
	assert.Contains(t, units["muxlet-tmux@.service"], "ExecStart=/usr/bin/tmux -S /run/muxlet-%i/tmux.sock -f /dev/null -D\n")
	assert.Contains(t, units["muxlet@.socket"], "ListenStream=/run/muxlet-%i/muxlet.sock\n")
	for name, text := range units {
		for _, roots := range []string{"%u", "%U", "%h", "%t"} {
			assert.NotContains(t, text, roots, name+": that is root's in a unit of the system")
		}
	}
	assert.Contains(t, units[NeedrestartFile], `qr(^muxlet-tmux)`)
}

// A stop of the daemon must never go over to the tmux server, nor the other way round, and
// nothing that a service owns may be the directory of the sockets.
func TestNeitherServiceTakesTheOtherOrTheSocketsAlong(t *testing.T) {
	for _, s := range []Settings{user(), {System: true, Binary: "/usr/bin/muxlet", Tmux: "/usr/bin/tmux"}} {
		for name, text := range rendered(t, s) {
			for line := range strings.Lines(text) {
				for _, key := range []string{"Requires=", "PartOf=", "BindsTo=", "RuntimeDirectory=", "StateDirectory=", "PAMName=", "PrivateTmp=", "PrivateUsers="} {
					assert.False(t, strings.HasPrefix(line, key), name+": "+line)
				}
			}
		}
	}
}

func TestALongRuntimeDirectoryHasItsSocketsElsewhere(t *testing.T) {
	s := user()
	s.Paths.RuntimeDir = "/data/" + strings.Repeat("x", 120)
	units := rendered(t, s)
	assert.Contains(t, units["muxlet.service"], "Environment=MUXLET_RUNTIME_DIR=/data/xxx")
	assert.Contains(t, units["muxlet.socket"], "ListenStream=/tmp/muxlet-2001/")
	assert.Contains(t, units["muxlet-tmux.service"], " -S /tmp/muxlet-2001/")
}

func TestAFileOfAnOlderTemplateIsKnown(t *testing.T) {
	for _, s := range []Settings{user(), {System: true, Binary: "/usr/bin/muxlet", Tmux: "/usr/bin/tmux"}} {
		names := UnitNames(s.System, "")
		units := rendered(t, s)
		for _, name := range []string{names.Daemon, names.Tmux, names.Socket, names.Slice} {
			assert.True(t, Current(name, []byte(units[name])), name)
			assert.False(t, Current(name, []byte(strings.Replace(units[name], editionStart, editionStart+"0", 1))), name)
		}
	}
	assert.False(t, Current("other.service", nil))
}

func TestAnEditedFileIsKnown(t *testing.T) {
	file := Mark([]byte("[Unit]\n"))
	assert.False(t, Edited(file))
	assert.True(t, Edited(append(file, "x"...)))
	assert.True(t, Edited([]byte("[Unit]\n")))
	assert.True(t, Edited(nil))
}

// systemd itself reads them, of both kinds, without a word.
func TestSystemdFindsNothingWrong(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not there")
	}
	for _, c := range []struct {
		settings Settings
		words    []string
	}{
		{user(), []string{"--user", "verify"}},
		{Settings{System: true}, []string{"verify"}},
	} {
		dir := t.TempDir()
		c.settings.Binary, c.settings.Tmux = "/bin/true", "/bin/true"
		words := c.words
		for name, text := range rendered(t, c.settings) {
			if filepath.IsAbs(name) {
				continue
			}
			path := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			words = append(words, path)
			if strings.Contains(name, "@.") {
				words[len(words)-1] = filepath.Join(dir, strings.Replace(name, "@.", "@daemon.", 1))
				require.NoError(t, os.WriteFile(words[len(words)-1], []byte(text), 0o600))
			}
		}
		cmd := exec.Command("systemd-analyze", words...)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "XDG_RUNTIME_DIR="+dir, "HOME="+dir)
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, string(said))
		for line := range strings.Lines(string(said)) {
			assert.NotContains(t, line, dir, "of ours")
		}
	}
}

// The daemon of a system unit needs little of the system.
func TestTheDaemonOfTheSystemIsHardened(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not there")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "muxlet@daemon.service")
	text := rendered(t, Settings{System: true, Binary: "/bin/true", Tmux: "/bin/true"})["muxlet@.service"]
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	said, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20", path).CombinedOutput()
	assert.NoError(t, err, string(said))
}
