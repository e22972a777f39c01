// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// clientEnv runs a client that prints its environment.
func (p *pane) clientEnv() map[string]string {
	p.t.Helper()
	p.stored.Order.Command = []string{"/usr/bin/env", "-0"}
	require.Equal(p.t, 0, p.run(), p.stderr.String())
	vars := map[string]string{}
	for _, pair := range strings.Split(strings.TrimSuffix(p.stdout.String(), "\x00"), "\x00") {
		name, value, _ := strings.Cut(pair, "=")
		vars[name] = value
	}
	return vars
}

func (p *pane) file(name, content string) string {
	p.t.Helper()
	path := filepath.Join(p.state, name)
	require.NoError(p.t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func secret(name, path string, optional bool) spec.EnvVar {
	return spec.EnvVar{Name: name, ValueFrom: &spec.EnvVarSource{FileRef: &spec.FileRef{Path: path, Optional: optional}}}
}

func fileSource(path string, optional bool) spec.EnvFromSource {
	return spec.EnvFromSource{FileRef: &spec.FileRef{Path: path, Optional: optional}}
}

// H2: what the spec says wins over the profile.
func TestTheEnvironmentIsTheProfilesThenTheFilesThenTheSpecsThenMuxlets(t *testing.T) {
	p := newPane(t)
	p.environ = []string{
		"PATH=/bin", "HOME=/profile", "A=profile", "B=profile", "C=profile", "KEPT=a=b",
		"PWD=/elsewhere", "NOTIFY_SOCKET=/run/n", "WATCHDOG_PID=1", "WATCHDOG_USEC=1",
		"INVOCATION_ID=1", "JOURNAL_STREAM=1", "LISTEN_FDS=1", "LISTEN_FDNAMES=x",
		"MANAGERPID=1", "SYSTEMD_EXEC_PID=1", "RUNTIME_DIRECTORY=/run/x", "CREDENTIALS_DIRECTORY=/run/c",
		"MUXLET_CLIENT=forged", "MUXLET_STATE_DIR=/x", "CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1",
	}
	p.stored.Order.EnvFrom = []spec.EnvFromSource{
		fileSource(p.file("one", "# a comment\n\nB=one\nC=one\r\n  D=one \n"), false),
		fileSource(p.file("two", "\ufeffD=two=2"), false),
		fileSource(filepath.Join(p.state, "absent"), true),
	}
	p.stored.Order.Env = []spec.EnvVar{
		{Name: "C", Value: "spec $HOME"}, {Name: "PATH", Value: "/usr/bin:/bin"},
		secret("KEY", p.file("key", "se cret\n\n"), false),
		secret("KEPT", filepath.Join(p.state, "absent"), true),
	}
	vars := p.clientEnv()
	mark := vars[observe.EnvClient]
	delete(vars, observe.EnvClient)
	assert.Equal(t, map[string]string{
		"PATH": "/usr/bin:/bin", "HOME": "/profile", "A": "profile", "B": "one", "C": "spec $HOME",
		"D": "two=2", "KEPT": "a=b", "KEY": "se cret\n", "PWD": p.work, "MUXLET_SESSION": "shop",
	}, vars)
	parsed, err := observe.ParseMark(mark)
	require.NoError(t, err)
	assert.Equal(t, testAttempt, parsed.Attempt)
}

func TestAClientWithoutAShellGetsTheOrdersBaseAndThePanesOwnVariables(t *testing.T) {
	p := newPane(t)
	p.environ = []string{"TERM=tmux-256color", "TMUX=/s,1,0", "TMUX_PANE=%3", "COLORTERM=truecolor", "SECRET=leak", "PATH=/leak"}
	p.stored.Order.ShellMode = spec.ShellNone
	p.stored.Order.Base = []string{"PATH=/bin:/usr/bin", "HOME=/h", "LANG=C.UTF-8", "TERM=dumb"}
	vars := p.clientEnv()
	delete(vars, observe.EnvClient)
	assert.Equal(t, map[string]string{
		"PATH": "/bin:/usr/bin", "HOME": "/h", "LANG": "C.UTF-8", "TERM": "tmux-256color", "TMUX": "/s,1,0",
		"TMUX_PANE": "%3", "COLORTERM": "truecolor", "PWD": p.work, "MUXLET_SESSION": "shop",
	}, vars)
}

func TestEnvFilesAreFoundByTheClientsOwnHome(t *testing.T) {
	p := newPane(t)
	p.environ = []string{"PATH=/bin", "HOME=" + p.state, "KEYS=" + p.state}
	p.file("agents.env", "A=1\n")
	p.file("key", "2")
	p.stored.Order.EnvFrom = []spec.EnvFromSource{fileSource("~/agents.env", false)}
	p.stored.Order.Env = []spec.EnvVar{secret("B", "$KEYS/key", false)}
	vars := p.clientEnv()
	assert.Equal(t, "1", vars["A"])
	assert.Equal(t, "2", vars["B"])
}

func TestAMissingEnvFileIsAReceiptThatNamesIt(t *testing.T) {
	p := newPane(t, "/bin/echo", "ran")
	absent := filepath.Join(p.state, "absent")
	p.stored.Order.Env = []spec.EnvVar{secret("KEY", absent, false)}
	r := p.refused(spec.ReasonEnvFileMissing)
	assert.Equal(t, absent, r.File)
	assert.Contains(t, r.Message, absent)

	p = newPane(t, "/bin/echo", "ran")
	p.environ = []string{"PATH=/bin", "HOME=" + p.state}
	p.stored.Order.EnvFrom = []spec.EnvFromSource{fileSource("~/absent", false)}
	r = p.refused(spec.ReasonEnvFileMissing)
	assert.Equal(t, filepath.Join(p.state, "absent"), r.File, "where it can be looked for again")
}

func TestAnEnvFileThatCannotBeUsedIsNamedWithoutItsContent(t *testing.T) {
	const hidden = "hunter2"
	for name, content := range map[string]string{
		"no equals sign":     "A=1\n" + hidden + "\n",
		"not a name":         hidden + "-x=1\n",
		"a bare export":      "export " + hidden,
		"a NUL byte":         "A=" + hidden + "\x00",
		"a value too long":   "A=" + strings.Repeat(hidden, maxVariable/len(hidden)+1),
		"more than is read":  strings.Repeat("A="+hidden+"\n", maxEnvFile/10+1),
		"a name without end": "=" + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPane(t, "/bin/echo", "ran")
			path := p.file("bad", content)
			p.stored.Order.EnvFrom = []spec.EnvFromSource{fileSource(path, true)}
			r := p.refused(spec.ReasonEnvFileInvalid)
			assert.Equal(t, path, r.File)
			assert.Contains(t, r.Message, path)
			assert.NotContains(t, r.Message, hidden)
		})
	}
}

