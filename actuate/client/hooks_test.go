// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// oddPaths are where a muxlet program may be.
var oddPaths = []string{"/usr/bin/muxlet", "/a b/muxlet", "/it's/muxlet", `/a "b"/muxlet`, `/a\b/muxlet`, "/$HOME/`x`/$(X)/muxlet", "/é/muxlet"}

// runs is what a shell makes of a command: its words.
func runs(t *testing.T, shell, command string) []string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), shell, "-c", `printf '%s\n' `+command).Output()
	require.NoError(t, err, command)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func TestAHookRunsTheProgramWhateverItsPath(t *testing.T) {
	for _, self := range oddPaths {
		command, err := HookCommand(self, "my-codex")
		require.NoError(t, err)
		// As class codex writes it: the escapes of a TOML basic string that can occur
		// here are those of JSON.
		var read string
		require.NoError(t, json.Unmarshal([]byte(`"`+command+`"`), &read))
		for _, shell := range []string{"sh", "bash"} {
			assert.Equal(t, []string{self, "hook", "my-codex"}, runs(t, shell, read), "%s: %s", shell, self)
		}
	}
	plain, err := HookCommand("/usr/bin/muxlet", "codex")
	require.NoError(t, err)
	assert.Equal(t, "'/usr/bin/muxlet' hook codex", plain)
}

func TestAHookThatNoSettingsCanNameIsRefused(t *testing.T) {
	for self, class := range map[string]string{
		"muxlet": "claude", "/a\nb/muxlet": "claude", "/a\x7f/muxlet": "claude", "/\xff/muxlet": "claude",
		"/1/muxlet": "", "/2/muxlet": "../x", "/3/muxlet": "a b", "/4/muxlet": "a;b",
	} {
		_, err := HookCommand(self, class)
		require.Error(t, err, "%q %q", self, class)
		_, err = Hooks{Self: self, StateDir: t.TempDir()}.Ensure(class, spec.ReportsClaude)
		require.Error(t, err, "%q %q", self, class)
	}
}

// hooksOf reads a settings file as Claude Code does: the commands by event.
func hooksOf(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct{ Type, Command string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &settings))
	commands := map[string]string{}
	for event, matchers := range settings.Hooks {
		require.Len(t, matchers, 1, event)
		require.Len(t, matchers[0].Hooks, 1, event)
		require.Equal(t, "command", matchers[0].Hooks[0].Type)
		commands[event] = matchers[0].Hooks[0].Command
	}
	return commands
}

func TestEveryEventOfClaudeCodeIsWiredInAFileOfMuxletsOwn(t *testing.T) {
	for _, self := range oddPaths {
		hooks := Hooks{Self: self, StateDir: t.TempDir()}
		vars, err := hooks.Ensure("my-claude", spec.ReportsClaude)
		require.NoError(t, err)
		path := filepath.Join(hooks.StateDir, "hooks", "my-claude-settings.json")
		assert.Equal(t, path, vars[spec.VarHookSettings])
		assert.NotEmpty(t, vars[spec.VarHook])
		commands := hooksOf(t, path)
		require.Len(t, commands, 9)
		for _, event := range []string{
			"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "Notification", "Stop", "StopFailure", "SessionEnd",
		} {
			assert.Equal(t, []string{self, "hook", "my-claude"}, runs(t, "sh", commands[event]), event)
		}
	}
}

func TestHookSettingsAreWrittenOnlyWhenTheyDiffer(t *testing.T) {
	hooks := Hooks{Self: "/bin/muxlet", StateDir: t.TempDir()}
	ensure := func() fs.FileInfo {
		vars, err := hooks.Ensure(spec.ClassClaude, spec.ReportsClaude)
		require.NoError(t, err)
		info, err := os.Lstat(vars[spec.VarHookSettings])
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o600), info.Mode())
		assert.Len(t, hooksOf(t, vars[spec.VarHookSettings]), 9)
		return info
	}
	first := ensure()
	assert.True(t, os.SameFile(first, ensure()), "the same file, not another one in its place")
	assert.Equal(t, first.ModTime(), ensure().ModTime())
	path := filepath.Join(hooks.StateDir, "hooks", "claude-settings.json")
	dir, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), dir.Mode().Perm())

	for name, spoil := range map[string]func() error{
		"cut short":          func() error { return os.WriteFile(path, []byte(`{"hooks`), 0o600) },
		"removed":            func() error { return os.Remove(path) },
		"open to others":     func() error { return os.Chmod(path, 0o644) },
		"of another program": func() error { hooks.Self = "/new/muxlet"; return nil },
	} {
		require.NoError(t, spoil(), name)
		ensure()
		assert.Equal(t, "'"+hooks.Self+"' hook claude", hooksOf(t, path)["Stop"], name)
	}
}

func TestOnlyAClassWithReportsHasHooks(t *testing.T) {
	hooks := Hooks{Self: "/bin/muxlet", StateDir: t.TempDir()}
	vars, err := hooks.Ensure("codex", spec.ReportsCodex)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{spec.VarHook: "'/bin/muxlet' hook codex"}, vars)
	for _, none := range []spec.ReportsType{"", spec.ReportsNone} {
		vars, err := hooks.Ensure("exec", none)
		require.NoError(t, err)
		assert.Empty(t, vars)
	}
	_, err = hooks.Ensure("new", "PiHooks")
	require.Error(t, err)
	entries, err := os.ReadDir(hooks.StateDir)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// Classes come and go too; what a session has is kept, and what is gone is made again.
func TestHookSettingsOfClassesThatAreNotInUseGo(t *testing.T) {
	hooks := Hooks{Self: "/bin/muxlet", StateDir: t.TempDir()}
	inUse := func(class string) bool { return class == "used" }
	require.NoError(t, hooks.Prune(time.Now(), inUse), "before there are any")
	old := time.Now().Add(-2 * time.Hour)
	for _, class := range []string{"used", "gone", "young"} {
		_, err := hooks.Ensure(class, spec.ReportsClaude)
		require.NoError(t, err)
		if class != "young" {
			require.NoError(t, os.Chtimes(hooks.settingsPath(class), old, old))
		}
	}
	require.NoError(t, hooks.Prune(time.Now().Add(-time.Hour), inUse))
	assert.FileExists(t, hooks.settingsPath("used"))
	assert.FileExists(t, hooks.settingsPath("young"))
	assert.NoFileExists(t, hooks.settingsPath("gone"))
	_, err := hooks.Ensure("gone", spec.ReportsClaude)
	require.NoError(t, err)
	assert.FileExists(t, hooks.settingsPath("gone"))
}

func TestHookSettingsThatCannotBeWrittenAreAnError(t *testing.T) {
	hooks := Hooks{Self: "/bin/muxlet", StateDir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(hooks.StateDir, "hooks"), nil, 0o600))
	_, err := hooks.Ensure("claude", spec.ReportsClaude)
	require.ErrorContains(t, err, "hook settings")
}
