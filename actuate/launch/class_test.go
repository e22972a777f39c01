// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// agent gives the order a class like those of the agents.
func (p *pane) agent() *actuate.ClassOrder {
	class := &actuate.ClassOrder{
		Name:            "agent",
		Variables:       map[string]string{spec.VarConversationID: "c-1", spec.VarHook: "'/m' hook agent", spec.VarSessionName: "shop"},
		ConfigDirectory: spec.ClassDirectory{Env: "AGENT_HOME", Default: "$(HOME)/.agent"},
	}
	p.stored.Order.Class = class
	return class
}

// words runs a client that prints its arguments, one on a line.
func (p *pane) words(command ...string) []string {
	p.t.Helper()
	p.stored.Order.Command = append([]string{"/usr/bin/printf", `%s\n`}, command...)
	require.Equal(p.t, 0, p.run(), p.stderr.String())
	return strings.Split(strings.TrimSuffix(p.stdout.String(), "\n"), "\n")
}

func TestTheCommandOfAClassIsExpandedAndAPersonsArgumentsAreNot(t *testing.T) {
	p := newPane(t)
	p.environ = []string{"PATH=/bin", "HOME=/h", "LANG=C.UTF-8", "FROM_PROFILE=$(HOME)"}
	p.agent()
	p.stored.Order.Args = []string{"$(HOME)", "$$"}
	assert.Equal(t, []string{
		"c-1", "/h /h/.agent", p.work, `hooks.Stop=[{command="'/m' hook agent"}]`, "$(HOME)", "$(HOME)", "$(UNKNOWN)", "$(HOME)", "$$",
	}, p.words("$(CONVERSATION_ID)", "$(HOME) $(CONFIG_DIRECTORY)", "$(WORKSPACE)", `hooks.Stop=[{command="$(MUXLET_HOOK)"}]`,
		"$(FROM_PROFILE)", "$$(HOME)", "$(UNKNOWN)"))
	assert.Equal(t, []string{"/h", "/h/.agent"}, []string{p.receipt().Home, p.receipt().ConfigDirectory})
}

func TestTheClassIsBetweenTheProfileAndTheSession(t *testing.T) {
	p := newPane(t)
	p.environ = []string{
		"PATH=/bin", "HOME=/h", "LANG=de_DE.utf8", "A=profile", "B=profile", "C=profile",
		"CODEX_SANDBOX=1", "CODEX_SANDBOX_NETWORK_DISABLED=1", "CODEX_HOME=/x", "B_GONE=1", "TERM=tmux-256color",
	}
	class := p.agent()
	class.UnsetEnv = []string{"CODEX_SANDBOX*", "B_GONE", "B", "C"}
	class.Env = []spec.EnvVar{
		{Name: "B", Value: "$(A) $(CONFIG_DIRECTORY)"}, {Name: "D", Value: "$(B) $(SESSION_NAME)"},
		{Name: "E", Value: "class"}, {Name: "COLORTERM", Value: "24bit"}, {Name: "A", Value: "$(A) again"},
	}
	p.stored.Order.EnvFrom = []spec.EnvFromSource{fileSource(p.file("env", "E=file\nF=$(HOME)\n"), false)}
	p.stored.Order.Env = []spec.EnvVar{{Name: "AGENT_HOME", Value: "conf"}}
	vars := p.clientEnv()
	delete(vars, observe.EnvClient)
	config := filepath.Join(p.work, "conf")
	assert.Equal(t, map[string]string{
		"PATH": "/bin", "HOME": "/h", "LANG": "de_DE.utf8", "A": "profile again", "CODEX_HOME": "/x", "TERM": "tmux-256color",
		"B": "profile " + config, "D": "profile " + config + " shop", "E": "file", "F": "$(HOME)", "COLORTERM": "24bit",
		"AGENT_HOME": "conf", "PWD": p.work, "MUXLET_SESSION": "shop", "MUXLET_REPORTS": filepath.Join(p.runtime, "reports.sock"),
	}, vars)
	assert.Equal(t, config, p.receipt().ConfigDirectory)
}

