// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
)

// hooks are shell commands by the event that they are run at.
type hooks map[string][]string

// fire runs the hooks of an event one after the other, as the clients do: by a
// shell in a session of its own, with the payload on stdin and a few variables more
// than the client has. What they print and how they end means nothing.
func (h hooks) fire(event, directory string, payload map[string]any, environment ...string) {
	payload["hook_event_name"] = event
	data, err := json.Marshal(payload)
	if err != nil {
		return
	}
	for _, command := range h[event] {
		cmd := exec.Command("/bin/sh", "-c", command)
		cmd.Dir, cmd.Env, cmd.Stdin = directory, append(os.Environ(), environment...), bytes.NewReader(data)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = cmd.Run()
	}
}

// settingsHooks of a settings file of Claude Code; nil when it cannot be read.
func settingsHooks(path string) (hooks, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Type, Command string
			}
		}
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		return nil, err
	}
	out := hooks{}
	for event, groups := range settings.Hooks {
		for _, group := range groups {
			for _, hook := range group.Hooks {
				if hook.Type == "command" {
					out[event] = append(out[event], hook.Command)
				}
			}
		}
	}
	return out, nil
}
