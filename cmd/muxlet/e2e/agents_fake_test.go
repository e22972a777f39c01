// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// buildFakeAgent gives the path of the program that stands in for both CLIs.
var buildFakeAgent = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "fakeagent")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "github.com/muxlet/muxlet/hack/fakeagent")
	out, err := build.CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return path, nil
})

// agents are the scripted ones of hack/fakeagent.
func agents(t *testing.T) []agent {
	t.Helper()
	if _, err := os.Stat("../../../hack/fakeagent"); err != nil {
		return nil
	}
	install := func(w *agentWorld) model {
		program, err := buildFakeAgent()
		require.NoError(w, err, program)
		folder := filepath.Join(w.dir, "agents")
		out, err := exec.Command(program, "install", folder).CombinedOutput()
		require.NoError(w, err, string(out))
		linked(w, w.agent.class, filepath.Join(folder, "bin", w.agent.class))
		w.address = "127.0.0.1:9"
		return &scripted{w: w, file: filepath.Join(folder, "fakeagent.json")}
	}
	all := []agent{claudeCode(install), codex(install), gem(install)}
	for i := range all {
		// They meet a plan that is used up whatever they are given.
		all[i].planned = nil
	}
	return all
}

// scripted is what the agents of hack/fakeagent read before each turn.
type scripted struct {
	w    *agentWorld
	file string
}

func (s *scripted) behaves(c control) {
	s.w.Helper()
	data, err := json.Marshal(c)
	require.NoError(s.w, err)
	s.w.write(s.file, string(data))
}
