// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// glance is the time between two looks at a screen: each costs a process.
const glance = 100 * time.Millisecond

// enters is how often a person tries to send what stands in the composer.
const enters = 4

// agent is one coding agent as the tests below use it: what it wants to find in its
// folders, what a person types, what it shows. The same table is run with the real
// CLIs (build tag e2eagents) and with the scripted ones of hack/fakeagent.
type agent struct {
	// class is the name of the client class, and of the program.
	class string
	// install puts the programs into a folder of PATH and says what answers them.
	install func(w *agentWorld) model
	// directory is the variable that names the folder of the client's settings.
	directory string
	// prepare answers in that folder what a person answers once; these directories
	// are trusted.
	prepare func(w *agentWorld, trusted ...string)
	// env of each session.
	env func(w *agentWorld) map[string]string
	// args of each session.
	args []string
	// freshly is what a person types to begin another conversation, forks to go on in a
	// copy of the present one.
	freshly, forks string
	// resumes is the word in its argv that says so.
	resumes string
	// frail is true when half a transcript is of no use to it.
	frail bool
	// mark begins a line of the person's.
	mark string
	// strange makes a directory one that the client asks about.
	strange func(w *agentWorld, directory string)
	// trusting are the keys that say yes to that.
	trusting []string
	// asks are the arguments, and what the model does, for a question before a tool.
	asks []string
	// planned is laid over env where a plan that is used up is to be met: with a key
	// alone there is none.
	planned map[string]string
	// failures by the name of a mode: the reasons that muxlet has for them.
	failures map[string]string
	// nested is a shell's command line that runs another one for one prompt, with the
	// hooks that muxlet gave to the first.
	nested func(w *agentWorld) string
	// nestedArgs let the first one run that without a question.
	nestedArgs []string
}

// eachAgent runs a test with every agent that is there.
func eachAgent(t *testing.T, test func(*testing.T, agent)) {
	t.Helper()
	all := agents(t)
	if len(all) == 0 {
		t.Skip("there is no agent to test with")
	}
	for _, a := range all {
		t.Run(a.class, func(t *testing.T) {
			t.Parallel()
			test(t, a)
		})
	}
}

// agentWorld is a world whose sessions are agents.
type agentWorld struct {
	*World
	agent agent
	model model
	// config is the folder of the client's settings, work the directory of sessions.
	config, work string
	// address of the model; empty where the client needs none.
	address string
	// more is laid over the environment of sessions.
	more map[string]string
}

// newAgentWorld has everything answered that the client would ask about work.
func newAgentWorld(t *testing.T, a agent, given ...settings) *agentWorld {
	t.Helper()
	w := &agentWorld{World: newWorld(t, given...), agent: a}
	w.config, w.work = filepath.Join(w.home, "settings-of-"+a.class), filepath.Join(w.home, "work")
	require.NoError(t, os.MkdirAll(w.config, 0o700))
	w.model = a.install(w)
	a.prepare(w, w.work)
	return w
}

// agentDocument is a Session of the agent; lines are added below spec.
func (w *agentWorld) agentDocument(name, directory string, args []string, lines ...string) string {
	text := fmt.Sprintf("apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata:\n  name: %s\nspec:\n  clientClassName: %s\n", name, w.agent.class)
	text += "  client:\n    shellMode: None\n    env:\n"
	env := w.agent.env(w)
	env[w.agent.directory] = w.config
	maps.Copy(env, w.more)
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		text += fmt.Sprintf("    - {name: %s, value: %q}\n", variable, env[variable])
	}
	if all := slices.Concat(w.agent.args, args); len(all) > 0 {
		text += "    args:\n"
		for _, arg := range all {
			text += fmt.Sprintf("    - %q\n", arg)
		}
	}
	text += fmt.Sprintf("  workspace:\n    directory: %q\n", directory)
	for _, line := range lines {
		text += "  " + line + "\n"
	}
	return text
}

// employ declares a session of the agent in the directory work.
func (w *agentWorld) employ(name string, lines ...string) {
	w.Helper()
	w.write(name+".yaml", w.agentDocument(name, w.work, nil, lines...))
}

// ready waits until the agent can take a prompt.
func (w *agentWorld) ready(name string) *spec.Session {
	w.Helper()
	return w.becomes(name, "ready", isReady)
}

func isReady(s *spec.Session) bool { return isRunning(s) && isTrue(s, spec.ConditionReady) }

// back waits until another client than that one is ready.
func (w *agentWorld) back(before *spec.Session) *spec.Session {
	w.Helper()
	return w.becomes(before.Name, "ready again", func(s *spec.Session) bool {
		return isReady(s) && s.Status.Client.Incarnation > before.Status.Client.Incarnation
	})
}

// conversation that the session has now; empty for none.
func conversation(s *spec.Session) string {
	if s == nil || s.Status.Conversation == nil {
		return ""
	}
	return s.Status.Conversation.ID
}

