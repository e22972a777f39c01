// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && e2eagents

package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The real ones take their time, and 250 MB each.
func init() { patience, parallelTests = 90*time.Second, "3" }

// agents are the real CLIs that hack/agents.sh has printed.
func agents(t *testing.T) []agent {
	t.Helper()
	programs := map[string]string{}
	for line := range strings.Lines(os.Getenv("MUXLET_AGENTS")) {
		if fields := strings.Fields(line); len(fields) == 3 {
			programs[fields[0]] = fields[2]
		}
	}
	install := func(w *agentWorld) model {
		linked(w, w.agent.class, programs[w.agent.class])
		return startMockModel(w)
	}
	var all []agent
	for _, a := range []agent{claudeCode(install), codex(install)} {
		if _, err := exec.LookPath(programs[a.class]); err != nil {
			t.Fatalf("MUXLET_AGENTS names no program for %s: run make e2e-agents", a.class)
		}
		all = append(all, a)
	}
	return all
}

// mockModel is the server in hack/mockmodel.
type mockModel struct {
	w   *agentWorld
	url string
}

// buildMockModel gives the path of the server's program.
var buildMockModel = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("MUXLET_MOCKMODEL"); path != "" {
		return path, nil
	}
	path := filepath.Join(built, "mockmodel")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "github.com/muxlet/muxlet/hack/mockmodel")
	if out, err := build.CombinedOutput(); err != nil {
		return string(out), err
	}
	return path, nil
})

// startMockModel starts a server that ends with the world.
func startMockModel(w *agentWorld) model {
	w.Helper()
	program, err := buildMockModel()
	require.NoError(w, err, program)
	file := filepath.Join(w.dir, "model")
	cmd := exec.Command(program, "--addr", "127.0.0.1:0", "--addr-file", file)
	require.NoError(w, cmd.Start())
	w.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	w.waitFor("the model listens", func() bool {
		data, err := os.ReadFile(file)
		w.address = strings.TrimSpace(string(data))
		return err == nil
	})
	return &mockModel{w: w, url: "http://" + w.address}
}

func (m *mockModel) behaves(c control) {
	m.w.Helper()
	data, err := json.Marshal(c)
	require.NoError(m.w, err)
	request, err := http.NewRequestWithContext(m.w.Context(), http.MethodPut, m.url+"/control", bytes.NewReader(data))
	require.NoError(m.w, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(m.w, err)
	defer response.Body.Close()
	require.Equal(m.w, http.StatusOK, response.StatusCode)
}
