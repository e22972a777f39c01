// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// gem is a client that muxlet has no class for: its id is given to it, it has no
// hooks, its transcript is a JSON file, and it saves and ends at Ctrl-C twice.
type gem struct {
	home, directory, path string

	// said by both; history are the prompts in it.
	said    []saying
	history []string
	screen  *screen
	turns   *turns
	log     journal
	armed   time.Time
}

// saying is one entry of a transcript.
type saying struct {
	Who  string `json:"who"`
	Text string `json:"text"`
}

func gemMain(root string, args []string) {
	log := newJournal(root, "gem")
	g := &gem{log: log, home: filepath.Join(os.Getenv("HOME"), ".gem")}
	if home := os.Getenv("GEM_HOME"); home != "" {
		g.home = home
	}
	g.directory, _ = os.Getwd()
	args, yolo := take(args, "--yolo")
	if len(args) != 2 || args[0] != "--session-id" && args[0] != "--resume" {
		log.start(args, "")
		leaves(log, 2, "usage: gem --session-id ID | --resume ID [--yolo]")
	}
	log.start(args, args[1])
	g.path = filepath.Join(g.home, "chats", args[1]+".json")
	startup(root, g.home, log, args[0] == "--resume")
	data, err := os.ReadFile(g.path)
	switch resumes := args[0] == "--resume"; {
	case !resumes && err == nil:
		leaves(log, 1, "A chat with ID "+args[1]+" exists.")
	case resumes && (err != nil || json.Unmarshal(data, &g.said) != nil || len(g.said) == 0):
		leaves(log, 42, "There is no chat with ID "+args[1]+".")
	}
	for _, said := range g.said {
		if said.Who == "user" {
			g.history = append(g.history, said.Text)
		}
	}
	g.serve(root, yolo)
}

func (g *gem) serve(root string, trusted bool) {
	g.screen = openScreen(g.log, nothing)
	g.screen.composer.sticks = true
	g.turns = &turns{root: root, config: g.home, log: g.log, screen: g.screen, driver: g, answer: func() string { return answer(g.history) }}
	if known, _ := os.ReadFile(g.home + "/trusted"); !trusted && !slices.Contains(strings.Split(string(known), "\n"), g.directory) {
		g.trust()
	}
	g.turns.notice()
	g.screen.update(func() { g.screen.frame = g.frame })
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		end(g.screen, g.log, 1)
	}()
	go func() {
		for key := range g.screen.keys {
			if key == "ctrl-c" && time.Since(g.armed) < 2*time.Second {
				g.save()
				end(g.screen, g.log, 0, "Saved.")
			}
			g.armed = time.Now()
		}
	}()
	for prompt := range g.screen.prompts {
		if prompt.text == "/exit" {
			end(g.screen, g.log, 0)
		}
		g.turns.take(prompt)
	}
}

// trust asks about the directory, once.
func (g *gem) trust() {
	chosen := g.screen.ask(dialog{options: 2, numbered: true, escape: 1, lines: func(selected int) []string {
		return append([]string{"Do you trust this folder?", g.directory}, marked(selected, "Trust", "Leave")...)
	}})
	if chosen == 1 {
		end(g.screen, g.log, 1)
	}
	_ = os.MkdirAll(g.home, 0o700)
	file, err := os.OpenFile(g.home+"/trusted", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = file.WriteString(g.directory + "\n")
		_ = file.Close()
	}
}

func (g *gem) frame(s *screen) []string {
	lines := append([]string{"gem 0.1"}, s.body...)
	if s.state != "" {
		return append(lines, s.state)
	}
	columns, rows := terminalSize()
	input, _ := s.composer.lines("> ", "", columns, rows-2)
	return append(lines, input...)
}

// save what was said, or what there is of it.
func (g *gem) save(said ...saying) {
	g.said = append(g.said, said...)
	if len(g.said) == 0 {
		return
	}
	_ = os.MkdirAll(filepath.Dir(g.path), 0o700)
	data, err := json.Marshal(g.said)
	if err == nil && os.WriteFile(g.path+".tmp", data, 0o600) == nil {
		_ = os.Rename(g.path+".tmp", g.path)
	}
}

func (g *gem) submitted(given submission) {
	prompt := given.text
	g.history = append(g.history, prompt)
	g.save(saying{"user", prompt})
	g.screen.say("> " + oneLine(prompt))
	g.screen.update(func() { g.screen.state = "… thinking" })
}

func (g *gem) permitted(_ context.Context, command string, asks bool) bool {
	return !asks || g.screen.ask(dialog{options: 2, numbered: true, escape: 1, lines: func(selected int) []string {
		return append([]string{"May I run " + command + "?"}, marked(selected, "Yes", "No")...)
	}}) == 0
}

func (g *gem) used(_, output string) { g.screen.say("ran: " + oneLine(output)) }

func (g *gem) finish(line string) {
	g.screen.say(line)
	g.screen.update(func() { g.screen.state = "" })
}

func (g *gem) failed(_ context.Context, c control) {
	text := "! error " + c.Mode
	if c.UsageLimit && c.ResetAt != nil {
		text = "! quota used up until " + c.ResetAt.Format("15:04")
	}
	g.finish(text)
}

func (g *gem) answered(text string) {
	g.save(saying{"gem", text})
	g.finish("* " + text)
}

func (g *gem) interrupted() { g.finish("! stopped") }
