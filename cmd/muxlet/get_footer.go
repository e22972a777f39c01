// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/muxlet/muxlet/controller/server"
)

// maxFooterLines is how many lines of one kind follow a table.
const maxFooterLines = 10

// sayNothingFound tells a person with an empty list where a YAML is looked for.
// others is the number of sessions that are there and were not asked for.
func (o *getOptions) sayNothingFound(status server.DaemonStatus, others int) {
	roots := strings.Join(rootWords(status), ", ")
	switch {
	case o.selector != "":
		o.complain("No sessions found: none matches the selector %s.", o.selector)
	case others > 0:
		o.complain("No sessions found: none waits for a person.")
	case len(status.Problems) > 0:
		o.complain("No sessions found: no valid manifest in %s. Correct what is named below.", roots)
	default:
		o.complain("No sessions found: no manifest in %s. Put a YAML there that declares a Session, or run \"muxlet new\" in a project, and it comes up by itself.", roots)
	}
}

// rootWords are the directories that are looked into, and what was found there.
func rootWords(status server.DaemonStatus) []string {
	if len(status.Roots) == 0 {
		return status.Manifests
	}
	var words []string
	for _, root := range status.Roots {
		switch {
		case root.Problem != "":
			words = append(words, fmt.Sprintf("%s (%s)", root.Path, root.Problem))
		case root.Files == 1:
			words = append(words, root.Path+" (1 file)")
		case root.Files > 1:
			words = append(words, fmt.Sprintf("%s (%d files)", root.Path, root.Files))
		default:
			words = append(words, root.Path+" (it is empty)")
		}
	}
	return words
}

// footers tell below a table what is not right around it: what, why, and how to
// go on.
func (o *getOptions) footers(status server.DaemonStatus) {
	if status.Tmux.State == server.StateUnknown {
		o.complain("Unknown: tmux could not be asked (%s): %s Nothing is started or stopped until it answers.",
			status.Tmux.Reason, sentence(status.Tmux.Message))
	}
	o.bounded(problemLines(status.Problems), "\"muxlet validate\" shows all of them.")
	o.bounded(heldLines(status.Held), "\"muxlet prune\" shows all of them.")
	o.bounded(unclaimedLines(status), "")
}

// hintAtProblems adds to the error about a session that was not found that files
// have problems: it may be declared in one of them.
func (g *globals) hintAtProblems(ctx context.Context, client *server.Client) {
	status, err := client.Status(ctx)
	if err != nil || g.wantsJSON() {
		return
	}
	g.bounded(problemLines(status.Problems), "\"muxlet validate\" shows all of them.")
}

func (g *globals) bounded(lines []string, rest string) {
	for i, line := range lines {
		if i == maxFooterLines {
			g.complain("%s", strings.TrimSpace(fmt.Sprintf("… and %d more. %s", len(lines)-i, rest)))
			return
		}
		g.complain("%s", line)
	}
}

func problemLines(problems []string) []string {
	var lines []string
	for _, problem := range problems {
		lines = append(lines, "Problem: "+problem)
	}
	return lines
}

// heldLines have one line for all that are held for the same reason.
func heldLines(held []server.HeldRemoval) []string {
	var messages []string
	names := map[string][]string{}
	for _, h := range held {
		if names[h.Message] == nil {
			messages = append(messages, h.Message)
		}
		name := h.Name
		if h.Kind != "" {
			name = heldWord(h)
		}
		names[h.Message] = append(names[h.Message], name)
	}
	var lines []string
	for _, message := range messages {
		lines = append(lines, fmt.Sprintf("Held: %s: %s", strings.Join(names[message], ", "), withPrune(message)))
	}
	return lines
}

// withPrune adds how to go on to a message that does not say it.
func withPrune(message string) string {
	if strings.Contains(message, "muxlet prune") {
		return sentence(message)
	}
	return sentence(message) + " Put the files back, or run \"muxlet prune --confirm\" to let it go."
}

func unclaimedLines(status server.DaemonStatus) []string {
	var lines []string
	for _, p := range status.Unclaimed {
		lines = append(lines, fmt.Sprintf(
			"Unclaimed: pane %s of tmux session %s (pid %d) belongs to session %s, which is not declared. "+
				"Declare it again and it is adopted, or end it: tmux -S %s kill-pane -t %s",
			p.Pane, p.TmuxSession, p.PID, p.Name, shellWord(status.TmuxSocket), shellWord(p.Pane)))
	}
	return lines
}

// sentence ends text with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}
