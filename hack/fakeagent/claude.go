// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// claude replays Claude Code 2.1.332.
type claude struct {
	arguments claudeArguments
	// config folder, and the file with the answers to dialogs in it.
	config    string
	directory string
	persists  bool
	// loggedIn: without a credential each turn fails.
	loggedIn bool
	hooks    hooks
	screen   *screen
	turns    *turns
	log      journal

	mu         sync.Mutex
	id         string
	transcript *transcript
	registry   *registry
	promptID   string
	ending     sync.Once
	armed      time.Time
}

// claudeArguments are those that muxlet and its tests use.
type claudeArguments struct {
	sessionID, resume, settings, permissionMode, prompt string
	resumes, forks, continues, prints, allowsTools      bool
}

func parseClaude(args []string) (a claudeArguments, wrong string) {
	a.permissionMode = "auto"
	for i := 0; i < len(args); i++ {
		value := func() string {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch args[i] {
		case "--session-id":
			a.sessionID = value()
		case "--resume", "-r":
			a.resumes = true
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				a.resume = value()
			}
		case "--settings":
			a.settings = value()
		case "--permission-mode":
			a.permissionMode = value()
		case "--allowedTools":
			a.allowsTools = strings.Contains(value(), "Bash")
		case "--model", "--append-system-prompt":
			value()
		case "-p", "--print":
			a.prints = true
		case "--fork-session":
			a.forks = true
		case "--continue", "-c":
			a.continues = true
		default:
			if strings.HasPrefix(args[i], "-") {
				return a, "error: unknown option '" + args[i] + "'"
			}
			a.prompt = args[i]
		}
	}
	return a, ""
}

func claudeMain(root string, args []string) {
	log := newJournal(root, "claude")
	a, wrong := parseClaude(args)
	log.start(args, max(a.sessionID, a.resume))
	if len(args) == 1 && args[0] == "--version" {
		_, _ = fmt.Fprintln(os.Stdout, "2.1.332 (Claude Code)")
		return
	}
	c := &claude{arguments: a, log: log}
	c.config = os.Getenv("CLAUDE_CONFIG_DIR")
	if c.config == "" {
		c.config = filepath.Join(os.Getenv("HOME"), ".claude")
	}
	c.directory, _ = os.Getwd()
	c.persists = os.Getenv("CLAUDE_CODE_CHILD_SESSION") == "" || os.Getenv("CLAUDE_CODE_FORCE_SESSION_PERSISTENCE") != ""
	startup(root, c.config, log, a.resumes)
	if wrong == "" {
		wrong = c.refusal()
	}
	if wrong != "" {
		leaves(log, 1, wrong)
	}
	c.screen = noScreen(log)
	if !a.prints {
		c.screen = openScreen(log, c.frame)
		c.screen.composer.manners = claudeManners
	}
	c.turns = &turns{
		root: root, config: c.config, log: log, screen: c.screen, driver: c, environment: claudeMarkers,
		answer: func() string { return answer(c.history()) },
	}
	c.screen.deaf = span(c.turns.control().Deaf, 0)
	c.dialogs()
	c.turns.notice()
	c.begin()
	if a.prints {
		c.turns.take(<-c.screen.prompts)
		_, _ = fmt.Fprintln(os.Stdout, answer(c.history()))
		c.end("other", 0)
	}
	c.serve()
}

// claudeMarkers are what a tool and a hook of Claude Code find in their environment.
var claudeMarkers = []string{
	"AI_AGENT=claude-code_2-1-332_harness", "CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1",
	"CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SESSION_ATTENDED=1", "CLAUDE_EFFORT=medium",
}

// refusal of arguments that lead to exit status 1; empty when they will do.
func (c *claude) refusal() string {
	a := c.arguments
	if a.settings != "" {
		var err error
		if c.hooks, err = settingsHooks(a.settings); err != nil {
			return "Error: Settings file not found: " + a.settings
		}
	}
	if a.sessionID != "" && (a.resumes || a.continues) && !a.forks {
		return "Error: --session-id with --continue or --resume also needs --fork-session."
	}
	if a.sessionID != "" && uuid.Validate(a.sessionID) != nil {
		return "Error: Invalid session ID. Must be a valid UUID."
	}
	if a.continues {
		return "No conversation found to continue"
	}
	return ""
}

