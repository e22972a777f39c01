// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// codex replays the native program of Codex 0.171.0, with its engine in the process.
type codex struct {
	arguments codexArguments
	home      string
	directory string
	config    codexConfig
	hooks     hooks
	screen    *screen
	turns     *turns
	log       journal

	// thread that is shown; source is how it began, until its first turn has said so.
	thread *thread
	source string
	// loaded are all threads that were shown so far.
	loaded []*thread
	turnID string
	ending sync.Once
}

type codexArguments struct {
	verb, id, directory, prompt string
	bypass, daemon              bool
	hooks                       hooks
}

var hookFlag = regexp.MustCompile(`^hooks\.(\w+)=`)
var hookCommand = regexp.MustCompile(`command\s*=\s*"((?:[^"\\]|\\.)*)"`)

func parseCodex(args []string) (a codexArguments, wrong string) {
	a.daemon, a.hooks = true, hooks{}
	if len(args) > 0 && slices.Contains([]string{"resume", "fork", "exec"}, args[0]) {
		a.verb, args = args[0], args[1:]
	}
	for i := 0; i < len(args); i++ {
		value := func() string {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch args[i] {
		case "--no-daemon":
			a.daemon = false
		case "--dangerously-bypass-hook-trust":
			a.bypass = true
		case "--skip-git-repo-check":
		case "-C", "--cd":
			a.directory = value()
		case "-m", "--model", "-s", "--sandbox", "-a", "--ask-for-approval", "-p", "--profile":
			value()
		case "-c", "--config":
			a.override(value())
		default:
			if strings.HasPrefix(args[i], "-") {
				return a, "error: unexpected argument '" + args[i] + "' found"
			}
			a.word(args[i])
		}
	}
	return a, ""
}

// override takes the hooks out of a -c; nothing else counts here.
func (a *codexArguments) override(text string) {
	event := hookFlag.FindStringSubmatch(text)
	if event == nil {
		return
	}
	for _, m := range hookCommand.FindAllStringSubmatch(text, -1) {
		a.hooks[event[1]] = append(a.hooks[event[1]], tomlText(m[1]))
	}
}

// word without a dash: the id, after a verb that wants one, and then the prompt.
func (a *codexArguments) word(text string) {
	if a.verb != "" && a.verb != "exec" && a.id == "" {
		a.id = text
		return
	}
	a.prompt = text
}

// tomlText undoes the escapes of a basic string of TOML.
func tomlText(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\t`, "\t", `\n`, "\n").Replace(text)
}

func codexMain(root string, args []string) {
	log := newJournal(root, "codex")
	a, wrong := parseCodex(args)
	log.start(args, a.id)
	if len(args) == 1 && args[0] == "--version" {
		_, _ = fmt.Fprintln(os.Stdout, "codex-cli 0.171.0")
		return
	}
	if wrong != "" {
		leaves(log, 2, wrong)
	}
	c := &codex{arguments: a, log: log, home: codexHome(), hooks: a.hooks, source: "startup"}
	if os.Getenv("CODEX_HOME") == "" {
		// Its own default it makes itself.
		_ = os.MkdirAll(c.home, 0o700)
	}
	if info, err := os.Stat(c.home); err != nil || !info.IsDir() {
		leaves(log, 1, "Error: CODEX_HOME points to "+c.home+", which is not a folder")
	}
	c.config = loadCodexConfig(c.home)
	c.directory, _ = os.Getwd()
	if a.directory != "" {
		c.directory, _ = filepath.Abs(a.directory)
	}
	startup(root, c.home, log, a.verb == "resume")
	saved := c.saved()
	c.screen = noScreen(log)
	if a.verb != "exec" {
		c.screen = openScreen(log, c.frame)
		c.screen.composer.manners, c.screen.cursor = codexManners, true
	}
	c.turns = &turns{
		root: root, config: c.home, log: log, screen: c.screen, driver: c,
		answer: func() string { return answer(c.thread.prompts) },
	}
	if a.verb != "exec" {
		c.screen.deaf = span(c.turns.control().Deaf, 0)
		c.dialogs()
		c.turns.notice()
	}
	c.begin(saved)
	if a.verb == "exec" {
		c.turns.take(<-c.screen.prompts)
		_, _ = fmt.Fprintln(os.Stdout, answer(c.thread.prompts))
		c.release()
		end(c.screen, c.log, 0)
	}
	c.serve()
}

// begin takes a thread and shows the composer.
func (c *codex) begin(saved *thread) {
	switch c.arguments.verb {
	case "resume":
		c.source = "resume"
		c.resume(saved)
	case "fork":
		c.fork(saved)
	default:
		c.thread = c.begun(newThread(c.home, c.directory))
	}
	c.show()
	if c.arguments.prompt != "" {
		c.screen.prompts <- submission{c.arguments.prompt, c.arguments.prompt}
	}
}

// show the thread from its beginning.
func (c *codex) show() {
	c.turns.environment = []string{
		"CODEX_CI=1", "CODEX_THREAD_ID=" + c.thread.id, "CODEX_SESSION_ID=" + c.thread.id,
		"CODEX_SANDBOX_NETWORK_DISABLED=1", "CODEX_PERMISSION_PROFILE=:workspace",
	}
	c.screen.update(func() { c.screen.body = slices.Clone(c.thread.shown) })
	c.screen.enter(true)
	c.works(false)
}

// saved is the thread that the arguments name, or the end; nil when they name none.
func (c *codex) saved() *thread {
	verb, id := c.arguments.verb, c.arguments.id
	if verb == "" || verb == "exec" {
		return nil
	}
	path := findRollout(c.home, id)
	if path == "" && indexed(c.home, id) {
		leaves(c.log, 1, "Error: Failed to "+verb+" session from "+c.home+"/sessions/rollout-"+id+".jsonl: thread/"+verb+" failed during TUI bootstrap: thread/"+verb+" failed: no rollout found for thread id "+id+" (code -32600)")
	}
	t := readRollout(c.home, path, id)
	if t.directory == "" {
		leaves(c.log, 1, "ERROR: No saved session found with ID "+id+". Run `codex "+verb+"` without an ID to choose from existing sessions.")
	}
	return t
}

// resume a thread; while somebody else holds it, nothing is written to it.
func (c *codex) resume(t *thread) {
	if t.directory != c.directory && c.arguments.directory == "" {
		if c.screen.ask(directoryMenu(t.directory, c.directory))%2 == 0 {
			c.directory = t.directory
		}
	}
	c.thread = t
	for !t.hold() {
		c.screen.enter(true)
		if c.screen.ask(heldDialog(t)) == 1 {
			c.fork(t)
			return
		}
	}
	c.begun(t).open()
}

// fork the thread into one with a new id, with all that was said.
func (c *codex) fork(t *thread) {
	c.thread, c.source = c.begun(newThread(c.home, c.directory)), "fork"
	c.thread.prompts, c.thread.shown = t.prompts, t.shown
	c.thread.inherited, _ = os.ReadFile(t.path)
	c.thread.open()
}

// release removes the locks: an orderly end leaves none.
func (c *codex) release() {
	for _, t := range c.loaded {
		_ = os.Remove(t.lock.Name())
	}
}

// begun notes a thread that is held until the end.
func (c *codex) begun(t *thread) *thread {
	c.loaded = append(c.loaded, t)
	return t
}

// renew begins a new thread. The old one stays held, as measured.
func (c *codex) renew() {
	c.thread, c.source = c.begun(newThread(c.home, c.directory)), "startup"
	c.show()
}

// back goes to a thread that is held already: no lock, no file and no hook tells of it
// before its next turn.
func (c *codex) back(id string) {
	for _, t := range c.loaded {
		if t.id == id {
			c.thread, c.source = t, ""
			c.show()
		}
	}
}

func (c *codex) serve() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT)
	go func() {
		<-signals
		dieBy(syscall.SIGINT)
	}()
	go func() {
		for key := range c.screen.keys {
			if c.turns.interrupt() || key == "escape" {
				continue
			}
			go c.leave()
		}
	}()
	for prompt := range c.screen.prompts {
		word, id, _ := strings.Cut(prompt.told, " ")
		switch word {
		case "/exit", "/quit":
			c.leave()
		case "/new", "/clear":
			c.renew()
		case "/fork":
			c.fork(c.thread)
			c.show()
			c.screen.say("", "• Fork created. You can continue here.")
		case "/resume":
			c.back(id)
		default:
			if isCommand(prompt.told) {
				c.screen.update(func() { c.screen.composer.typed(prompt.text) })
				continue
			}
			c.turns.take(prompt)
		}
	}
}

// leave in an orderly way: the only end at which a hook runs.
func (c *codex) leave() {
	c.ending.Do(func() {
		c.fire("SessionEnd", map[string]any{"reason": "other"})
		pause(context.Background(), 200*time.Millisecond)
		var lines []string
		if len(c.thread.prompts) > 0 {
			lines = []string{"To continue this session, run:", "  codex resume " + c.thread.id}
		}
		c.release()
		end(c.screen, c.log, 0, lines...)
	})
}

// fire a hook with what all payloads have.
func (c *codex) fire(event string, payload map[string]any) {
	payload["session_id"], payload["transcript_path"], payload["cwd"] = c.thread.id, c.thread.path, c.directory
	payload["model"], payload["permission_mode"] = c.config.model, "default"
	if c.turnID != "" && event != "SessionStart" && event != "SessionEnd" {
		payload["turn_id"] = c.turnID
	}
	c.hooks.fire(event, c.directory, payload)
}

// works says in the title and on the screen whether a turn is being worked on.
func (c *codex) works(working bool) {
	c.screen.update(func() {
		name, mark := filepath.Base(c.directory), ""
		c.screen.state = ""
		if working {
			c.screen.state, mark = "◦ Working (1s • esc to interrupt)", "⠧ "
		}
		if len(c.thread.prompts) > 0 {
			name = oneLine(c.thread.prompts[0]) + " | " + name
		}
		c.screen.title = mark + name
	})
}

func (c *codex) submitted(prompt submission) {
	c.turnID = newID()
	c.thread.open()
	c.thread.event("task_started", map[string]any{"turn_id": c.turnID})
	if c.source != "" {
		c.fire("SessionStart", map[string]any{"source": c.source})
		c.source = ""
	}
	c.screen.say("", "› "+strings.ReplaceAll(prompt.text, "\n", "\n  "))
	c.thread.prompts = append(c.thread.prompts, prompt.text)
	c.works(true)
	c.fire("UserPromptSubmit", map[string]any{"prompt": prompt.told})
	pause(context.Background(), span(c.turns.control().FlushDelay, 60*time.Millisecond))
	c.thread.prompted(prompt.text)
}

func (c *codex) permitted(_ context.Context, command string, asks bool) bool {
	tool := map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": command}, "tool_use_id": "call_fake"}
	c.fire("PreToolUse", tool)
	if !asks {
		return true
	}
	c.fire("PermissionRequest", tool)
	c.screen.update(func() { c.screen.title = "[ . ] Action Required | " + filepath.Base(c.directory) })
	defer c.works(true)
	return c.screen.ask(approvalDialog(command)) < 2
}

func (c *codex) used(command, output string) {
	c.fire("PostToolUse", map[string]any{
		"tool_name": "Bash", "tool_input": map[string]any{"command": command}, "tool_use_id": "call_fake", "tool_response": output,
	})
	if output == "" {
		output = "(no output)"
	}
	c.screen.say("", "• Ran "+command, "  └ "+oneLine(output))
}

func (c *codex) answered(text string) {
	c.thread.answered(text)
	c.screen.say("", "• "+text, "", "  Worked for <1s • "+time.Now().Format("15:04"))
	c.fire("Stop", map[string]any{"stop_hook_active": false, "last_assistant_message": text})
	c.thread.event("task_complete", map[string]any{"turn_id": c.turnID, "last_agent_message": text})
	c.works(false)
}

// failed runs no hook: only the rollout and the screen tell.
func (c *codex) failed(ctx context.Context, given control) {
	if !pause(ctx, 200*time.Millisecond) {
		return
	}
	text, info := codexFailure(given)
	c.thread.event("task_complete", map[string]any{
		"turn_id": c.turnID, "last_agent_message": nil, "error": map[string]any{"message": text, "codex_error_info": info},
	})
	c.screen.say("", "■ "+text)
	c.works(false)
}

func (c *codex) interrupted() {
	c.thread.event("turn_aborted", map[string]any{"turn_id": c.turnID, "reason": "interrupted"})
	c.screen.say("", "■ Conversation interrupted - tell the model what to do differently.")
	c.works(false)
}

func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		fatal(err)
	}
	return id.String()
}
