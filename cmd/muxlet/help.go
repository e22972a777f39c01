// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The groups of the root's help.
const (
	groupDeclare = "declare"
	groupLook    = "look"
	groupAct     = "act"
	groupDaemon  = "daemon"
)

var groups = []*cobra.Group{
	{ID: groupDeclare, Title: "Declare sessions:"},
	{ID: groupLook, Title: "Look at them:"},
	{ID: groupAct, Title: "Work with them:"},
	{ID: groupDaemon, Title: "The daemon and this program:"},
}

// groupOf is the group of each verb.
var groupOf = map[string]string{
	"new": groupDeclare, "apply": groupDeclare, "edit": groupDeclare, "delete": groupDeclare, "diff": groupDeclare,
	"validate": groupDeclare, "explain": groupDeclare, "prune": groupDeclare,
	"get": groupLook, "describe": groupLook, "logs": groupLook, "events": groupLook, "top": groupLook, "wait": groupLook,
	"attach": groupAct, "next": groupAct, "pick": groupAct, "send": groupAct, "cancel": groupAct,
	"suspend": groupAct, "resume": groupAct, "restart": groupAct, "terminate": groupAct,
	"daemon": groupDaemon, "install": groupDaemon, "uninstall": groupDaemon, "config": groupDaemon, "state": groupDaemon, "doctor": groupDaemon, "version": groupDaemon, "completion": groupDaemon, "help": groupDaemon,
}

// alsoCalled are the words of other tools for our verbs: they are no verbs, and an error
// that meets one names ours.
var alsoCalled = map[string][]string{
	"get":       {"ls", "list", "ps", "status", "sessions"},
	"describe":  {"show", "info", "inspect", "desc"},
	"logs":      {"tail", "capture", "screen"},
	"events":    {"history"},
	"top":       {"stats", "usage"},
	"attach":    {"enter", "join", "connect", "a", "at", "exec", "switch"},
	"apply":     {"create", "set"},
	"new":       {"run", "add", "init"},
	"delete":    {"rm", "remove", "del"},
	"send":      {"prompt", "turn", "ask", "tell", "type"},
	"terminate": {"stop", "kill", "end"},
	"resume":    {"start", "up", "unsuspend"},
	"suspend":   {"pause", "down"},
	"cancel":    {"unsend"},
	"daemon":    {"server", "serve", "start-server"},
	"doctor":    {"check", "diagnose"},
	"validate":  {"lint", "verify"},
	"config":    {"settings"},
	"explain":   {"schema", "docs"},
	"state":     {"backup", "restore", "export", "import", "dump"},
}

// addHelp puts the verbs below root into groups, and lets errors about words that are none
// name the nearest.
func addHelp(root *cobra.Command) {
	root.AddGroup(groups...)
	root.SetHelpCommandGroupID(groupDaemon)
	root.SetCompletionCommandGroupID(groupDaemon)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		cmd.SuggestFor = alsoCalled[cmd.Name()]
		if !cmd.Hidden {
			cmd.GroupID = groupOf[cmd.Name()]
		}
		switch cmd.Name() {
		case "help":
			cmd.Example = "  muxlet help send\n  muxlet help config view"
		case "completion":
			addShellExamples(cmd)
		}
		// One that only has others below it answers a word that is none of them with the
		// help, and 0; that would hide a mistyped word from a script.
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, refuseSubcommand
		}
	}
	root.SetFlagErrorFunc(suggestFlag)
}

// shellExamples are the ways to have completion in each shell.
var shellExamples = map[string]string{
	"bash":       "  source <(muxlet completion bash)\n  muxlet completion bash >~/.local/share/bash-completion/completions/muxlet",
	"zsh":        "  source <(muxlet completion zsh)\n  muxlet completion zsh >~/.zfunc/_muxlet",
	"fish":       "  muxlet completion fish | source\n  muxlet completion fish >~/.config/fish/completions/muxlet.fish",
	"powershell": "  muxlet completion powershell | Out-String | Invoke-Expression",
}

func addShellExamples(completion *cobra.Command) {
	completion.Example = "  source <(muxlet completion bash)\n  source <(muxlet completion zsh)\n  muxlet completion fish | source"
	for _, shell := range completion.Commands() {
		shell.Example = shellExamples[shell.Name()]
	}
}

// refuseSubcommand is what a command does that only has others below it.
func refuseSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usagef("unknown command %q for %q: it has %s%s", args[0], cmd.CommandPath(), strings.Join(names, ", "), didYouMean(args[0], names))
}

// suggestFlag names the flag that is nearest to one that is none.
func suggestFlag(cmd *cobra.Command, err error) error {
	word, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	slices.Sort(names)
	return fmt.Errorf("%w%s", err, didYouMean("--"+word, names))
}
