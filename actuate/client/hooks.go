// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/durable"
)

// ClaudeEvents are the hooks of Claude Code that report.
var ClaudeEvents = []string{
	"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "Notification", "Stop", "StopFailure", "SessionEnd",
}

// hookTimeout, in seconds, is after which Claude Code gives a hook up. It waits for
// each of them, and muxlet's own takes a fraction of a second at most.
const hookTimeout = 5

// Hooks wire the hooks of clients to muxlet. They never touch a file of a person's.
type Hooks struct {
	// Self is the muxlet program, and StateDir where its files are; absolute.
	Self, StateDir string
}

// Ensure makes what the hooks of a class need and gives the variables that its
// commands may name: see spec.ClassVariables. Without reports there are none. A
// settings file is written only when what is there is not the same.
func (h Hooks) Ensure(class string, reports spec.ReportsType) (map[string]string, error) {
	switch reports {
	case spec.ReportsClaude, spec.ReportsCodex:
	case spec.ReportsNone, "":
		return nil, nil
	default:
		return nil, fmt.Errorf("wire the hooks of class %s: muxlet knows no reports of type %q", class, reports)
	}
	command, err := HookCommand(h.Self, class)
	if err != nil {
		return nil, err
	}
	vars := map[string]string{spec.VarHook: command}
	if reports == spec.ReportsClaude {
		vars[spec.VarHookSettings] = h.settingsPath(class)
		if err := h.writeSettings(class); err != nil {
			return nil, err
		}
	}
	return vars, nil
}

func (h Hooks) settingsPath(class string) string {
	return filepath.Join(h.StateDir, "hooks", class+settingsSuffix)
}

const settingsSuffix = "-settings.json"

// Prune removes the settings that were written before the given time for classes that
// are not in use, and what interrupted writes have left. They are made again when they are
// needed.
func (h Hooks) Prune(before time.Time, inUse func(class string) bool) error {
	dir := filepath.Dir(h.settingsPath("any"))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the directory of hook settings: %w", err)
	}
	err = durable.Sweep(dir, before)
	for _, e := range entries {
		class, isSettings := strings.CutSuffix(e.Name(), settingsSuffix)
		info, infoErr := e.Info()
		if !isSettings || infoErr != nil || !info.ModTime().Before(before) || inUse(class) {
			continue
		}
		if e := os.Remove(filepath.Join(dir, e.Name())); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// claudeSettings is the part of Claude Code's settings.json that names hooks. With
// --settings it is merged with a person's own: the hooks of both run.
type claudeSettings struct {
	Hooks map[string][]claudeMatcher `json:"hooks"`
}

type claudeMatcher struct {
	Hooks []claudeHook `json:"hooks"`
}

type claudeHook struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

func (h Hooks) writeSettings(class string) error {
	settings := claudeSettings{Hooks: map[string][]claudeMatcher{}}
	hook := claudeHook{Type: "command", Command: shellCommand(h.Self, class), Timeout: hookTimeout}
	for _, event := range ClaudeEvents {
		settings.Hooks[event] = []claudeMatcher{{Hooks: []claudeHook{hook}}}
	}
	text, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return fmt.Errorf("write the hook settings of class %s: %w", class, err)
	}
	text = append(text, '\n')
	path := h.settingsPath(class)
	if there, err := readPrivate(path); err == nil && bytes.Equal(there, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the directory of hook settings: %w", err)
	}
	if err := durable.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write the hook settings of class %s: %w", class, err)
	}
	return nil
}

// readPrivate reads a regular file that is its owner's alone; anything else is
// written anew.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode() != fs.FileMode(0o600) {
		return nil, errors.New("it is not a private file")
	}
	return os.ReadFile(path)
}

// HookCommand is the command that a hook of class runs to report, by the muxlet
// program self: words for a shell, written as they have to stand between the quotes
// of a TOML basic string, which are those of JSON as well. In a path without quotes
// and backslashes that makes no difference.
func HookCommand(self, class string) (string, error) {
	switch {
	case !filepath.IsAbs(self):
		return "", fmt.Errorf("wire the hooks of class %s: the path of the muxlet program %q is not absolute", class, self)
	case !utf8.ValidString(self) || strings.ContainsFunc(self, unicode.IsControl):
		return "", fmt.Errorf("wire the hooks of class %s: no settings can name the muxlet program %q; install it at a path without control characters", class, self)
	case len(validation.IsDNS1123Subdomain(class)) > 0:
		return "", fmt.Errorf("wire the hooks of a class: %q is not the name of one", class)
	}
	return stringEscapes.Replace(shellCommand(self, class)), nil
}

var stringEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// shellCommand runs self with its arguments in any shell.
func shellCommand(self, class string) string {
	return "'" + strings.ReplaceAll(self, "'", `'\''`) + "' hook " + class
}
