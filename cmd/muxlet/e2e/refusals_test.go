// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// O1.
func TestASecondDaemonOnTheSameStateIsRefusedNamingTheHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.several(2, "stay")
	holder := fmt.Sprintf("(pid %d)", w.daemon.cmd.Process.Pid)
	said := w.refuses(1, "daemon")
	assert.Contains(t, said, holder)
	assert.Contains(t, said, "--state-dir")
	assert.Contains(t, w.refuses(1, "daemon", "--once"), holder)
	assert.Contains(t, w.refuses(1, "daemon", "--state-dir", w.dir+"/other", "--runtime-dir", w.runtime), holder)
	assert.Contains(t, w.refuses(1, "daemon", "--runtime-dir", w.dir+"/other"), holder)
	w.untouched(before)
	w.stop()
	w.start()
	w.untouched(before)
}

func TestADaemonThatCannotWriteItsStateIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, os.MkdirAll(w.state, 0o700))
	require.NoError(t, unix.Mount("none", w.state, "tmpfs", unix.MS_RDONLY, "mode=0700"))
	t.Cleanup(func() { _ = unix.Unmount(w.state, unix.MNT_DETACH) })
	said := w.refuses(1, "daemon")
	assert.Contains(t, said, w.state)
	assert.Contains(t, said, "read-only file system")
	assert.Contains(t, said, "--state-dir")
}

func TestADaemonOnTheStateOfAnotherAccountIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, os.MkdirAll(w.state, 0o700))
	require.NoError(t, os.Chown(w.state, 65534, 65534))
	said := w.refuses(1, "daemon")
	assert.Contains(t, said, w.state)
	assert.Contains(t, said, "belongs to uid 65534")
	require.NoError(t, os.Chown(w.state, os.Getuid(), os.Getgid()))
}

// B10, E7.
func TestAMissingDirectoryIsNamedAndWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	directory := w.home + "/to come"
	w.write("s.yaml", document("s", fmt.Sprintf("[%q]", w.dir+"/bin/fake"), fmt.Sprintf("%q", directory)))
	s := w.reaches("s", spec.StatusBlocked)
	assert.Equal(t, spec.ReasonWorkspaceMissing, reason(s, spec.ConditionStalled))
	w.eventually([]string{"describe", "s"}, "WorkspaceMissing", directory, "mkdir -p '"+directory+"'")
	assert.Equal(t, 4, w.muxlet("resume", "s").code)
	assert.Empty(t, w.startsOf("s"))
	require.NoError(t, os.Mkdir(directory, 0o755))
	w.runsAs("s", 1)
	assert.Equal(t, directory, w.nth("s", 1).directory)
	assert.Zero(t, w.get("s").Status.ConsecutiveDeaths)
}

func TestADirectoryIsCreatedWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	text := document("s", fmt.Sprintf("[%q]", w.dir+"/bin/fake"), "~/made/here\n    type: DirectoryOrCreate")
	w.write("s.yaml", text)
	w.runs("s")
	assert.Equal(t, w.home+"/made/here", w.nth("s", 1).directory)
}

func TestAMissingProgramIsNamedWithWhereItWasLookedForAndWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.write("s.yaml", document("s", "[my-agent, stay]", w.home+"/work"))
	w.write("path.yaml", document("path", fmt.Sprintf("[%q]", w.dir+"/bin/agent"), w.home+"/work"))
	w.reaches("s", spec.StatusBlocked)
	w.reaches("path", spec.StatusBlocked)
	told := w.eventually([]string{"describe", "s"}, "CommandNotFound", "my-agent was not found in PATH", w.dir+"/bin:")
	assert.Contains(t, told, "Install my-agent")
	assert.Contains(t, w.does("describe", "path"), w.dir+"/bin/agent does not exist")
	starts := w.get("s").Status.ConsecutiveDeaths
	w.holds("it is not tried again and again", 2*tick*100, func() bool { return w.get("s").Status.ConsecutiveDeaths == starts })
	require.NoError(t, os.Symlink(w.dir+"/bin/fake", w.dir+"/bin/my-agent"))
	require.NoError(t, os.Symlink(w.dir+"/bin/fake", w.dir+"/bin/agent"))
	w.runsAs("s", 1)
	w.runsAs("path", 1)
}

