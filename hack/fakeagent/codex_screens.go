// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// frame is the conversation, the composer, and the status line by which Codex is
// seen to be ready.
func (c *codex) frame(s *screen) []string {
	if c.thread == nil {
		return nil
	}
	lines := []string{"  >_ OpenAI Codex (v0.171.0)", "     " + c.directory, ""}
	for _, line := range s.body {
		lines = append(lines, strings.Split(line, "\n")...)
	}
	if s.state != "" {
		lines = append(lines, "", s.state)
	}
	columns, rows := terminalSize()
	input, _ := s.composer.lines("› ", faint("Ask Codex to do anything"), columns, rows-6)
	lines = append(append(lines, "", ""), input...)
	status := "  " + c.config.model + " default · " + tilde(c.directory)
	if len(c.thread.prompts) > 0 {
		status += " · " + oneLine(c.thread.prompts[0])
	}
	return append(lines, "", status, "  ← for agents · ? for shortcuts")
}

// tilde shortens a directory below the home.
func tilde(directory string) string {
	home := os.Getenv("HOME")
	if rest, below := strings.CutPrefix(directory, home+"/"); below && home != "" {
		return "~/" + rest
	}
	return directory
}

// dialogs that come before the composer. At none of them is a thread held.
func (c *codex) dialogs() {
	if !c.config.signedIn {
		c.screen.enter(true)
		c.screen.ask(signInDialog())
		end(c.screen, c.log, 1, "Error: no login here")
	}
	if c.guarded() && !c.config.trusts(c.directory) {
		c.screen.enter(true)
		if c.screen.ask(folderDialog(c.directory)) != 0 {
			end(c.screen, c.log, 0)
		}
		c.config.add(fmt.Sprintf("[projects.%q]\ntrust_level = \"trusted\"\n", c.directory))
	}
	tables := c.config.untrusted(c.hooks)
	if len(tables) == 0 || c.arguments.bypass {
		return
	}
	c.screen.enter(true)
	switch c.screen.ask(hookDialog(len(tables))) {
	case 1:
		c.config.add(strings.Join(tables, "\n"))
	default:
		c.hooks = nil
	}
}

// guarded says whether Codex asks about the directory at all: about a repository, and
// about one with settings for it.
func (c *codex) guarded() bool {
	for _, name := range []string{".git", ".codex"} {
		if _, err := os.Stat(filepath.Join(c.directory, name)); err == nil {
			return true
		}
	}
	return false
}

func signInDialog() dialog {
	return dialog{options: 3, numbered: true, lines: func(int) []string {
		return []string{
			"  Welcome to Codex, OpenAI's command-line coding agent", "", "  Choose how you want to use Codex.", "",
			"> 1. Sign in with ChatGPT", "     Usage included with Plus, Pro, Business, and Enterprise plans", "",
			"  2. Sign in with Device Code", "     Sign in from another device with a one-time code", "",
			"  3. Sign in another way", "     Use an API key or another provider", "", "  Press enter to continue",
		}
	}}
}

func marked(selected int, texts ...string) []string {
	var lines []string
	for i, text := range texts {
		mark := "  "
		if i == selected {
			mark = "› "
		}
		lines = append(lines, fmt.Sprintf("%s%d. %s", mark, i+1, text))
	}
	return lines
}

func folderDialog(directory string) dialog {
	return dialog{options: 2, numbered: true, escape: 1, lines: func(selected int) []string {
		lines := []string{
			"  Folder access", "  " + directory, "",
			"  Trust this folder? Codex can read, edit, and run files here, subject to your permission settings. Folder settings can run code automatically, even without a model request. Continue only if you",
			"  trust these files. Your trust decision will be saved.", "",
		}
		lines = append(lines, marked(selected, "Trust and continue", "Back to Agent Command Center")...)
		return append(lines, "", "  enter continue · esc back")
	}}
}

func hookDialog(count int) dialog {
	return dialog{options: 3, numbered: true, escape: 2, lines: func(selected int) []string {
		lines := []string{
			"  Hooks need review", fmt.Sprintf("  %d hooks are new or changed.", count), "",
			"  Hooks can run outside the sandbox after you trust them.", "",
		}
		lines = append(lines, marked(selected, "Review hooks", "Trust all and continue", "Continue without trusting (hooks won't run)")...)
		return append(lines, "", "  enter confirm · esc skip")
	}}
}

func approvalDialog(command string) dialog {
	return dialog{options: 3, numbered: true, escape: 2, lines: func(selected int) []string {
		lines := []string{"", "  Would you like to run the following command?", "", "  $ " + command, ""}
		lines = append(lines, marked(selected, "Yes, proceed (y)", "Yes, and don't ask again for this command (p)", "No, and tell Codex what to do differently (esc)")...)
		return append(lines, "", "  Press enter to confirm or esc to cancel")
	}}
}

func directoryMenu(session, current string) dialog {
	return dialog{options: 4, numbered: true, lines: func(selected int) []string {
		lines := []string{
			"  Working directory · resume", "", "  Session = latest cwd recorded in the resumed session",
			"  Current = your current working directory", "",
		}
		lines = append(lines, marked(selected, "Use session directory ("+session+")", "Use current directory ("+current+")",
			"Always use session directory", "Always use current directory")...)
		return append(lines, "", "  enter continue · esc use session · ^c quit")
	}}
}

// heldDialog is shown while another process has the thread.
func heldDialog(t *thread) dialog {
	return dialog{options: 2, letters: "rf", lines: func(int) []string {
		return append(slices.Clone(t.shown), "", "  🔒  This conversation is open in another app",
			"      Close it there and press R to continue here.", "", "   r retry   f fork   ←/esc command center   ^c/q exit   ^t transcript")
	}}
}

// codexFailure is the text and the codex_error_info of a failed turn, as measured.
func codexFailure(c control) (text string, info any) {
	message := c.Message
	if message == "" {
		message = "The mock answers " + c.Mode
	}
	status := map[string]string{"401": "401 Unauthorized", "403": "403 Forbidden", "529": "529 <unknown status code>"}[c.Mode]
	switch {
	case c.Mode == "429" && c.UsageLimit:
		until := ""
		if c.ResetAt != nil {
			until = " or try again at " + c.ResetAt.Format("3:04 PM")
		}
		return "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits" + until + ".", "usage_limit_exceeded"
	case c.Mode == "429":
		return "exceeded retry limit, last status: 429 Too Many Requests", map[string]any{"response_too_many_failed_attempts": map[string]any{"http_status_code": 429}}
	case c.Mode == "500":
		return "We’re currently experiencing high demand, which may cause temporary errors.", "internal_server_error"
	case status == "":
		return "stream disconnected before completion: error sending request", "other"
	}
	code := status[:3]
	return "unexpected status " + status + ": " + message + ", url: http://127.0.0.1/v1/responses", map[string]any{"http_connection_failed": map[string]any{"http_status_code": code}}
}
