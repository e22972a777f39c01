// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
)

// patience is how long a test waits for something that happens at once on an idle
// machine.
const patience = 60 * time.Second

// helperVariable makes the test binary a client: one with a mark, or without.
const helperVariable = "PROBE_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperVariable); role != "" {
		os.Exit(becomeClient(role))
	}
	os.Exit(m.Run())
}

// becomeClient executes a program that reads its terminal for ever, as a launcher does.
func becomeClient(role string) int {
	env := []string{"PATH=" + os.Getenv("PATH"), "COLOUR=green", "PWD=/nowhere", observe.EnvReports + "=/r", observe.EnvSession + "=shop"}
	if role == "marked" {
		ticks, err := process.Ticks(os.Getpid())
		if err != nil {
			return 1
		}
		env = append(env, fmt.Sprintf("%s=i/u/1/a/%d/%d", observe.EnvClient, os.Getpid(), ticks))
	}
	err := syscall.Exec("/bin/sh", []string{"sh", "-c", "echo ready; read x"}, env)
	_, _ = fmt.Fprintln(os.Stderr, err)
	return 1
}

// client is a process that runs until the end of the test.
func client(t *testing.T, role string) observe.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+role)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	word := make([]byte, 6)
	_, err = io.ReadFull(out, word)
	require.NoError(t, err)
	p, live := process.Identify(cmd.Process.Pid)
	require.Equal(t, observe.Running, live)
	return p
}

func ask(t *testing.T, p observe.Process, command ...string) observe.ProbeResult {
	t.Helper()
	return Runner{}.Probe(context.Background(), observe.Probe{Client: p, Command: command, Directory: t.TempDir(), Timeout: patience})
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func TestTheStatusOfAProbeIsItsAnswer(t *testing.T) {
	p := client(t, "marked")
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	plain, script := write("plain", "#!/bin/sh\n", 0o600), write("script", "#!/no/such/shell\n", 0o700)
	for name, c := range map[string]struct {
		command []string
		want    observe.ProbeOutcome
		message string
	}{
		"success":                      {sh("exit 0"), observe.ProbeSucceeded, ""},
		"success in words":             {sh("echo fine; echo warning >&2"), observe.ProbeSucceeded, ""},
		"failure":                      {sh("exit 1"), observe.ProbeFailed, "sh ended with status 1"},
		"failure in words":             {sh("echo out; echo >&2; echo '  it is wedged' >&2; echo more >&2; exit 7"), observe.ProbeFailed, "sh ended with status 7: it is wedged"},
		"of a shell about its program": {sh("exit 137"), observe.ProbeFailed, "sh ended with status 137"},
		"no such program":              {[]string{"no-such-program"}, observe.ProbeUnknown, "no-such-program is not in the client's PATH"},
		"no such program in a shell":   {sh("exec no-such-program 2>/dev/null"), observe.ProbeUnknown, "sh ended with status 127: a program could not be run"},
		"no such path":                 {[]string{"/no/such/program"}, observe.ProbeUnknown, "/no/such/program cannot be executed: no such file or directory"},
		"no program":                   {[]string{plain}, observe.ProbeUnknown, plain + " cannot be executed: permission denied"},
		"no program in a shell":        {sh("exec " + plain + " 2>/dev/null"), observe.ProbeUnknown, "sh ended with status 126: a program could not be run"},
		"no interpreter":               {[]string{script}, observe.ProbeUnknown, script + " could not be executed: no such file or directory"},
		"a directory":                  {[]string{dir}, observe.ProbeUnknown, dir + " cannot be executed: is a directory"},
		"a crash":                      {sh("kill -SEGV $$"), observe.ProbeUnknown, "sh was ended by SIGSEGV"},
		"killed by somebody":           {sh("kill -KILL $$"), observe.ProbeUnknown, "sh was ended by SIGKILL"},
		"nothing":                      {nil, observe.ProbeUnknown, "there is no program to ask"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, observe.ProbeResult{Outcome: c.want, Message: c.message}, ask(t, p, c.command...))
		})
	}
}

func TestAProbeHasTheDirectoryAndTheEnvironmentOfItsClient(t *testing.T) {
	p := client(t, "marked")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "check"), []byte("#!/bin/sh\n"+
		`env | sort | grep -v -e '^_=' -e '^SHLVL=' -e '^OLDPWD=' > seen; pwd > where; tty -s && exit 1; read x && exit 1; exit 0`+"\n"), 0o700))
	r := Runner{}.Probe(context.Background(), observe.Probe{Client: p, Command: []string{"./check"}, Directory: dir, Timeout: patience})
	require.Equal(t, observe.ProbeResult{Outcome: observe.ProbeSucceeded}, r)
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	require.NoError(t, err)
	assert.Equal(t, "COLOUR=green\n"+observe.EnvSession+"=shop\nPATH="+os.Getenv("PATH")+"\nPWD="+dir+"\n", string(seen))
	where, err := os.ReadFile(filepath.Join(dir, "where"))
	require.NoError(t, err)
	assert.Equal(t, dir+"\n", string(where))
}

func TestAProbeIsFoundInThePathOfItsClientAlone(t *testing.T) {
	p := client(t, "marked")
	t.Setenv("PATH", "/no/such/directory")
	assert.Equal(t, observe.ProbeSucceeded, ask(t, p, "true").Outcome)
}

func TestAClientWhoseEnvironmentIsNotKnownIsNotAsked(t *testing.T) {
	bare := client(t, "bare")
	assert.Equal(t, observe.ProbeResult{Message: fmt.Sprintf("the environment of pid %d is not known: the client has replaced or overwritten it", bare.PID)}, ask(t, bare, "true"))
	p := client(t, "marked")
	other := observe.Process{PID: p.PID, Ticks: p.Ticks + 1}
	r := ask(t, other, "false")
	assert.Equal(t, observe.ProbeUnknown, r.Outcome)
	assert.Contains(t, r.Message, "it has ended")
}

