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

	"github.com/muxlet/muxlet/spec"
)

func (p *pane) script(dir, name, content string, mode os.FileMode) string {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(dir, 0o700))
	path := filepath.Join(dir, name)
	require.NoError(p.t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(p.t, os.Chmod(path, mode))
	return path
}

func TestTheProgramIsSearchedInTheClientsOwnPath(t *testing.T) {
	p := newPane(t, "tool", "x y")
	bin := filepath.Join(p.state, "bin")
	p.script(filepath.Join(p.state, "blocked"), "tool", "", 0o600)
	p.script(bin, "tool", "#!/bin/sh\necho \"$0|$1\"\n", 0o700)
	p.stored.Order.Env = []spec.EnvVar{{Name: "PATH", Value: "/nowhere:" + p.state + "/blocked:" + bin}}
	assert.Equal(t, 0, p.run())
	assert.Equal(t, filepath.Join(bin, "tool")+"|x y\n", p.stdout.String())
}

func TestARelativeProgramIsSeenFromTheWorkspace(t *testing.T) {
	for _, command := range []string{"./tool", "sub/../tool"} {
		p := newPane(t, command)
		p.script(filepath.Join(p.work, "sub"), "x", "", 0o600)
		p.script(p.work, "tool", "#!/bin/sh\npwd\n", 0o700)
		assert.Equal(t, 0, p.run())
		assert.Equal(t, p.work+"\n", p.stdout.String())
	}
	p := newPane(t, "tool")
	p.script(filepath.Join(p.work, "bin"), "tool", "#!/bin/sh\necho ran\n", 0o700)
	p.stored.Order.Env = []spec.EnvVar{{Name: "PATH", Value: "bin:/bin"}}
	assert.Equal(t, 0, p.run())
	assert.Equal(t, "ran\n", p.stdout.String())
}

func TestAProgramThatIsNotFoundIsAReceiptThatSaysWhereItWasLookedFor(t *testing.T) {
	p := newPane(t, "no-such-tool")
	p.stored.Order.Env = []spec.EnvVar{{Name: "PATH", Value: "/one:/two"}}
	r := p.refused(spec.ReasonCommandNotFound)
	assert.Equal(t, "no-such-tool", r.LookedFor)
	assert.Equal(t, []string{"/one", "/two"}, r.LookedIn)
	assert.Contains(t, r.Message, "/one:/two")

	p = newPane(t, "no-such-tool")
	p.stored.Order.Env = []spec.EnvVar{{Name: "PATH", Value: "bin:/two"}}
	r = p.refused(spec.ReasonCommandNotFound)
	assert.Equal(t, []string{filepath.Join(p.work, "bin"), "/two"}, r.LookedIn)

	p = newPane(t, "sub/gone")
	r = p.refused(spec.ReasonCommandNotFound)
	assert.Equal(t, "sub/gone", r.LookedFor)
	assert.Equal(t, []string{p.work}, r.LookedIn)
	assert.Contains(t, r.Message, "does not exist")
}

func TestAProgramWithoutPermissionToExecuteSaysThatItWasFound(t *testing.T) {
	p := newPane(t, "tool")
	path := p.script(p.state, "tool", "#!/bin/sh\n", 0o600)
	p.stored.Order.Env = []spec.EnvVar{{Name: "PATH", Value: p.state}}
	r := p.refused(spec.ReasonCommandNotFound)
	assert.Contains(t, r.Message, path+": it is not executable")

	p = newPane(t, "./")
	assert.Contains(t, p.refused(spec.ReasonCommandNotFound).Message, "it is a directory")
}

// E7: what only a change of the file can mend is not tried again and again.
func TestARefusalOfTheSystemIsOneClearSentence(t *testing.T) {
	// The first 20 bytes of an ELF program for aarch64, and for nothing we know.
	foreign := "\x7fELF\x02\x01\x01\x00" + strings.Repeat("\x00", 8) + "\x02\x00\xb7\x00\x01\x00\x00\x00" + strings.Repeat("\x00", 28) + "\x40\x00\x38\x00\x00\x00\x40\x00\x00\x00\x00\x00"
	for name, c := range map[string]struct {
		content, want, interpreter string
	}{
		"a script without its first line":  {"echo hello\n", "#!/bin/sh", ""},
		"an interpreter that is missing":   {"#!/no/such/interpreter -x\n", "interpreter that it names does not exist (/no/such/interpreter,", "/no/such/interpreter"},
		"an interpreter with a CR":         {"#!/bin/sh\r\necho\n", "ends with a carriage return", "/bin/sh\r"},
		"an interpreter not executable":    {"#!/etc/passwd\n", "permission was denied: the interpreter /etc/passwd", "/etc/passwd"},
		"a program of another kind of CPU": {foreign, "another processor (aarch64)", ""},
		"nothing at all":                   {"\x7fELF", "not in a format that the system executes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPane(t, "./tool")
			path := p.script(p.work, "tool", c.content, 0o700)
			r := p.refused(spec.ReasonCommandNotExecutable)
			assert.Equal(t, path, r.LookedFor)
			assert.Equal(t, c.interpreter, r.File, "what to look at again")
			assert.Contains(t, r.Message, path)
			assert.Contains(t, r.Message, c.want)
		})
	}
}

// What may be over in a moment is tried again by itself.
func TestARefusalThatMayPassIsNotForGood(t *testing.T) {
	for err, want := range map[syscall.Errno]string{
		syscall.ETXTBSY: "it is being written", syscall.E2BIG: "put long text into a file",
		syscall.ENOMEM: "cannot allocate memory", syscall.EACCES: "noexec", syscall.ENOENT: "removed at this very moment",
	} {
		f := execFault("/no/such/program", err)
		assert.Equal(t, spec.ReasonExecFailed, f.reason)
		assert.Contains(t, f.message, want)
	}
	f := execFault("/bin/true", syscall.ENOENT)
	assert.Equal(t, spec.ReasonCommandNotExecutable, f.reason)
	assert.Contains(t, f.message, "its dynamic loader")
}

func TestAProgramThatIsBeingWrittenIsRefusedAsThat(t *testing.T) {
	p := newPane(t, "./tool")
	tool, err := os.ReadFile("/bin/true")
	require.NoError(t, err)
	path := p.script(p.work, "tool", string(tool), 0o700)
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = writer.Close() })
	assert.Contains(t, p.refused(spec.ReasonExecFailed).Message, "it is being written")
}

func TestArgumentsThatAreTooLongAreRefusedAsThat(t *testing.T) {
	p := newPane(t, "/bin/true", strings.Repeat("x", 200<<10))
	assert.Contains(t, p.refused(spec.ReasonExecFailed).Message, "put long text into a file")
}