func TestASecretThatCannotBeUsedIsNamedWithoutItsContent(t *testing.T) {
	const hidden = "hunter2"
	for name, path := range map[string]func(p *pane) string{
		"a NUL byte":  func(p *pane) string { return p.file("key", hidden+"\x00") },
		"too long":    func(p *pane) string { return p.file("key", strings.Repeat(hidden, maxVariable/len(hidden)+1)) },
		"a directory": func(p *pane) string { return p.work },
		"a pipe that nobody writes": func(p *pane) string {
			path := filepath.Join(p.state, "pipe")
			require.NoError(p.t, syscall.Mkfifo(path, 0o600))
			return path
		},
		"an unset variable": func(*pane) string { return "$NO_SUCH_VARIABLE/key" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPane(t, "/bin/echo", "ran")
			file := path(p)
			p.stored.Order.Env = []spec.EnvVar{secret("KEY", file, true)}
			r := p.refused(spec.ReasonEnvFileInvalid)
			assert.Equal(t, file, r.File)
			assert.NotContains(t, r.Message, hidden)
		})
	}
}

func TestASecretIsInNoArgumentAndInNoReceipt(t *testing.T) {
	const hidden = "hunter2"
	p := newPane(t, "/bin/sleep", "1000")
	p.stored.Order.Env = []spec.EnvVar{secret("KEY", p.file("key", hidden), false)}
	client := p.start()
	p.eventually("the client runs", func() bool { return strings.Contains(p.cmdline(client.Process.Pid), "sleep") })
	assert.Equal(t, "/bin/sleep\x001000\x00", p.cmdline(client.Process.Pid))
	receipt, err := os.ReadFile(ReceiptPath(p.state, testAttempt))
	require.NoError(t, err)
	assert.NotContains(t, string(receipt), hidden)
	assert.NotContains(t, string(receipt), "KEY")
}