// begin shows the composer, and is from then on what others can see.
func (c *claude) begin() {
	source := "startup"
	c.id = c.arguments.sessionID
	switch {
	case c.arguments.resumes:
		source = c.resume()
	case c.id == "":
		c.id = uuid.NewString()
	}
	if c.transcript == nil {
		c.transcript = newTranscript(c.config, c.directory, c.id)
		// Whatever is there, empty or damaged; one of another directory is not looked at.
		if _, err := os.Stat(c.transcript.path); err == nil {
			end(c.screen, c.log, 1, "Error: Session ID "+c.id+" is already in use.")
		}
	}
	if c.persists && !c.arguments.prints {
		c.registry = register(c.config, c.directory, c.id)
	}
	c.screen.enter(true)
	c.status("idle", "")
	c.fire("SessionStart", map[string]any{"source": source, "model": "claude-opus-5-5"})
	if c.arguments.prompt != "" {
		c.screen.prompts <- submission{c.arguments.prompt, c.arguments.prompt}
	}
}

// resume the conversation of the arguments, or exit, or stay in the picker.
func (c *claude) resume() (source string) {
	id := strings.TrimSuffix(filepath.Base(c.arguments.resume), ".jsonl")
	if uuid.Validate(id) != nil {
		c.screen.update(func() { c.screen.title = "claude · resume" })
		c.screen.enter(true)
		c.screen.ask(pickerDialog(c.arguments.resume))
		end(c.screen, c.log, 0)
	}
	path := c.arguments.resume
	if !filepath.IsAbs(path) {
		path = findTranscript(c.config, id)
	}
	old := readTranscript(path)
	if !old.begun {
		end(c.screen, c.log, 1, "No conversation found with session ID: "+id)
	}
	c.id, c.transcript = id, old
	for _, line := range old.shown {
		c.screen.say(line)
	}
	if !c.arguments.forks {
		return "resume"
	}
	if c.id = c.arguments.sessionID; c.id == "" {
		c.id = uuid.NewString()
	}
	c.transcript = old.fork(c.config, c.directory, c.id)
	return "fork"
}

// serve prompts and keys until the end.
func (c *claude) serve() {
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	go func() {
		codes := map[os.Signal]int{syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGINT: 0}
		for s := range signals {
			c.end("other", codes[s])
		}
	}()
	go func() {
		for key := range c.screen.keys {
			c.pressed(key)
		}
		// The terminal is gone.
		c.end("other", 129)
	}()
	for prompt := range c.screen.prompts {
		word, id, _ := strings.Cut(prompt.told, " ")
		switch word {
		case "/exit", "/quit":
			c.end("prompt_input_exit", 0)
		case "/clear":
			t := newTranscript(c.config, c.directory, uuid.NewString())
			if c.persists {
				t.cleared()
			}
			c.change("clear", "clear", t, "", "❯ /clear")
		case "/branch":
			t := c.transcript.fork(c.config, c.directory, uuid.NewString())
			c.change("resume", "fork", t, "Branched session. You're now in the new one ("+t.id+").")
		case "/resume":
			if t := readTranscript(findTranscript(c.config, id)); t.begun {
				c.change("resume", "resume", t, t.shown...)
			}
		default:
			if prompt.told == "exit" {
				c.end("prompt_input_exit", 0)
			}
			if isCommand(prompt.told) {
				c.screen.say("", "● Unknown command: "+word)
				continue
			}
			c.turns.take(prompt)
		}
	}
}

// pressed Esc, Ctrl-C or Ctrl-D: twice within a second ends an idle client.
func (c *claude) pressed(key string) {
	if c.turns.interrupt() || key == "escape" {
		return
	}
	if time.Since(c.armed) < time.Second {
		c.end("prompt_input_exit", 0)
	}
	c.armed = time.Now()
}

// change to another conversation in the same process.
func (c *claude) change(reason, source string, to *transcript, shown ...string) {
	c.fire("SessionEnd", map[string]any{"reason": reason})
	c.transcript.flush()
	c.mu.Lock()
	c.id, c.transcript = to.id, to
	c.mu.Unlock()
	c.screen.update(func() { c.screen.body = shown })
	c.status("idle", "")
	c.fire("SessionStart", map[string]any{"source": source, "model": "claude-opus-5-5"})
}

