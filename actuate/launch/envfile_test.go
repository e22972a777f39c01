// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// A file that a person also sources in a shell means the same here, as far as
// nothing has to be computed.
func TestAnEnvFileIsReadAsAPersonWritesIt(t *testing.T) {
	for line, want := range map[string]string{
		"A=":                              "",
		"A=plain":                         "plain",
		"A=a=b":                           "a=b",
		"A= kept  as it stands ":          " kept  as it stands ",
		"A=with # no comment":             "with # no comment",
		"A=$HOME $(id) `id` \\n":          "$HOME $(id) `id` \\n",
		`A={"json": true}`:                `{"json": true}`,
		"A=it's":                          "it's",
		"  A=space before":                "space before",
		"A=windows\r":                     "windows",
		"\ufeffA=marked":                  "marked",
		"export A=1":                      "1",
		"export \t A=1":                   "1",
		`export A="two words"`:            "two words",
		`A="double"`:                      "double",
		`A='single'`:                      "single",
		`A=""`:                            "",
		`A=''`:                            "",
		`A="a \"b\" \\ \$c \` + "`" + `"`: "a \"b\" \\ $c `",
		`A="\n stays"`:                    `\n stays`,
		`A='\"$x'`:                        `\"$x`,
		`A="quoted" # a comment`:          "quoted",
		"A='quoted'  \t":                  "quoted",
		"A=first\nB=x\nA=last":            "last",
		"# A=no\n\nA=yes":                 "yes",
	} {
		pairs, at, why := parseEnvFile(line)
		require.Empty(t, why, "%q: line %d", line, at)
		last := ""
		for _, p := range pairs {
			if p.name == "A" {
				last = p.value
			}
		}
		assert.Equal(t, want, last, "%q", line)
	}
	pairs, _, why := parseEnvFile("exported=1\nexport=2\n")
	require.Empty(t, why)
	assert.Equal(t, []pair{{"exported", "1"}, {"export", "2"}}, pairs)
}

// Where the file is wrong is told by file:line, what is there is not: it may be a
// secret.
func TestALineOfAnEnvFileThatCannotBeUsedIsNamed(t *testing.T) {
	const hidden = "hunter2"
	for content, want := range map[string]string{
		"A=1\n\n# x\n" + hidden:              ":4: it is not NAME=value",
		"A=1\r\n" + hidden + " =1\r\n":       ":2: it is not NAME=value",
		"A=1\nexport " + hidden:              ":2: it is not NAME=value",
		"set -x " + hidden + "=1":            ":1: it is not NAME=value",
		"1A=" + hidden:                       ":1: it is not NAME=value",
		"B=1\nA=\"" + hidden:                 ":2: the quote at the beginning of its value is not closed",
		"A='" + hidden + "\nB='":             ":1: the quote at the beginning of its value is not closed",
		"A='" + hidden + "'" + hidden:        ":1: text follows the closing quote",
		"A='x'#" + hidden:                    ":1: text follows the closing quote",
		"TMUX_PANE=" + hidden:                ":1: the variable TMUX_PANE is set by muxlet or tmux",
		"\n\nexport MUXLET_CLIENT=" + hidden: ":3: the variable MUXLET_CLIENT is set by muxlet or tmux",
	} {
		p := newPane(t, "/bin/echo", "ran")
		path := p.file("agents.env", content)
		p.stored.Order.EnvFrom = []spec.EnvFromSource{fileSource(path, false)}
		r := p.refused(spec.ReasonEnvFileInvalid)
		assert.Equal(t, path, r.File)
		assert.Contains(t, r.Message, path+want)
		assert.NotContains(t, r.Message, hidden)
	}
}

func TestOneNewlineIsTakenFromTheEndOfASecret(t *testing.T) {
	for content, want := range map[string]string{
		"": "", "\n": "", "key": "key", "key\n": "key", "key\r\n": "key", "key\n\n": "key\n", "key\r": "key\r", "two\nlines\n": "two\nlines", " \"key\" \n": " \"key\" ",
	} {
		p := newPane(t)
		p.stored.Order.Env = []spec.EnvVar{secret("KEY", p.file("key", content), false)}
		assert.Equal(t, want, p.clientEnv()["KEY"], "%q", content)
	}
}

// An env file that its account may not read is told from one that is not there,
// whether it is optional or not.
func TestAnEnvFileThatMayNotBeReadIsNamed(t *testing.T) {
	for _, optional := range []bool{false, true} {
		p := newPane(t, "/bin/echo", "ran")
		path := p.file("key", "hunter2")
		require.NoError(t, os.Chmod(path, 0))
		if os.Getuid() == 0 {
			self, err := os.Executable()
			require.NoError(t, err)
			p.before = []string{self, "powerless"}
		}
		p.stored.Order.Env = []spec.EnvVar{secret("KEY", path, optional)}
		r := p.refused(spec.ReasonEnvFileUnreadable)
		assert.Equal(t, path, r.File)
		assert.Contains(t, r.Message, path+" could not be read (permission denied); give access to it")
	}
}

func TestAnOptionalEnvFileIsPassedOverOnlyWhenItIsNotThere(t *testing.T) {
	p := newPane(t)
	file := p.file("plain", "x")
	dangling := filepath.Join(p.state, "dangling")
	require.NoError(t, os.Symlink(filepath.Join(p.state, "gone"), dangling))
	for _, absent := range []string{filepath.Join(p.state, "gone"), dangling, file + "/below", "~/gone"} {
		p.stored.Order.Env = []spec.EnvVar{secret("KEY", absent, true)}
		p.stored.Order.EnvFrom = []spec.EnvFromSource{fileSource(absent, true)}
		require.NotContains(t, p.clientEnv(), "KEY", absent)
		require.NoError(t, os.Remove(ReceiptPath(p.state, testAttempt)))
	}
	for absent, want := range map[string]string{file + "/below": spec.ReasonEnvFileMissing, dangling: spec.ReasonEnvFileMissing} {
		p := newPane(t, "/bin/echo", "ran")
		p.stored.Order.EnvFrom = []spec.EnvFromSource{fileSource(absent, false)}
		p.refused(want)
	}
	loop := filepath.Join(p.state, "loop")
	require.NoError(t, os.Symlink(loop, loop))
	q := newPane(t, "/bin/echo", "ran")
	q.stored.Order.EnvFrom = []spec.EnvFromSource{fileSource(loop, true)}
	q.refused(spec.ReasonEnvFileUnreadable)
}

// What never ends is not read to its end.
func TestADeviceIsNoEnvFile(t *testing.T) {
	for _, device := range []string{"/dev/zero", "/dev/null", "/dev/tty"} {
		p := newPane(t, "/bin/echo", "ran")
		p.stored.Order.Env = []spec.EnvVar{secret("KEY", device, true)}
		status := p.run()
		assert.Equal(t, 1, status)
		assert.Contains(t, []string{spec.ReasonEnvFileInvalid, spec.ReasonEnvFileUnreadable}, p.receipt().Reason, "no terminal, no /dev/tty")
	}
}
