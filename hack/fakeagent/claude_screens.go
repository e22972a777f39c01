// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// frame is the conversation and the composer below it.
func (c *claude) frame(s *screen) []string {
	if c.id == "" {
		return nil
	}
	lines := []string{" ▐▛███▛█   Claude Code v2.1.332", "▝▜██████▀  Opus 5.5 · API Usage Billing", " ▝▝   ▝▝   " + c.directory}
	for _, line := range s.body {
		lines = append(lines, strings.Split(line, "\n")...)
	}
	if s.state != "" {
		lines = append(lines, "", s.state)
	}
	mode := "⏵⏵ auto mode on (shift+tab to cycle)"
	if c.arguments.permissionMode == "default" {
		mode = "⏸ manual mode on"
	}
	if s.state != "" {
		mode += " · esc to interrupt"
	}
	columns, rows := terminalSize()
	input, hidden := s.composer.lines("❯\u00a0", claudeHint(s.placeholder), columns, rows-12)
	above := rule("─")
	if hidden > 0 {
		above = fmt.Sprintf("─── ↑ %d more %s", hidden, strings.Repeat("─", max(columns-20, 10)))
	}
	lines = append(append(lines, "", above), input...)
	lines = append(append(lines, rule("─")), s.below...)
	return append(lines, "  "+mode+" · ← for agents")
}

// claudeHint is faint, but for the character that the cursor is drawn over.
func claudeHint(text string) string {
	if text == "" {
		return ""
	}
	return "\x1b[7m" + text[:1] + "\x1b[27m" + faint(text[1:])
}

// isCommand: a word with one slash is a command, and no prompt.
func isCommand(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	word, _, _ = strings.Cut(word, "\n")
	return strings.HasPrefix(word, "/") && !strings.Contains(word[1:], "/")
}

// dialogs that come before the composer, in their order. At none of them does the
// registry have the client.
func (c *claude) dialogs() {
	answers := loadAnswers(c.config)
	if !answers.onboarded() {
		end(c.screen, c.log, 1, "Welcome to Claude Code v2.1.332", "", " Unable to connect to Anthropic services", "",
			" Failed to connect to api.anthropic.com: ENOTFOUND")
	}
	if !answers.trusts(c.directory) && !c.arguments.prints {
		if c.screen.ask(trustDialog(c.directory)) == 0 {
			end(c.screen, c.log, 1, "Claude Code didn't start because this folder isn't trusted.", "Run claude again and choose Yes, or run it in another folder.")
		}
		answers.object("projects", c.directory)["hasTrustDialogAccepted"] = true
		answers.save()
	}
	c.loggedIn = os.Getenv("ANTHROPIC_AUTH_TOKEN") != ""
	key := os.Getenv("ANTHROPIC_API_KEY")
	if key == "" {
		return
	}
	if answers.keyAnswer(key) == "" && !c.arguments.prints {
		word := [2]string{"approved", "rejected"}[c.screen.ask(keyDialog(key))]
		answers.answerKey(key, word)
	}
	c.loggedIn = c.loggedIn || answers.keyAnswer(key) == "approved" || c.arguments.prints
}

// options of a dialog, one per line, with the selected one marked.
func options(indent string, selected int, texts ...string) []string {
	var lines []string
	for i, text := range texts {
		mark := "  "
		if i == selected {
			mark = "❯ "
		}
		lines = append(lines, indent+mark+text)
	}
	return lines
}

// trustDialog has no numbers, and its default ends the session.
func trustDialog(directory string) dialog {
	return dialog{options: 2, escape: 0, lines: func(selected int) []string {
		lines := []string{
			rule("─"), " Accessing workspace:", "", " " + directory, "",
			" Quick safety check: Is this a project you created or one you trust? (Like your own code, a well-known open source project, or work from your team). If not, take a moment to review what's in this",
			" folder first.", "", " Claude Code'll be able to read, edit, and execute files here.", "", " Security guide", "",
		}
		lines = append(lines, options(" ", selected, "No, exit", "Yes, I trust this folder")...)
		return append(lines, "", " Enter to confirm · Esc to cancel")
	}}
}

func keyDialog(key string) dialog {
	return dialog{options: 2, selected: 1, escape: 1, lines: func(selected int) []string {
		lines := []string{
			rule("─"), "  Detected a custom API key in your environment", "",
			"  ANTHROPIC_API_KEY: sk-ant-..." + key[max(0, len(key)-20):], "", "  Do you want to use this API key?", "",
		}
		lines = append(lines, options("  ", selected, "Yes", "No (recommended)")...)
		return append(lines, "", "  Enter to confirm · Esc to cancel")
	}}
}