// end the client in an orderly way.
func (c *claude) end(reason string, code int) {
	c.ending.Do(func() {
		c.fire("SessionEnd", map[string]any{"reason": reason})
		c.transcript.flush()
		c.registry.remove()
		var lines []string
		if code == 0 && !c.arguments.prints && len(c.transcript.prompts) > 0 {
			lines = []string{"Resume this session with:", "claude --settings " + c.arguments.settings + " --resume " + c.id}
		}
		end(c.screen, c.log, code, lines...)
	})
}

func (c *claude) history() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.transcript.prompts
}

// fire a hook with what all payloads have.
func (c *claude) fire(event string, payload map[string]any) {
	payload["session_id"], payload["transcript_path"], payload["cwd"] = c.id, c.transcript.path, c.directory
	if c.promptID != "" {
		payload["prompt_id"], payload["permission_mode"] = c.promptID, c.arguments.permissionMode
	}
	c.hooks.fire(event, c.directory, payload, append(claudeMarkers, "CLAUDE_PROJECT_DIR="+c.directory)...)
}

// status in the registry and in the title.
func (c *claude) status(status, waitingFor string) {
	c.registry.update(c.id, status, waitingFor)
	c.screen.update(func() {
		c.screen.title = "✳ Claude Code"
		c.screen.state = map[string]string{"busy": "✽ Channeling…"}[status]
	})
}

func (c *claude) submitted(prompt submission) {
	c.promptID = uuid.NewString()
	c.screen.update(func() { c.screen.placeholder, c.screen.below = "", nil })
	c.turns.refused = !c.loggedIn
	c.screen.say("", "❯ "+strings.ReplaceAll(prompt.text, "\n", "\n  "))
	c.status("busy", "")
	c.fire("UserPromptSubmit", map[string]any{"prompt": prompt.told})
	after := span(c.turns.control().FlushDelay, 200*time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transcript.prompted(prompt.text, c.persists, after)
}

func (c *claude) used(command, output string) {
	c.fire("PostToolUse", map[string]any{
		"tool_name": "Bash", "tool_input": map[string]any{"command": command}, "tool_use_id": "toolu_fake",
		"tool_response": map[string]any{"stdout": output, "stderr": "", "interrupted": false}, "duration_ms": 1,
	})
	c.screen.say("  Ran 1 shell command")
}

func (c *claude) answered(text string) {
	c.screen.say("", "● "+text, "", "✻ Churned for 0s · done "+time.Now().Format("3:04 PM"))
	c.fire("Stop", map[string]any{
		"stop_hook_active": false, "last_assistant_message": text, "background_tasks": []any{}, "session_crons": []any{},
	})
	c.transcript.answered(text, c.persists, 120*time.Millisecond)
	c.promptID = ""
	c.status("idle", "")
}

func (c *claude) interrupted() {
	c.screen.say("  ⎿  Interrupted · What should Claude do instead?")
	c.status("idle", "")
}

// permitted shows the dialog of the default mode. The registry says waiting while it
// is open, and a notification comes six seconds after it.
func (c *claude) permitted(_ context.Context, command string, asks bool) bool {
	tool := map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": command}}
	before := map[string]any{"tool_use_id": "toolu_fake", "tool_name": "Bash", "tool_input": tool["tool_input"]}
	c.fire("PreToolUse", before)
	c.screen.say("", "  Running a command", "  ⎿  $ "+command)
	if !asks && (c.arguments.permissionMode != "default" || c.arguments.allowsTools) {
		return true
	}
	c.status("waiting", "permission prompt")
	tool["permission_suggestions"] = []any{}
	c.fire("PermissionRequest", tool)
	notice := time.AfterFunc(6*time.Second, func() {
		c.fire("Notification", map[string]any{
			"message": "Claude needs your permission to use Bash", "notification_type": "permission_prompt",
		})
	})
	defer notice.Stop()
	chosen := c.screen.ask(permissionDialog(command))
	c.status("busy", "")
	return chosen < 2
}
