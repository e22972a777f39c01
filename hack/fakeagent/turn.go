// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"
)

// driver is what one kind of client does around a turn.
type driver interface {
	// submitted: the prompt counts, and is written down.
	submitted(prompt submission)
	// permitted asks whether the command may run, when asks is true.
	permitted(ctx context.Context, command string, asks bool) bool
	// used a tool.
	used(command, output string)
	// failed for good; the attempts before that are shown too.
	failed(ctx context.Context, c control)
	// answered with a text.
	answered(text string)
	// interrupted by a person.
	interrupted()
}

// turns of one client, one after the other.
type turns struct {
	root, config string
	log          journal
	screen       *screen
	driver       driver
	// environment that a tool gets besides the client's own.
	environment []string
	// answer is the model's; refused is true when it would not be asked.
	answer  func() string
	refused bool

	mu     sync.Mutex
	cancel context.CancelFunc
}

// control as it is now.
func (t *turns) control() control {
	c, _ := loadControl(t.root, t.config)
	return c
}

// interrupt the present turn; false when there is none.
func (t *turns) interrupt() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel == nil {
		return false
	}
	t.cancel()
	return true
}

// take one prompt from its submission to its end.
func (t *turns) take(prompt submission) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t.mu.Lock()
	t.cancel = cancel
	t.mu.Unlock()
	t.log.receipt(prompt.text)
	t.driver.submitted(prompt)
	t.work(ctx, takeRequest(t.root, t.config).directive(prompt.text))
	t.mu.Lock()
	t.cancel = nil
	t.mu.Unlock()
	if ctx.Err() != nil {
		t.driver.interrupted()
	}
}

func (t *turns) work(ctx context.Context, c control) {
	c = t.hang(ctx, c)
	if !pause(ctx, span(c.Delay, 50*time.Millisecond)) {
		return
	}
	if t.refused {
		c = control{Mode: "401"}
	}
	switch c.Mode {
	case "", "ok":
	case "exit":
		end(t.screen, t.log, int(c.Message[0]-'0'))
	case "tool", "ask":
		if !t.driver.permitted(ctx, c.Command, c.Mode == "ask" || c.Escalate) || ctx.Err() != nil {
			t.interrupt()
			return
		}
		output, ok := t.run(ctx, c.Command)
		if !ok {
			return
		}
		t.driver.used(c.Command, output)
		t.hang(ctx, takeRequest(t.root, t.config))
	default:
		t.driver.failed(ctx, c)
		return
	}
	text := cmp.Or(c.Answer, t.answer())
	t.log.write(entry{Event: "answer", Text: text})
	t.driver.answered(text)
}

// hang until the control file is another one.
func (t *turns) hang(ctx context.Context, c control) control {
	if c.Mode != "hang" {
		return c
	}
	before := t.control()
	for {
		now := t.control()
		if !reflect.DeepEqual(now, before) && now.Mode != "hang" {
			return takeRequest(t.root, t.config)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return control{}
		}
	}
}

// run a tool as the clients do: by a shell in a session of its own, so that it
// outlives the client.
func (t *turns) run(ctx context.Context, command string) (output string, ok bool) {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Env = append(os.Environ(), t.environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	done := make(chan struct{})
	var out []byte
	go func() {
		defer close(done)
		out, _ = cmd.CombinedOutput()
	}()
	select {
	case <-done:
		return strings.TrimSpace(string(out)), true
	case <-ctx.Done():
		return "", false
	}
}

// pause returns false when the turn was interrupted meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// end the client.
func end(s *screen, log journal, code int, lines ...string) {
	s.close()
	for _, line := range lines {
		_, _ = fmt.Fprintln(os.Stdout, line)
	}
	log.write(entry{Event: "end", Text: fmt.Sprintf("exit %d", code)})
	os.Exit(code)
}

// leaves writes a reason and exits before there is a screen.
func leaves(log journal, code int, text string) {
	_, _ = fmt.Fprintln(os.Stderr, text)
	log.write(entry{Event: "end", Text: fmt.Sprintf("exit %d", code)})
	os.Exit(code)
}

// startup does what the control plans for a start.
func startup(root, config string, log journal, resumes bool) {
	if planned := takeExit(root, config, resumes); planned != nil {
		if planned.Text != "" {
			_, _ = fmt.Fprintln(os.Stdout, planned.Text)
		}
		pause(context.Background(), span(planned.After, 0))
		leaves(log, planned.Code, "")
	}
	c, _ := loadControl(root, config)
	pause(context.Background(), span(c.StartDelay, 50*time.Millisecond))
}

// notice shows what the control has for a first start.
func (t *turns) notice() {
	c, marker := t.control(), t.config+"/.fakeagent-notice-seen"
	if c.Notice == "" {
		return
	}
	if _, err := os.Stat(marker); err == nil {
		return
	}
	t.screen.ask(dialog{options: 1, lines: func(int) []string { return strings.Split(c.Notice, "\n") }})
	_ = os.MkdirAll(t.config, 0o700)
	_ = os.WriteFile(marker, nil, 0o600)
}