// mistakes of a new person: the document, the name under which describe tells
// about it (empty where the file tells none), and what is said.
var mistakes = map[string]struct {
	text, name string
	says       []string
}{
	"a bad name": {
		text: document("My.App", "[sleep, inf]", "/tmp"), name: "My.App",
		says: []string{":4:", "metadata.name", "My.App"},
	},
	"a wrong apiVersion": {
		text: strings.Replace(document("s", "[sleep, inf]", "/tmp"), "muxlet.dev/v1alpha1", "muxlet.dev/v1", 1), name: "s",
		says: []string{":1:", "apiVersion", "muxlet.dev/v1alpha1"},
	},
	"an unknown field": {
		text: strings.Replace(document("s", "[sleep, inf]", "/tmp"), "command:", "comand:", 1), name: "s",
		says: []string{":7:5: spec.client.comand: unknown field", `did you mean "command"`},
	},
	"a tab": {
		text: strings.Replace(document("s", "[sleep, inf]", "/tmp"), "    command:", "\tcommand:", 1),
		says: []string{":7:", "tab"},
	},
	"no command": {
		text: strings.Replace(document("s", "[sleep, inf]", "/tmp"), "  client:\n    command: [sleep, inf]\n", "  clientClassName: exec\n  client:\n", 1), name: "s",
		says: []string{"spec.client.command"},
	},
	"a directory that is relative": {
		text: document("s", "[sleep, inf]", "work"), name: "s",
		says: []string{":10:", "spec.workspace.directory"},
	},
	"another kind": {
		text: strings.Replace(document("s", "[sleep, inf]", "/tmp"), "kind: Session", "kind: Sesion", 1), name: "s",
		says: []string{":2:", "kind", "Session"},
	},
}

func TestTheMistakesOfANewPersonAreAnswered(t *testing.T) {
	t.Parallel()
	for what, mistake := range mistakes {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.write("mine.yaml", mistake.text)
			says := append([]string{w.manifests + "/mine.yaml:"}, mistake.says...)
			for _, args := range [][]string{{"validate"}, {"validate", w.manifests + "/mine.yaml"}} {
				a := w.muxlet(args...)
				assert.Equal(t, 1, a.code)
				for _, word := range says {
					assert.Contains(t, a.errOut, word)
				}
			}
			w.start()
			w.eventually([]string{"get"}, says...)
			if mistake.name == "" {
				a := w.muxlet("describe", "s")
				assert.Equal(t, 3, a.code)
				for _, word := range says {
					assert.Contains(t, a.errOut, word)
				}
			} else {
				w.eventually([]string{"describe", mistake.name}, append(says, "Correct "+w.manifests+"/mine.yaml")...)
			}
			for _, word := range says {
				assert.Contains(t, strings.ReplaceAll(w.log(), `\"`, `"`), word)
			}
			assert.Empty(t, w.servers(), "nothing to start, no tmux server")
			w.declare("mine", "stay")
			w.runs("mine")
		})
	}
}

func TestAMissingManifestDirectoryIsNamedAndWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, os.RemoveAll(w.manifests))
	w.start()
	said := w.muxlet("get")
	assert.Equal(t, 0, said.code)
	assert.Contains(t, said.errOut, w.manifests)
	require.NoError(t, os.MkdirAll(w.manifests, 0o755))
	w.declare("s", "stay")
	w.runs("s")
}

func TestAnInvalidSettingsFileIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(w.home+"/.config/muxlet/config.yaml", "apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\nresyncPeriode: 1s\n")
	said := w.refuses(1, "daemon")
	assert.Contains(t, said, "config.yaml:3:1: resyncPeriode: unknown field")
	assert.Contains(t, said, `did you mean "resyncPeriod"`)
}

func TestWithoutADaemonEveryVerbSaysSoInOneSentence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stale := func() {}
	for range 2 {
		for _, args := range [][]string{
			{"get"}, {"get", "events"}, {"get", "s"}, {"describe", "s"}, {"suspend", "s"}, {"resume", "s"}, {"restart", "s"},
			{"terminate", "s"}, {"delete", "s"}, {"prune"}, {"logs", "s"},
		} {
			assert.Contains(t, w.refuses(1, args...), "muxlet daemon")
		}
		stale()
		// R1: the socket of a daemon that was killed is there.
		w.start()
		w.kill()
		_, err := os.Stat(w.runtime + "/muxlet.sock")
		require.NoError(t, err)
	}
	w.does("version")
	w.does("config", "view")
	require.NoError(t, syscall.Unlink(w.runtime+"/muxlet.sock"))
}
