// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

const samplesFolder = "../../../config/samples"

// sampleWorld is a world in which a sample is used as it stands. The agents are those of
// hack/fakeagent; for any other program there is a script that writes down how it was
// started.
type sampleWorld struct {
	*agentWorld
	// sample is its path below the folder of the samples.
	sample string
	docs   spec.Documents
}

// standIns are the programs that samples name, and what each does once it is started.
var standIns = map[string]string{
	"npm": "", "psql": "", "ssh": "", "journalctl": "",
	"make":   `echo "built $1"; exit 0`,
	"gemini": `echo "Type your message"; exec cat`,
}

func newSampleWorld(t *testing.T, sample string) *sampleWorld {
	t.Helper()
	w := &sampleWorld{agentWorld: &agentWorld{World: newWorld(t)}, sample: sample}
	w.work = filepath.Join(w.home, "src/shop")
	require.NoError(t, os.MkdirAll(w.work, 0o755))
	program, err := buildFakeAgent()
	require.NoError(t, err, program)
	folder := filepath.Join(w.dir, "agents")
	out, err := exec.Command(program, "install", folder).CombinedOutput()
	require.NoError(t, err, string(out))
	w.address = "127.0.0.1:9"
	for _, a := range []agent{claudeCode(nil), codex(nil)} {
		linked(w.agentWorld, a.class, filepath.Join(folder, "bin", a.class))
		w.config = filepath.Join(w.home, "."+a.class)
		require.NoError(t, os.MkdirAll(w.config, 0o700))
		a.prepare(w.agentWorld, w.work, w.home)
	}
	for name, does := range standIns {
		path := filepath.Join(w.dir, "bin", name)
		w.write(path, "#!/bin/sh\n"+
			`printf '%s\t%s\t%s\t%s\n' "$MUXLET_SESSION" "$MUXLET_CLIENT" "$PWD" "`+name+` $*" >>'`+w.starts()+"'\n"+does+"\nexec sleep 1000000\n")
		require.NoError(t, os.Chmod(path, 0o755))
	}
	// What a person's profile does for each program that they start.
	w.profile("export PATH='" + w.dir + "/bin':\"$PATH\" ANTHROPIC_API_KEY=" + agentKey + " MOCK_KEY=" + agentKey + "\n")
	return w
}

// use copies the sample to where sessions are declared, and starts the daemon.
func (w *sampleWorld) use() {
	w.Helper()
	text := w.read(w.path())
	w.docs = spec.DecodeFile(w.sample, []byte(text))
	w.write(filepath.Base(w.sample), text)
	w.start()
}

func (w *sampleWorld) path() string {
	path, err := filepath.Abs(filepath.Join(samplesFolder, w.sample))
	require.NoError(w, err)
	return path
}

// up waits until each session of the sample is as it should be: running, or resting where
// it asks for no client yet.
func (w *sampleWorld) up() {
	w.Helper()
	for _, doc := range w.docs.Items {
		if doc.Session == nil {
			continue
		}
		switch s := doc.Session.Spec; {
		case s.Suspend:
			w.reaches(doc.Name, spec.StatusSuspended)
		case s.ProvisioningPolicy == spec.ProvisioningOnDemand:
			w.reaches(doc.Name, spec.StatusDormant)
			assert.Empty(w, w.clients(doc.Name))
		default: // an agent may ask something first
			w.becomes(doc.Name, "alive", func(s *spec.Session) bool {
				return spec.DisplayStatus(s) == spec.StatusRunning && s.Status.Client.Pid != 0
			})
		}
	}
}

// started requires that the session's stand-in was started once, in that directory.
func (w *sampleWorld) started(name, directory, words string) {
	w.Helper()
	s := w.nth(name, 1)
	assert.Equal(w, words, s.words)
	assert.Equal(w, directory, s.directory)
}

// trusts answers the question of Codex about the hooks of muxlet, once it is asked.
func (w *sampleWorld) trusts(name string) {
	w.Helper()
	w.asked(name, spec.ReasonHookTrustRequired)
	w.keys(w.pane(name), "Down")
	w.keys(w.pane(name), "Enter")
	w.ready(name)
}

// killed ends the client of a session without a word, and waits for the next one.
func (w *sampleWorld) killed(name string) *spec.Session {
	w.Helper()
	before := w.get(name)
	require.NotNil(w, before)
	require.NoError(w, kill(pid(before)))
	return w.becomes(name, "running again", func(s *spec.Session) bool {
		return isRunning(s) && s.Status.Client.Incarnation > before.Status.Client.Incarnation
	})
}

// TestEverySampleDoesWhatItSays brings each one up as it stands.
func TestEverySampleDoesWhatItSays(t *testing.T) {
	t.Parallel()
	found := 0
	require.NoError(t, filepath.WalkDir(samplesFolder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		sample, err := filepath.Rel(samplesFolder, path)
		require.NoError(t, err)
		if filepath.Dir(sample) == "notifications" {
			return nil // the tests of notifications have them
		}
		test, known := sampleTests[sample]
		if !assert.True(t, known, "config/samples/%s has no test here", sample) {
			return nil
		}
		found++
		t.Run(sample, func(t *testing.T) {
			t.Parallel()
			test(newSampleWorld(t, sample))
		})
		return nil
	}))
	assert.Equal(t, len(sampleTests), found, "each test has its sample")
}

// shows waits until a session's terminal shows a text.
func (w *sampleWorld) shows(name, text string) {
	w.Helper()
	w.eventually([]string{"logs", name}, text)
}