func TestAClientWithoutItsDirectoryIsNotAsked(t *testing.T) {
	p := client(t, "marked")
	gone := filepath.Join(t.TempDir(), "gone")
	r := Runner{}.Probe(context.Background(), observe.Probe{Client: p, Command: []string{"false"}, Directory: gone, Timeout: patience})
	assert.Equal(t, observe.ProbeResult{Message: "the directory " + gone + " cannot be used: no such file or directory"}, r)
}

// left is the process that a script has named in the file.
func left(t *testing.T, file string) observe.Process {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	p, _ := process.Identify(pid)
	return p
}

func gone(t *testing.T, p observe.Process) {
	t.Helper()
	require.Eventually(t, func() bool { return process.State(p) == observe.Gone }, patience, 10*time.Millisecond, "%s runs on", p)
}

func TestAProbeThatHangsGivesNoAnswerAndEndsWithItsGroup(t *testing.T) {
	p := client(t, "marked")
	dir := t.TempDir()
	for name, script := range map[string]string{
		"it waits":                    `echo $$ > pid; sleep 600`,
		"a child of it waits":         `sleep 600 & echo $! > pid; wait`,
		"it ignores polite signals":   `trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 600; done`,
		"it holds its error open":     `sleep 600 >&2 & echo $! > pid; wait`,
		"it floods what it prints":    `echo $$ > pid; yes; sleep 600`,
		"it floods what it complains": `echo $$ > pid; yes >&2; sleep 600`,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			r := Runner{}.Probe(context.Background(), observe.Probe{Client: p, Command: sh(script), Directory: dir, Timeout: time.Second})
			assert.Equal(t, observe.ProbeResult{Message: "sh gave no answer within 1s and was ended"}, r)
			assert.Less(t, time.Since(began), patience)
			gone(t, left(t, filepath.Join(dir, "pid")))
		})
	}
}

func TestAProbeLeavesNothingBehind(t *testing.T) {
	p := client(t, "marked")
	dir := t.TempDir()
	r := Runner{}.Probe(context.Background(), observe.Probe{Client: p, Command: sh(`sleep 600 & echo $! > pid; exit 3`), Directory: dir, Timeout: patience})
	assert.Equal(t, observe.ProbeResult{Outcome: observe.ProbeFailed, Message: "sh ended with status 3"}, r)
	gone(t, left(t, filepath.Join(dir, "pid")))
}

func TestWhatLeavesItsGroupHoldsNoProbeUp(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	p := client(t, "marked")
	dir := t.TempDir()
	began := time.Now()
	r := Runner{}.Probe(context.Background(), observe.Probe{Client: p, Command: sh(`setsid sh -c 'echo $$ > pid; exec sleep 600' & while ! [ -s pid ]; do :; done`), Directory: dir, Timeout: patience})
	assert.Equal(t, observe.ProbeResult{Outcome: observe.ProbeSucceeded}, r)
	assert.Less(t, time.Since(began), patience)
	other := left(t, filepath.Join(dir, "pid"))
	require.NoError(t, syscall.Kill(other.PID, syscall.SIGKILL))
}

func TestAProbeEndsWithTheDaemon(t *testing.T) {
	p := client(t, "marked")
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan observe.ProbeResult, 1)
	go func() {
		result <- Runner{}.Probe(ctx, observe.Probe{Client: p, Command: sh(`echo $$ > pid; sleep 600`), Directory: dir, Timeout: patience})
	}()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		return err == nil && len(text) > 0
	}, patience, 10*time.Millisecond)
	cancel()
	select {
	case r := <-result:
		assert.Equal(t, observe.ProbeResult{Message: "sh was ended with the daemon"}, r)
	case <-time.After(patience):
		t.Fatal("the probe did not end")
	}
	gone(t, left(t, filepath.Join(dir, "pid")))
}

func TestWhatAProbeComplainsOfIsBoundedAndHarmless(t *testing.T) {
	for given, want := range map[string]string{
		"":                                   "",
		"\n \n\t\nnot here\nsecond":          "not here",
		"without an end":                     "without an end",
		"\x1b[31mred\x1b[0m\a\r\n":           "[31mred[0m",
		"a\tb\x00c\u202e\xff":                "a bc",
		strings.Repeat("x", 1000):            strings.Repeat("x", maxSaid),
		strings.Repeat("ü", 1000):            strings.Repeat("ü", maxSaid/2),
		strings.Repeat(" ", 1000):            "",
		"x" + strings.Repeat("ü", 99) + "üü": "x" + strings.Repeat("ü", 99),
	} {
		whole, parts := &firstLine{}, &firstLine{}
		_, _ = whole.Write([]byte(given))
		for _, b := range []byte(given) {
			_, _ = parts.Write([]byte{b})
		}
		assert.Equal(t, want, whole.String())
		assert.Equal(t, want, parts.String())
	}
}

func BenchmarkProbe(b *testing.B) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"=marked")
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	p := observe.Process{}
	for p.PID == 0 || (Runner{}).Probe(context.Background(), observe.Probe{Client: p, Command: []string{"true"}, Directory: "/", Timeout: patience}).Outcome != observe.ProbeSucceeded {
		p, _ = process.Identify(cmd.Process.Pid)
	}
	for b.Loop() {
		Runner{}.Probe(context.Background(), observe.Probe{Client: p, Command: []string{"true"}, Directory: "/", Timeout: patience})
	}
}
