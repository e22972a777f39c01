// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// buildWitness gives the path of the client that writes down what it receives.
var buildWitness = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "witness")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "github.com/muxlet/muxlet/hack/witness")
	out, err := build.CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return path, nil
})

// testimony is one line of a witness: what it wrote down before it did anything else.
type testimony struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"`
	Pid   int       `json:"pid"`
	// Session it is a client of, and its mark.
	Session string `json:"session"`
	Mark    string `json:"mark"`
	Text    string `json:"text"`
}

// witnesses declares the class of the clients that write down what they receive. They
// tell nothing by themselves: their screen has to do.
func (w *World) witnesses(delay time.Duration) {
	w.Helper()
	program, err := buildWitness()
	require.NoError(w, err, program)
	require.NoError(w, os.Symlink(program, w.dir+"/bin/witness"))
	w.write("witness-class.yaml", fmt.Sprintf(`apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: witness}
spec:
  start: {command: [%q, %q, %q]}
  ready: {pattern: '^>'}
  submit:
    settleMilliseconds: 50
    composer: {pattern: '^>(?: (?P<text>[^\n]*(?:\n[^\n]*)*))?\z'}
`, w.dir+"/bin/witness", w.witnessLog(), delay.String()))
}

func (w *World) witnessLog() string { return filepath.Join(w.dir, "witness.jsonl") }

// witness declares a session of that class.
func (w *World) witness(name string, lines ...string) {
	w.Helper()
	text := fmt.Sprintf("apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata:\n  name: %s\n  labels: {kind: witness}\nspec:\n  clientClassName: witness\n  client: {shellMode: None}\n  workspace: {directory: %q}\n", name, w.home+"/work")
	for _, line := range lines {
		text += "  " + line + "\n"
	}
	w.write(name+".yaml", text)
}

// testimonies are all lines of all witnesses, in their order; with an event, those
// alone.
func (w *World) testimonies(event string) []testimony {
	w.Helper()
	return readTestimonies(w, w.witnessLog(), event)
}

// readTestimonies reads lines of JSON. A last line without its end is being written.
func readTestimonies(w *World, path, event string) (out []testimony) {
	w.Helper()
	data, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(w, err)
	}
	for line := range strings.Lines(string(data)) {
		var t testimony
		if !strings.HasSuffix(line, "\n") {
			break
		}
		require.NoError(w, json.Unmarshal([]byte(line), &t), line)
		if event == "" || t.Event == event {
			out = append(out, t)
		}
	}
	return out
}