func TestTheConfigDirectoryIsTheOneOfTheClientsOwnEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		environ   []string
		class     []spec.EnvVar
		directory spec.ClassDirectory
		want      string
	}{
		"its default":           {nil, nil, spec.ClassDirectory{Env: "AGENT_HOME", Default: "$(HOME)/.agent"}, "/h/.agent"},
		"set by the profile":    {[]string{"AGENT_HOME=/p/../conf/"}, nil, spec.ClassDirectory{Env: "AGENT_HOME", Default: "/d"}, "/conf"},
		"set and empty":         {[]string{"AGENT_HOME="}, nil, spec.ClassDirectory{Env: "AGENT_HOME", Default: "/d"}, "/d"},
		"set by the class":      {nil, []spec.EnvVar{{Name: "AGENT_HOME", Value: "$(HOME)/own"}}, spec.ClassDirectory{Env: "AGENT_HOME"}, "/h/own"},
		"by nothing":            {nil, nil, spec.ClassDirectory{Env: "AGENT_HOME"}, ""},
		"by what is not known":  {nil, nil, spec.ClassDirectory{Default: "$(NOWHERE)/x"}, ""},
		"by another variable":   {[]string{"XDG=/xdg"}, nil, spec.ClassDirectory{Default: "$(XDG)/agent"}, "/xdg/agent"},
		"home with a reference": {[]string{"HOME=/$(X)"}, nil, spec.ClassDirectory{Default: "$(HOME)/.agent"}, "/$(X)/.agent"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPane(t, "/bin/true")
			p.environ = append([]string{"PATH=/bin", "HOME=/h"}, c.environ...)
			class := p.agent()
			class.Env, class.ConfigDirectory = c.class, c.directory
			require.Equal(t, 0, p.run(), p.stderr.String())
			assert.Equal(t, c.want, p.receipt().ConfigDirectory)
		})
	}
}

func TestAnAgentDrawsInUTF8AndTrueColourWhateverTheProfileLacks(t *testing.T) {
	for name, c := range map[string]struct {
		profile []string
		session []spec.EnvVar
		want    string
	}{
		"nothing is set":          {nil, nil, "LC_CTYPE=C.UTF-8 COLORTERM=truecolor"},
		"LANG says so":            {[]string{"LANG=en_US.UTF-8"}, nil, "LANG=en_US.UTF-8 COLORTERM=truecolor"},
		"LANG says otherwise":     {[]string{"LANG=de_DE@euro"}, nil, "LANG=de_DE@euro LC_CTYPE=C.UTF-8 COLORTERM=truecolor"},
		"LC_CTYPE says otherwise": {[]string{"LANG=en_US.UTF-8", "LC_CTYPE=C"}, nil, "LANG=en_US.UTF-8 LC_CTYPE=C.UTF-8 COLORTERM=truecolor"},
		"LC_ALL hides the others": {[]string{"LC_ALL=POSIX", "LC_CTYPE=en_US.UTF-8"}, nil, "LC_ALL=C.UTF-8 LC_CTYPE=en_US.UTF-8 COLORTERM=truecolor"},
		"LC_ALL is empty":         {[]string{"LC_ALL=", "LANG=C.utf8"}, nil, "LC_ALL= LANG=C.utf8 COLORTERM=truecolor"},
		"the session chooses":     {[]string{"COLORTERM=24bit"}, []spec.EnvVar{{Name: "LC_ALL", Value: "C"}, {Name: "COLORTERM", Value: "no"}}, "COLORTERM=no LC_CTYPE=C.UTF-8 LC_ALL=C"},
	} {
		t.Run(name, func(t *testing.T) {
			order := actuate.Order{Class: &actuate.ClassOrder{}, Env: c.session}
			e, _, fault := environment(order, c.profile)
			require.Nil(t, fault)
			assert.Equal(t, strings.Fields(c.want), e.list())
			order.Class, order.Env = nil, nil
			e, _, fault = environment(order, c.profile)
			require.Nil(t, fault)
			assert.Len(t, e.list(), len(c.profile), "a session's own command gets what the profile says")
		})
	}
}

