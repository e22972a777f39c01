// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/muxlet/muxlet/spec"
)

// receiverVariable makes the test binary a client that writes down the prompts that it
// gets into the file that it names.
const receiverVariable = "E2E_RECEIVER"

const (
	// receiverWorks is how long it works on a prompt; on one that begins with holdWord until
	// there is a file <received>.release.
	receiverWorks = 400 * time.Millisecond
	holdWord      = "hold"
	// shownInput is how long a text its input line shows as it is.
	shownInput = 60
)

// receiver is a client with an input line. It shows whether it works, and remembers
// nothing.
type receiver struct {
	received string
	input    string
	working  bool
	keys     chan string
}

// receive ends with its terminal.
func receive(received string) error {
	if delay, err := time.ParseDuration(os.Getenv(receiverVariable + "_DELAY")); err == nil {
		<-time.After(delay)
	}
	if _, err := term.MakeRaw(int(os.Stdin.Fd())); err != nil {
		return err
	}
	r := &receiver{received: received, keys: make(chan string)}
	failed := make(chan error, 1)
	go func() { failed <- r.read() }()
	_, _ = os.Stdout.WriteString("\x1b[?2004h")
	idle := make(<-chan time.Time)
	for rest := ""; ; {
		r.show()
		select {
		case err := <-failed:
			return err
		case <-idle:
			if _, err := os.Stat(received + ".release"); strings.HasPrefix(r.input, holdWord) && err != nil {
				idle = time.After(tick)
				continue
			}
			r.working, r.input = false, ""
		case keys := <-r.keys:
			var submitted bool
			if rest, submitted = r.take(rest + keys); submitted {
				if err := r.write(); err != nil {
					return err
				}
				r.working, idle = true, time.After(receiverWorks)
			}
		}
	}
}

func (r *receiver) read() error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := os.Stdin.Read(buffer)
		if err != nil {
			return err
		}
		r.keys <- string(buffer[:n])
	}
}

// take gives what is not complete yet, and whether the input was submitted.
func (r *receiver) take(keys string) (rest string, submitted bool) {
	for keys != "" {
		if after, ok := strings.CutPrefix(keys, "\x1b[200~"); ok {
			text, next, whole := strings.Cut(after, "\x1b[201~")
			if !whole {
				return keys, submitted
			}
			r.input += strings.ReplaceAll(text, "\r", "\n")
			keys = next
			continue
		}
		if strings.HasPrefix("\x1b[200~", keys) {
			return keys, submitted
		}
		if keys[0] == '\r' {
			submitted = r.input != "" && !r.working
		} else if !r.working {
			r.input += keys[:1]
		}
		keys = keys[1:]
	}
	return "", submitted
}

func (r *receiver) write() error {
	data, err := json.Marshal([]string{os.Getenv("MUXLET_SESSION"), r.input})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.received, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// show paints the screen; the cursor is at the end of the input line.
func (r *receiver) show() {
	state, input := "resting", r.input
	if r.working {
		state, input = "working", ""
	}
	if len(input) > shownInput || strings.Contains(input, "\n") {
		input = fmt.Sprintf("[Pasted %d bytes]", len(input))
	}
	_, _ = fmt.Fprintf(os.Stdout, "\x1b[H\x1b[J%s\r\n\r\n> %s", state, input)
}

// receivers declares the class of the clients that write down what they get.
func (w *World) receivers() {
	w.Helper()
	program, err := os.Executable()
	require.NoError(w, err)
	w.write("receiver-class.yaml", fmt.Sprintf(`apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: receiver}
spec:
  start: {command: [%q]}
  env: [{name: %s, value: %q}]
  ready: {pattern: '^>'}
  working: {pattern: '^working'}
  submit:
    settleMilliseconds: 50
    composer: {pattern: '^>(?: (?P<text>.*))?$', pasted: '\[Pasted \d+ bytes\]'}
`, program, receiverVariable, w.receivedFile()))
}

// receiver declares a session of that class, labelled kind=receiver.
func (w *World) receiver(name string, lines ...string) {
	w.Helper()
	text := fmt.Sprintf("apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata:\n  name: %s\n  labels: {kind: receiver}\nspec:\n"+
		"  clientClassName: receiver\n  workspace: {directory: %q}\n", name, w.home+"/work")
	client := "  client: {shellMode: None}\n"
	for _, line := range lines {
		if strings.HasPrefix(line, "client:") {
			client = ""
		}
		text += "  " + line + "\n"
	}
	w.write(name+".yaml", text+client)
}

// slowly is the client of a receiver that shows its input line that much later.
func slowly(delay time.Duration) string {
	return fmt.Sprintf("client: {shellMode: None, env: [{name: %s_DELAY, value: %q}]}", receiverVariable, delay)
}

func (w *World) receivedFile() string { return filepath.Join(w.dir, "received") }

// release lets the receivers end what they were told to hold.
func (w *World) release() {
	w.Helper()
	w.write(w.receivedFile()+".release", "")
}

// received are the prompts that a session's clients got, in their order.
func (w *World) received(session string) (prompts []string) {
	w.Helper()
	data, err := os.ReadFile(w.receivedFile())
	if !os.IsNotExist(err) {
		require.NoError(w, err)
	}
	for line := range strings.Lines(string(data)) {
		var entry [2]string
		if !strings.HasSuffix(line, "\n") {
			break
		}
		require.NoError(w, json.Unmarshal([]byte(line), &entry))
		if entry[0] == session {
			prompts = append(prompts, entry[1])
		}
	}
	return prompts
}

// turnIs waits until a turn has a status.
func (w *World) turnIs(name string, phase spec.TurnPhase) *spec.Turn {
	w.Helper()
	var last *spec.Turn
	defer func() {
		if w.Failed() && last != nil {
			w.Logf("Turn %s is %s: %+v", name, spec.DisplayTurnStatus(last), last.Status)
		}
	}()
	w.waitFor("turn "+name+" is "+string(phase), func() bool {
		t, err := w.api.Turn(w.Context(), name)
		if err != nil {
			return false
		}
		last = t
		return spec.DisplayTurnStatus(t) == phase
	})
	return last
}
