// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/muxlet/muxlet/observe"
)

// Manners are how a client with an input line behaves. They can be changed while it
// runs; see Env.Behave.
type Manners struct {
	// Question stands on the screen in the place of the input line until somebody
	// presses y.
	Question string `json:",omitempty"`
	// Swallows is how many submit keys do nothing.
	Swallows int `json:",omitempty"`
	// Works is how long it works on a prompt.
	Works time.Duration `json:",omitempty"`
	// Hangs makes it work on each prompt for ever.
	Hangs bool `json:",omitempty"`
	// DiesAt ends it by SIGKILL: once something was pasted, or once it was submitted,
	// before it has taken that down.
	DiesAt Death `json:",omitempty"`
	// Deaf makes it ignore all that is typed or pasted.
	Deaf bool `json:",omitempty"`
	// Silent makes it report nothing.
	Silent bool `json:",omitempty"`
	// Fails makes it report that the turn has failed, with that word.
	Fails string `json:",omitempty"`
}

// Death is when a client with an input line dies.
type Death string

// The deaths.
const (
	AtPaste  Death = "paste"
	AtSubmit Death = "submit"
)

// Words on the screen of a client with an input line.
const (
	composerMark = "> "
	workingWords = "(working, interrupt with C-c)"
	pastedWords  = "[Pasted text +%d lines]"
)

func mannersPath(dir, session string) string { return filepath.Join(dir, "manners."+session) }

// Behave says how the clients of a session with an input line behave from now on.
func (e *Env) Behave(session string, m Manners) {
	e.Helper()
	text, err := json.Marshal(m)
	path := mannersPath(e.Dir, session)
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		e.Fatalf("change manners: %v", err)
	}
}

// Received is a prompt that a client took down, exactly as it came.
type Received struct {
	Session, Attempt, Text string
	// Plain is what was typed rather than pasted, the submit key left out.
	Plain string `json:",omitempty"`
	At    time.Time
}

func receivedPath(dir, session string) string { return filepath.Join(dir, "received."+session) }

// Received are the prompts that clients of a session were given, by their own account.
func (e *Env) Received(session string) []Received {
	e.Helper()
	data, err := os.ReadFile(receivedPath(e.Dir, session))
	if err != nil {
		return nil
	}
	var out []Received
	for line := range bytes.Lines(data) {
		var r Received
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		if err := json.Unmarshal(line, &r); err != nil {
			e.Errorf("a received prompt does not parse: %v", err)
			continue
		}
		out = append(out, r)
	}
	return out
}

// ReceivedTexts are the texts of Received.
func (e *Env) ReceivedTexts(session string) []string {
	e.Helper()
	var texts []string
	for _, r := range e.Received(session) {
		texts = append(texts, r.Text)
	}
	return texts
}

// composer is the client's side of an input line.
type composer struct {
	dir, session, attempt string
	// class of its hooks; empty for a client without. conversation is its id, transcript
	// where a line is left for each prompt.
	class, conversation, transcript string
	out                             io.Writer

	manners   Manners
	text      []byte
	plain     []byte
	pasting   bool
	swallowed int
	answered  bool
	working   bool
	hangs     bool
	turns     int
	// over gets the number of a turn that it has worked on for long enough.
	over chan int
}

// compose runs until the process is ended.
func (s Script) compose(dir string, args []string) error {
	state, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return fmt.Errorf("make the terminal raw: %w", err)
	}
	defer func() { _ = term.Restore(int(os.Stdin.Fd()), state) }()
	c := &composer{dir: dir, session: os.Getenv(observe.EnvSession), class: s.Class, out: os.Stdout, over: make(chan int, 16)}
	if mark, err := observe.ParseMark(os.Getenv(observe.EnvClient)); err == nil {
		c.attempt = mark.Attempt
	}
	if len(args) > 0 {
		c.conversation = args[0]
		c.transcript = transcriptPath(dir, c.conversation)
	}
	_, _ = io.WriteString(c.out, "\x1b[?2004h")
	c.report("SessionStart", "")
	c.draw()
	input := make(chan []byte)
	go read(input)
	ticks := time.NewTicker(50 * time.Millisecond)
	for {
		select {
		case chunk, open := <-input:
			if !open {
				return nil
			}
			c.take(chunk)
		case n := <-c.over:
			c.finish(n)
		case <-ticks.C:
			c.draw()
		}
	}
}

func read(input chan<- []byte) {
	defer close(input)
	for {
		chunk := make([]byte, 64<<10)
		n, err := os.Stdin.Read(chunk)
		if err != nil {
			return
		}
		input <- chunk[:n]
	}
}

func transcriptPath(dir, conversation string) string {
	return filepath.Join(dir, "transcripts", conversation+".jsonl")
}

// behave reads its manners anew.
func (c *composer) behave() {
	text, err := os.ReadFile(mannersPath(c.dir, c.session))
	if err != nil {
		return
	}
	var m Manners
	if json.Unmarshal(text, &m) == nil && m != c.manners {
		if m.Question != c.manners.Question {
			c.answered = false
		}
		if m.Swallows != c.manners.Swallows {
			c.swallowed = 0
		}
		c.manners = m
	}
}

const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

// take takes keys in. The marks of a paste may be torn between two reads.
func (c *composer) take(chunk []byte) {
	c.behave()
	c.plain = append(c.plain, chunk...)
	for len(c.plain) > 0 && !c.manners.Deaf {
		if c.pasting {
			if !c.takePaste() {
				break
			}
			continue
		}
		if bytes.HasPrefix(c.plain, []byte(pasteBegins)) {
			c.plain, c.pasting = c.plain[len(pasteBegins):], true
			continue
		}
		if bytes.HasPrefix([]byte(pasteBegins), c.plain) {
			break
		}
		key := c.plain[0]
		c.plain = c.plain[1:]
		c.press(key)
	}
	if c.manners.Deaf {
		c.plain = nil
	}
	c.draw()
}