// pickerDialog is where --resume leads with anything that is no UUID: alive, and no
// session.
func pickerDialog(word string) dialog {
	return dialog{options: 1, lines: func(int) []string {
		return []string{
			rule("─"), "  Resume session", "  ╭" + strings.Repeat("─", 100) + "╮", "  │ ⌕ " + word,
			"  ╰" + strings.Repeat("─", 100) + "╯", "", "  No sessions match \"" + word + "\".", "", "  Type to search · Esc to clear",
		}
	}}
}

func permissionDialog(command string) dialog {
	return dialog{options: 3, numbered: true, escape: 2, lines: func(selected int) []string {
		lines := []string{rule("─"), " Bash command", "", " Run a command", rule("╌"), " │ " + command, rule("╌"), "", " Do you want to proceed?"}
		lines = append(lines, options(" ", selected, "1. Yes",
			"2. Yes, and switch to auto mode · auto mode handles these prompts for you", "3. No")...)
		return append(lines, "", " Esc to cancel · Tab to amend")
	}}
}

// claudeFailure is how a turn ends that has failed for good.
type claudeFailure struct {
	word, text string
	// retrying is what is shown before, while the client tries again; empty when it does
	// not.
	retrying string
}

func (c *claude) failureOf(given control) claudeFailure {
	message := given.Message
	if message == "" {
		message = "The mock answers " + given.Mode
	}
	retrying := given.Mode + " " + message
	switch {
	case !c.loggedIn:
		return claudeFailure{"authentication_failed", "Not logged in · Please run /login", ""}
	case given.Mode == "401":
		return claudeFailure{"authentication_failed", "Please run /login · API Error: 401 " + message, retrying}
	case given.Mode == "403":
		return claudeFailure{"authentication_failed", "Please run /login · API Error: 403 " + message, ""}
	case given.Mode == "429" && given.UsageLimit && given.ResetAt != nil:
		// The plan's, as it is shown to somebody who has signed in.
		return claudeFailure{"rate_limit", "You've hit your 5-hour limit · resets " + given.ResetAt.UTC().Format("3:04pm") + " (UTC)", ""}
	case given.Mode == "429" && given.UsageLimit:
		return claudeFailure{"rate_limit", "API Error: Request rejected (429) · " + message, ""}
	case given.Mode == "429":
		return claudeFailure{"rate_limit", "API Error: Request rejected (429) · " + message, retrying}
	case given.Mode == "529":
		return claudeFailure{"server_error", "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary.", ""}
	case given.Mode == "drop":
		return claudeFailure{"server_error", "API Error: Connection dropped (ECONNRESET). Check the gateway or proxy in front of the API.", "Connection dropped (ECONNRESET)"}
	}
	return claudeFailure{"server_error", "API Error: " + retrying + ". This is a server-side issue, usually temporary — try again in a moment.", retrying}
}

// shown in the conversation at the end of a failed turn.
func (f claudeFailure) shown(given control) []string {
	switch {
	case strings.HasPrefix(f.text, "You've hit"):
		return []string{"  ⎿  " + f.text, "", "● Usage limit reached · set to continue automatically at " + given.ResetAt.UTC().Format("3:04pm")}
	case strings.HasPrefix(f.text, "Not logged in"):
		return []string{"  ⎿  " + f.text}
	}
	return []string{"", "● " + f.text}
}

// failed shows the attempts, during which nothing but the screen and the registry
// tells, and then the end.
func (c *claude) failed(ctx context.Context, given control) {
	f := c.failureOf(given)
	attempts := max(given.Retries, 3)
	for i := 1; f.retrying != "" && i <= attempts; i++ {
		c.screen.update(func() {
			c.screen.state = fmt.Sprintf("✻ %s · retrying in 1s · attempt %d/%d", f.retrying, i, attempts)
		})
		if !pause(ctx, span(given.RetryPause, 100*time.Millisecond)) {
			return
		}
	}
	c.screen.say(f.shown(given)...)
	if strings.HasPrefix(f.text, "You've hit") {
		at := given.ResetAt.UTC().Format("3:04pm")
		c.screen.update(func() {
			c.screen.below = []string{"  ⚠ Usage limit reached · limit resets " + at, "    Continuing automatically at " + at + " · Esc to cancel"}
		})
	}
	c.screen.update(func() {
		c.screen.placeholder = "Resend your message to try again"
		if f.word == "authentication_failed" {
			c.screen.placeholder = "Once fixed, resend your message"
		}
	})
	c.fire("StopFailure", map[string]any{"error": f.word, "last_assistant_message": f.text})
	c.transcript.answered(f.text, c.persists, 120*time.Millisecond)
	c.promptID = ""
	c.status("idle", "")
}