func TestWhatAParentAgentLeftIsGoneAndWhatAPersonSetStays(t *testing.T) {
	persons := []string{
		"PATH=/bin", "ANTHROPIC_API_KEY=k", "CLAUDE_CONFIG_DIR=/c", "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=1",
		"CLAUDE_CODE_EFFORT_LEVEL=high", "CLAUDE_CODE_OAUTH_TOKEN=t", "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS=1", "CODEX_HOME=/x",
	}
	agents := []string{
		"AI_AGENT=a", "CLAUDECODE=1", "CLAUDE_CODE_CHILD_NOTES_DIR=/n", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_CODE_ENTRYPOINT=cli",
		"CLAUDE_CODE_EXECPATH=/e", "CLAUDE_CODE_MESSAGING_SOCKET=/s", "CLAUDE_CODE_MESSAGING_TOKEN=t", "CLAUDE_CODE_SESSION_ATTENDED=1",
		"CLAUDE_CODE_SESSION_ID=i", "CLAUDE_CODE_SSE_PORT=1", "CLAUDE_EFFORT=high", "CLAUDE_PID=1",
	}
	e, _, fault := environment(actuate.Order{}, append(agents, persons...))
	require.Nil(t, fault)
	assert.Equal(t, persons, e.list())
}

func TestWhatIsTooLargeForTheSystemIsRefusedWithItsName(t *testing.T) {
	const hidden = "hunter2"
	for name, c := range map[string]struct {
		change func(p *pane)
		want   string
	}{
		"one argument": {func(p *pane) { p.stored.Order.Args = []string{strings.Repeat("a", maxWord)} }, "argument 1 has 131072 bytes where the system gives 131071"},
		"one variable": {func(p *pane) {
			p.agent().Env = []spec.EnvVar{{Name: "LONG", Value: strings.Repeat("$(SHORT)", 20_000)}}
			p.stored.Order.Class.Variables["SHORT"] = hidden
		}, "the variable LONG has 140005 bytes"},
		"all together": {func(p *pane) {
			p.stored.Order.Args = make([]string, 100)
			for i := range p.stored.Order.Args {
				p.stored.Order.Args[i] = strings.Repeat(hidden, 10_000)
			}
		}, "its arguments and environment take 7"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPane(t, "/bin/echo")
			c.change(p)
			r := p.refused(spec.ReasonExecFailed)
			assert.Contains(t, r.Message, c.want)
			assert.NotContains(t, r.Message, hidden)
		})
	}
}

// A profile is run anew at each start, and whoever wrote it means it.
func TestWhatAProfileSetsIsTheClientsButForWhatAParentAgentLeftInIt(t *testing.T) {
	for shell, file := range map[string]string{"bash": ".bash_profile", "zsh": ".zprofile"} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("%s is not installed; CI installs it", shell)
			}
			p := newPane(t)
			p.file(file, "export AGENT_HOME=$HOME/mine CLAUDE_CODE_USE_BEDROCK=1 CLAUDE_CODE_CHILD_SESSION=1 CLAUDECODE=1 CODEX_SANDBOX=seatbelt LC_ALL=C\n")
			p.environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.state, "CLAUDE_CODE_ENTRYPOINT=cli", "TERM=tmux-256color"}
			p.before = []string{path, "-lc", `exec "$@"`, "muxlet"}
			p.agent().UnsetEnv = []string{"CODEX_SANDBOX*"}
			vars := p.clientEnv()
			assert.Equal(t, p.state+"/mine", vars["AGENT_HOME"])
			assert.Equal(t, p.state+"/mine", p.receipt().ConfigDirectory)
			assert.Equal(t, []string{"1", "C.UTF-8", "tmux-256color"}, []string{vars["CLAUDE_CODE_USE_BEDROCK"], vars["LC_ALL"], vars["TERM"]})
			for _, gone := range []string{"CLAUDE_CODE_CHILD_SESSION", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_SANDBOX"} {
				assert.NotContains(t, vars, gone)
			}
		})
	}
}