// bound waits until the session has a conversation that is not one of those, and
// returns it.
func (w *agentWorld) bound(name string, but ...string) string {
	w.Helper()
	return conversation(w.becomes(name, "bound to a conversation", func(s *spec.Session) bool {
		id := conversation(s)
		return id != "" && !slices.Contains(but, id)
	}))
}

// pane of the session.
func (w *agentWorld) pane(name string) string {
	w.Helper()
	s := w.get(name)
	require.NotNil(w, s)
	require.NotNil(w, s.Status.Tmux, "session %s has no pane", name)
	return s.Status.Tmux.Pane
}

// screen of the session, without what was scrolled away; empty when it cannot be
// read now.
func (w *agentWorld) screen(pane string) string {
	text, err := w.tmux("capture-pane", "-p", "-t", pane)
	if err != nil {
		return ""
	}
	return text
}

// types a text as a person does: pasted, then Enter a moment later. Nothing is
// pasted into a dead pane: that ends the server of tmux 3.3a. An Enter may be lost
// while a client starts or is busy; a person looks, and enters again.
func (w *agentWorld) types(name, text string) {
	w.Helper()
	pane, file := w.pane(name), filepath.Join(w.dir, "typed-"+name)
	require.NoError(w, os.WriteFile(file, []byte(text), 0o600))
	out, err := w.tmux("load-buffer", "-b", name, file, ";",
		"if-shell", "-F", "-t", pane, "#{pane_dead}", "", "paste-buffer -p -d -b "+name+" -t "+pane)
	require.NoError(w, err, out)
	for pasted := time.Now(); time.Since(pasted) < 5*time.Second && !w.unsent(w.screen(pane), text); <-time.After(glance) {
		// What is not drawn yet looks as if it had been sent.
	}
	<-time.After(300 * time.Millisecond)
	for range enters {
		w.keys(pane, "Enter")
		for entered := time.Now(); time.Since(entered) < 2*time.Second; <-time.After(glance) {
			if !w.unsent(w.screen(pane), text) {
				return
			}
		}
	}
}

func (w *agentWorld) keys(pane string, keys ...string) {
	w.Helper()
	out, err := w.tmux(append([]string{"send-keys", "-t", pane}, keys...)...)
	require.NoError(w, err, out)
}

// unsent says whether the text stands in the composer, which is the last line of the
// person's on the screen.
func (w *agentWorld) unsent(screen, text string) bool {
	lines := strings.Split(screen, "\n")
	for _, line := range slices.Backward(lines) {
		if rest, ok := strings.CutPrefix(line, w.agent.mark); ok {
			return strings.Contains(rest, text)
		}
	}
	return false
}

// turn types a prompt and waits for the answer, which tells how many prompts the
// model was sent and which was the first of them.
func (w *agentWorld) turn(name, prompt string, number int, first string) {
	w.Helper()
	pane := w.pane(name)
	w.types(name, prompt)
	var screen string
	defer func() {
		if w.Failed() {
			w.Logf("The screen of %s:\n%s", name, screen)
		}
	}()
	w.sees(name, fmt.Sprintf("the answer turns=%d first=%s", number, first), func() bool {
		screen = w.screen(pane)
		return strings.Contains(screen, fmt.Sprintf("turns=%d first=%s\n", number, first))
	})
}

// sees polls at the pace of a person.
func (w *agentWorld) sees(name, what string, condition func() bool) {
	w.Helper()
	end := time.Now().Add(patience)
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for !condition() {
		if time.Now().After(end) {
			require.FailNow(w, "This did not happen within "+patience.String()+": in session "+name+" "+what)
		}
		<-ticker.C
	}
}

// kept waits until the answer of that turn is in the transcript, and returns the
// session: what was written by then must never be lost.
func (w *agentWorld) kept(name string, number int) *spec.Session {
	w.Helper()
	answer := fmt.Sprintf("turns=%d first=", number)
	return w.becomes(name, "bound to a transcript with turn "+fmt.Sprint(number), func(s *spec.Session) bool {
		c := s.Status.Conversation
		if c == nil || c.ID == "" || c.Transcript == "" || c.Resumable == nil || !*c.Resumable {
			return false
		}
		data, err := os.ReadFile(c.Transcript)
		return err == nil && strings.Contains(string(data), answer)
	})
}

// stays requires that the client is not replaced for a while.
func (w *agentWorld) stays(s *spec.Session, during time.Duration) {
	w.Helper()
	w.holds("the client of "+s.Name+" is not replaced", during, func() bool {
		now := w.get(s.Name)
		return now != nil && now.Status.Client.Incarnation == s.Status.Client.Incarnation
	})
}

// resumed requires that the client's command line names the conversation, and
// nothing that would let the client guess.
func (w *agentWorld) resumed(s *spec.Session, id string) {
	w.Helper()
	clients := w.clients(s.Name)
	require.Len(w, clients, 1)
	argv := strings.Fields(clients[0].argv)
	assert.Contains(w, argv, id)
	assert.Contains(w, argv, w.agent.resumes)
	for _, never := range []string{"--continue", "--last", "--session-id", "--fork-session"} {
		assert.NotContains(w, argv, never)
	}
}
