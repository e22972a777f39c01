// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

// holdEnv makes this test program lock the file that it names, say so, and wait until
// its input ends.
const holdEnv = "MUXLET_TEST_HOLD"

func TestMain(m *testing.M) {
	if name := os.Getenv(holdEnv); name != "" {
		hold(name)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// spawn runs a program until the test ends, once it has said a line.
func spawn(t *testing.T, env string, argv ...string) observe.Process {
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	p, live := process.Identify(cmd.Process.Pid)
	require.Equal(t, observe.Running, live)
	return p
}

func self(t *testing.T) observe.Process {
	p, live := process.Identify(os.Getpid())
	require.Equal(t, observe.Running, live)
	return p
}

// parent is the process that started this test program.
func parent(t *testing.T) observe.Process {
	p, live := process.Identify(os.Getppid())
	require.Equal(t, observe.Running, live)
	return p
}

// register writes what Claude Code 2.1.332 writes of itself.
func register(t *testing.T, ref observe.ConversationRef, p observe.Process, change ...string) {
	content, err := os.ReadFile("testdata/claude-session.json")
	require.NoError(t, err)
	text := strings.NewReplacer(append(change,
		`"pid":23363`, fmt.Sprintf(`"pid":%d`, p.PID), `"procStart":"2362066"`, fmt.Sprintf(`"procStart":"%d"`, p.Ticks),
	)...).Replace(string(content))
	write(t, filepath.Join(registryOf(ref), fmt.Sprintf("%d.json", p.PID)), text)
}

func TestTheRegistryTellsWhoHasTheConversation(t *testing.T) {
	ref := claudeRef(t)
	me := self(t)
	holder := func() int { return new(Eyes).Evidence(ref).Holder }
	assert.Zero(t, holder(), "there is no registry")

	register(t, ref, observe.Process{PID: me.PID, Ticks: me.Ticks + 1})
	assert.Zero(t, holder(), "its pid is used again")
	register(t, ref, me, `"sessionId":"`+conversationID, `"sessionId":"another`)
	assert.Zero(t, holder(), "it has another conversation")
	register(t, ref, me, `"procStart":"2362066",`, "")
	assert.Zero(t, holder(), "nothing says which run of that pid it was")
	write(t, filepath.Join(registryOf(ref), "12.0af.key"), "")
	write(t, filepath.Join(registryOf(ref), "13.json"), `{"pid":13,"sess`)
	write(t, filepath.Join(registryOf(ref), "14.json"), "")
	register(t, ref, me)
	assert.Equal(t, me.PID, holder())
	assert.Equal(t, observe.EvidenceAbsent, new(Eyes).Evidence(ref).State, "it has had no turn yet")
}

func TestTheRegistryTellsWhatItsClientDoes(t *testing.T) {
	for name, c := range map[string]struct {
		change []string
		want   observe.Files
	}{
		"idle":    {nil, observe.Files{Activity: spec.ActivityIdle}},
		"busy":    {[]string{`"status":"idle"`, `"status":"busy"`}, observe.Files{Activity: spec.ActivityWorking}},
		"waiting": {[]string{`"status":"idle"`, `"status":"waiting","waitingFor":"permission prompt"`}, observe.Files{Activity: spec.ActivityAwaitingInput, Waiting: "permission prompt"}},
		"waiting for long": {[]string{`"status":"idle"`, `"status":"waiting","waitingFor":"` + strings.Repeat(`ä\n`, 100) + `"`}, observe.Files{
			Activity: spec.ActivityAwaitingInput, Waiting: strings.Repeat("ä", 80),
		}},
		"about to start": {[]string{`,"status":"idle"`, ""}, observe.Files{Activity: spec.ActivityUnknown}},
		"a new word":     {[]string{`"status":"idle"`, `"status":"dreaming"`}, observe.Files{Activity: spec.ActivityUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			ref := claudeRef(t)
			register(t, ref, self(t), c.change...)
			c.want.Conversation, c.want.ActivityAt = conversationID, time.UnixMilli(1795988236883)
			assert.Equal(t, c.want, new(Eyes).Files(ref, self(t)))
		})
	}
}

// An agent that is started by hand inside a session's pane is no client of it.
func TestOnlyTheClientsOwnRegistrationCounts(t *testing.T) {
	nothing := observe.Files{Activity: spec.ActivityUnknown}
	conversation := func(ref observe.ConversationRef, client observe.Process) string {
		return new(Eyes).Files(ref, client).Conversation
	}
	t.Run("a wrapper's child", func(t *testing.T) {
		ref := claudeRef(t)
		register(t, ref, self(t))
		assert.Equal(t, conversationID, conversation(ref, parent(t)))
	})
	t.Run("a child that runs for no person", func(t *testing.T) {
		ref := claudeRef(t)
		register(t, ref, self(t), `"kind":"interactive"`, `"kind":"background"`)
		assert.Empty(t, conversation(ref, parent(t)))
	})
	t.Run("a grandchild", func(t *testing.T) {
		ref := claudeRef(t)
		register(t, ref, spawn(t, "", "sh", "-c", "echo ready; read x"))
		assert.Empty(t, conversation(ref, parent(t)))
		assert.Equal(t, conversationID, conversation(ref, self(t)), "of whom it is the child")
	})
	t.Run("two children", func(t *testing.T) {
		ref := claudeRef(t)
		register(t, ref, spawn(t, "", "sh", "-c", "echo ready; read x"))
		register(t, ref, spawn(t, "", "sh", "-c", "echo ready; read x"))
		assert.Empty(t, conversation(ref, self(t)))
	})
	t.Run("the client's own before a child's", func(t *testing.T) {
		ref := claudeRef(t)
		register(t, ref, spawn(t, "", "sh", "-c", "echo ready; read x"), conversationID, "nested")
		register(t, ref, self(t))
		assert.Equal(t, conversationID, conversation(ref, self(t)))
	})
	t.Run("of an earlier process with its pid", func(t *testing.T) {
		ref := claudeRef(t)
		register(t, ref, observe.Process{PID: os.Getpid(), Ticks: 1})
		assert.Equal(t, nothing, new(Eyes).Files(ref, self(t)))
	})
	t.Run("of a client that is gone", func(t *testing.T) {
		ref := claudeRef(t)
		gone := observe.Process{PID: os.Getpid(), Ticks: 1}
		register(t, ref, gone)
		assert.Equal(t, nothing, new(Eyes).Files(ref, gone))
	})
	t.Run("nothing to go by", func(t *testing.T) {
		ref := claudeRef(t)
		register(t, ref, self(t))
		assert.Equal(t, nothing, new(Eyes).Files(ref, observe.Process{}))
		ref.ConfigDirectory = ""
		assert.Equal(t, nothing, new(Eyes).Files(ref, self(t)))
		assert.Equal(t, nothing, new(Eyes).Files(observe.ConversationRef{Class: &spec.ClientClassSpec{}, ConfigDirectory: "/x"}, self(t)))
	})
}
