// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Command fakeagent stands in for coding agents, so that muxlet can be tested with
// them where the real ones are not installed. `fakeagent install DIR` makes
// DIR/bin/claude, DIR/bin/codex and DIR/bin/gem. The first two replay what was
// measured of Claude Code 2.1.332 and Codex 0.171.0: arguments, exit codes, files,
// hooks, dialogs, deaths. gem is a client that muxlet has no class for.
//
// To a prompt they answer turns=2 first=…, taken from the conversation they were
// started with. What a turn does besides is said by the prompt (see directive) or by
// a file in the client's configuration folder (see control). Each writes what it was
// started with and what it was told into DIR/journal.jsonl.
//
// It never connects to anything, and writes nothing outside DIR, its configuration
// folder and its home.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	executable, err := os.Executable()
	if err != nil {
		fatal(err)
	}
	root := filepath.Dir(filepath.Dir(executable))
	switch filepath.Base(executable) {
	case "claude":
		claudeMain(root, os.Args[1:])
	case "node":
		wrapperMain(root, os.Args[1:])
	case "codex":
		codexMain(root, os.Args[1:])
	case "gem":
		gemMain(root, os.Args[1:])
	default:
		if len(os.Args) != 3 || os.Args[1] != "install" {
			fatal(errors.New("usage: fakeagent install DIR"))
		}
		if err := install(executable, os.Args[2]); err != nil {
			fatal(err)
		}
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "Error:", err)
	os.Exit(1)
}

// install makes the executables. Each is a file of its own: a program is told from
// another one by its file.
func install(executable, dir string) error {
	data, err := os.ReadFile(executable)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	for _, name := range []string{"bin/claude", "bin/gem", "lib/node", "lib/codex"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make the folder of %s: %w", name, err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	// Codex is a script for node, as npm installs it.
	script := "#!" + filepath.Join(dir, "lib/node") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "bin/codex"), []byte(script), 0o755); err != nil {
		return fmt.Errorf("write codex: %w", err)
	}
	return nil
}

// oneLine makes a text one that stays one on a screen, at most 60 runes.
func oneLine(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	return string(line[:min(len(line), 60)])
}

// answer of the model that is stood in for.
func answer(history []string) string {
	if len(history) == 0 {
		return "turns=0 first="
	}
	return fmt.Sprintf("turns=%d first=%s", len(history), oneLine(history[0]))
}