// takePaste takes what was pasted; done is false while its end has not come.
func (c *composer) takePaste() (done bool) {
	end := bytes.Index(c.plain, []byte(pasteEnds))
	if end < 0 {
		return false
	}
	if !c.asks() {
		c.text = append(c.text, c.plain[:end]...)
	}
	c.plain, c.pasting = c.plain[end+len(pasteEnds):], false
	if c.manners.DiesAt == AtPaste {
		die()
	}
	return true
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	waitForEver()
}

func (c *composer) asks() bool { return c.manners.Question != "" && !c.answered }

func (c *composer) press(key byte) {
	switch {
	case c.asks():
		c.answered = key == 'y'
	case key == '\r':
		c.submit()
	case key == 0x03:
		c.text = nil
	case key == 0x7f:
		c.text = c.text[:max(len(c.text)-1, 0)]
	default:
		c.text = append(c.text, key)
	}
}

func (c *composer) submit() {
	switch {
	case len(c.text) == 0:
		return
	case c.swallowed < c.manners.Swallows:
		c.swallowed++
		return
	case c.manners.DiesAt == AtSubmit:
		die()
	}
	text := strings.ReplaceAll(string(c.text), "\r", "\n")
	c.text = nil
	c.turns++
	c.working, c.hangs = true, c.manners.Hangs
	c.write(text)
	c.draw()
	c.report("UserPromptSubmit", text)
	if c.hangs {
		return
	}
	n, works := c.turns, c.manners.Works
	go func() {
		<-time.After(works)
		c.over <- n
	}()
}

func (c *composer) finish(n int) {
	if n != c.turns || c.hangs {
		return
	}
	c.working = false
	c.draw()
	if c.manners.Fails != "" {
		c.report("StopFailure", "")
		return
	}
	c.report("Stop", "")
}

// write takes a prompt down before anything else comes of it.
func (c *composer) write(text string) {
	line, err := json.Marshal(Received{Session: c.session, Attempt: c.attempt, Text: text, At: time.Now()})
	if err == nil {
		err = appendLine(receivedPath(c.dir, c.session), line)
	}
	if err == nil && c.transcript != "" {
		if err = os.MkdirAll(filepath.Dir(c.transcript), 0o700); err == nil {
			err = appendLine(c.transcript, []byte(`{"type":"user"}`))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

// report runs the hook, as a client does, and waits for it.
func (c *composer) report(event, prompt string) {
	c.behave()
	if c.class == "" || c.manners.Silent {
		return
	}
	payload := map[string]string{"hook_event_name": event, "session_id": c.conversation}
	if prompt != "" {
		payload["prompt"] = prompt
	}
	if event == "StopFailure" {
		payload["error"] = c.manners.Fails
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return
	}
	hook := exec.Command("/proc/self/exe", roleHook, c.class)
	hook.Stdin = bytes.NewReader(text)
	_ = hook.Run()
}

// draw shows what the client shows.
func (c *composer) draw() {
	c.behave()
	var b strings.Builder
	b.WriteString("\x1b[H\x1b[2J")
	fmt.Fprintf(&b, "client of %s, turns: %d\r\n", c.session, c.turns)
	if c.working {
		b.WriteString(workingWords + "\r\n")
	}
	if c.asks() {
		fmt.Fprintf(&b, "%s (y/n)\r\n", c.manners.Question)
	} else {
		b.WriteString(composerMark + c.shown())
	}
	_, _ = io.WriteString(c.out, b.String())
}

// shown is what stands in the input line: a word for a long text.
func (c *composer) shown() string {
	text := strings.ReplaceAll(string(c.text), "\r", "\n")
	if lines := strings.Count(text, "\n"); lines > 0 || len(text) > 100 {
		return fmt.Sprintf(pastedWords, lines)
	}
	return text
}

// Class is the document of a client class, not applied yet, whose clients have an input
// line: without reports and conversations, or with both.
func (e *Env) Class(name string, reports bool) string {
	e.Helper()
	script := Script{Composes: true}
	more := ""
	if reports {
		script.Class = name
		more = fmt.Sprintf(`
  resume:
    command: %s
  reports: ClaudeHooks
  conversation:
    identity: Assigned
    transcript: %q
    transcriptPattern: '"type":"user"'`, e.words(script), transcriptPath(e.Dir, "$(CONVERSATION_ID)"))
	}
	start := e.words(script)
	if !reports {
		start = e.words(script, "")
	}
	return fmt.Sprintf(`apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata:
  name: %s
spec:
  start:
    command: %s%s
  ready:
    pattern: '^>( |$)'
    timeoutSeconds: 60
  working:
    pattern: '\(working, interrupt'
  attention:
  - pattern: '\(y/n\)'
    reason: PermissionRequired
  submit:
    settleMilliseconds: 50
    composer:
      pattern: '^> ?(?P<text>.*)$'
      pasted: '\[Pasted text \+\d+'
`, name, start, more)
}

// words is the command of a class, as a YAML list. Its client is told its conversation.
func (e *Env) words(s Script, more ...string) string {
	e.Helper()
	command := e.Command(s)
	if len(more) == 0 {
		command = append(command, "$(CONVERSATION_ID)")
	}
	text, err := json.Marshal(command)
	if err != nil {
		e.Fatalf("encode command: %v", err)
	}
	return string(text)
}
