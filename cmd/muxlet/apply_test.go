// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

func (c *cli) read(name string) string {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	require.NoError(c.t, err)
	return string(data)
}

// files below a directory of the test.
func (c *cli) files(name string) []string {
	c.t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(c.t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestApplyCreatesConfiguresAndLeavesAlone(t *testing.T) {
	c := newCLI(t, nil)
	mine := c.write("mine.yaml", "# why it is here\n"+manifestOf("a")+"---\n# the other\n"+manifestOf("b"))
	assert.Equal(t, 0, c.run("apply", "-f", mine))
	assert.Equal(t, "session/a created\nsession/b created\n", c.out)
	assert.Empty(t, c.errOut)
	assert.Equal(t, "# why it is here\n"+manifestOf("a"), c.read("sessions/a.yaml"))
	assert.Equal(t, "# the other\n"+manifestOf("b"), c.read("sessions/b.yaml"))

	c.write("sessions/b.yaml", "# kept\n"+manifestOf("b")+"  suspend: true # for now\n")
	c.write("mine.yaml", strings.Replace(manifestOf("a"), "1d", "2d", 1)+"---\n"+manifestOf("b"))
	assert.Equal(t, 0, c.run("apply", "-f", mine, "--dry-run"))
	assert.Equal(t, "session/a configured (dry run)\nsession/b configured (dry run)\n", c.out)
	assert.Contains(t, c.read("sessions/a.yaml"), "1d", "nothing is written")

	assert.Equal(t, 0, c.run("apply", "-f", mine))
	assert.Equal(t, "session/a configured\nsession/b configured\n", c.out)
	assert.Equal(t, "# why it is here\n"+strings.Replace(manifestOf("a"), "1d", "2d", 1), c.read("sessions/a.yaml"))
	assert.Equal(t, "# kept\n"+manifestOf("b"), c.read("sessions/b.yaml"))
	assert.Equal(t, "Warning: session/b was suspended and is no longer: what was applied does not say spec.suspend: true.\n", c.errOut)

	assert.Equal(t, 0, c.run("apply", "-f", mine))
	assert.Equal(t, "session/a unchanged\nsession/b unchanged\n", c.out)
	assert.Empty(t, c.errOut)
	assert.Equal(t, []string{"a.yaml", "b.yaml"}, c.files("sessions"))
}

func TestApplyOfAFileThatIsAManifestIsInPlace(t *testing.T) {
	c := newCLI(t, nil)
	path := c.write("sessions/deep/a.yaml", manifestOf("a"))
	assert.Equal(t, 0, c.run("apply", "-f", path))
	assert.Equal(t, "session/a unchanged\n", c.out)
	assert.Equal(t, 0, c.run("apply", "-f", filepath.Join(c.dir, "sessions")))
	assert.Equal(t, "session/a unchanged\n", c.out)
	assert.Equal(t, []string{"deep"}, c.files("sessions"))
}

func TestApplyReadsFilesFoldersAndStandardInput(t *testing.T) {
	c := newCLI(t, nil)
	one := c.write("x/one.txt", manifestOf("one"))
	folder := filepath.Dir(c.write("y/two.yaml", manifestOf("two")))
	c.write("y/deep/three.json", `{"apiVersion":"muxlet.dev/v1alpha1","kind":"Session","metadata":{"name":"three"},"spec":{"client":{"command":["x"]},"workspace":{"directory":"/"}}}`)
	c.write("y/readme.txt", "not a manifest")
	c.stdin = manifestOf("four")
	assert.Equal(t, 0, c.run("apply", "-f", one, "-f", folder, "-f", "-"))
	assert.Equal(t, "session/one created\nsession/three created\nsession/two created\nsession/four created\n", c.out)
	assert.Equal(t, 0, c.run("validate"))
	assert.Equal(t, "4 sessions valid\n", c.out)
	assert.Equal(t, exitUsage, c.run("apply", "-f", "-", "-f", "-"))
}

func TestApplyTakesTheGoodDocumentsAndNamesTheProblemsOfTheOthers(t *testing.T) {
	c := newCLI(t, nil)
	mine := c.write("mine.yaml", manifestOf("good")+"---\n"+manifestOf("bad")+"  bogus: 1\n---\n"+manifestOf("My.App")+
		"---\n"+strings.Replace(manifestOf("k"), "Session", "Pod", 1)+"---\n"+manifestOf("twice")+"---\n"+manifestOf("twice")+"---\nx: [\n")
	assert.Equal(t, exitError, c.run("apply", "-f", mine, "-f", filepath.Join(c.dir, "nowhere.yaml")))
	c.golden("apply-problems")
	assert.Equal(t, []string{"good.yaml"}, c.files("sessions"))
}

func TestApplyOfNothingSaysSo(t *testing.T) {
	c := newCLI(t, nil)
	empty := c.write("empty.yaml", "# nothing\n")
	assert.Equal(t, exitError, c.run("apply", "-f", empty))
	assert.Equal(t, "Error: there is nothing to apply: no document in /tmp/test/empty.yaml\n", c.errOut)
	assert.Equal(t, exitUsage, c.run("apply"))
	assert.Equal(t, exitUsage, c.run("apply", empty))
	assert.Contains(t, c.errOut, "muxlet apply -f /tmp/test/empty.yaml")
	assert.Equal(t, exitUsage, c.run("apply", "-f", empty, "-o", "wide"))
	assert.Equal(t, exitUsage, c.run("apply", "-f", empty, "--dry-run=maybe"))
	assert.Empty(t, c.files("sessions"))
}

func TestApplyRefusesASessionThatIsDeclaredTwice(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", manifestOf("a"))
	c.write("sessions/b.yaml", "\n"+manifestOf("a"))
	mine := c.write("mine.yaml", manifestOf("a"))
	assert.Equal(t, exitConflict, c.run("apply", "-f", mine))
	assert.Equal(t, "Error: session \"a\" is declared at /tmp/test/sessions/a.yaml:1:1 and at /tmp/test/sessions/b.yaml:2:1: "+
		"more than one document declares it; remove one of them\n", c.errOut)
}

func TestApplyMakesNoSecondDocumentBesideADamagedOne(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/x.yaml", manifestOf("a")+"  oops: [\n")
	mine := c.write("mine.yaml", manifestOf("a")+"---\n"+manifestOf("b"))
	assert.Equal(t, exitError, c.run("apply", "-f", mine))
	assert.Equal(t, "session/b created\n", c.out)
	assert.Contains(t, c.errOut, `/tmp/test/sessions/x.yaml may declare session "a" and cannot be understood: /tmp/test/sessions/x.yaml:`)
	assert.Equal(t, []string{"b.yaml", "x.yaml"}, c.files("sessions"))
}

func TestApplyWarnsOfWhatItCouldNotLookInto(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/b.yaml", manifestOf("b"))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(c.dir, "sessions/a.yaml")))
	assert.Equal(t, 0, c.run("apply", "-f", c.write("mine.yaml", manifestOf("a")+"---\n"+manifestOf("b"))))
	assert.Equal(t, "session/a created\nsession/b unchanged\n", c.out)
	assert.Equal(t, "Warning: /tmp/test/sessions/a.yaml: cannot be read: it is a symbolic link to nowhere, which does not exist; "+
		"whether one of the new documents is declared there already is not known.\n", c.errOut)
	assert.Equal(t, []string{"a-2.yaml", "a.yaml", "b.yaml"}, c.files("sessions"))
}

func TestApplyMendsADocumentThatIsNotValid(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", "# mine\n"+manifestOf("a")+"  bogus: 1\n")
	assert.Equal(t, 0, c.run("apply", "-f", c.write("mine.yaml", manifestOf("a"))))
	assert.Equal(t, "session/a configured\n", c.out)
	assert.Equal(t, "# mine\n"+manifestOf("a"), c.read("sessions/a.yaml"))
}

func TestApplySaysWhenADocumentWasReplaced(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", "# head\n"+strings.Replace(manifestOf("a"), "[sleep, 1d]", "&c [sleep, 1d] # gone\n    args: *c", 1)+"---\n# other\n"+manifestOf("b"))
	want := strings.Replace(manifestOf("a"), "[sleep, 1d]", "[sleep, 2d]\n    args: [sleep, 1d]", 1)
	assert.Equal(t, 0, c.run("apply", "-f", c.write("mine.yaml", want)))
	assert.Equal(t, "session/a configured\n", c.out)
	assert.Contains(t, c.errOut, "Warning: session/a: in /tmp/test/sessions/a.yaml this was written anew, with the comments in it, and not only what differs: all of the document (")
	assert.Equal(t, "# head\n"+want+"---\n# other\n"+manifestOf("b"), c.read("sessions/a.yaml"))
}

func TestAReadOnlyManifestIsForbidden(t *testing.T) {
	c := newCLI(t, nil)
	path := c.write("sessions/a.yaml", manifestOf("a"))
	require.NoError(t, os.Chmod(path, 0o444))
	mine := c.write("mine.yaml", strings.Replace(manifestOf("a"), "1d", "2d", 1))
	for _, args := range [][]string{{"apply", "-f", mine}, {"apply", "-f", mine, "--dry-run"}, {"edit", "a"}} {
		assert.Equal(t, exitError, c.run(args...), args)
		assert.Contains(t, c.errOut, path[len(c.dir):])
		assert.Contains(t, c.errOut, "read-only")
		assert.Empty(t, c.out)
	}
	assert.Equal(t, exitError, c.run("apply", "-f", mine, "-o", "json"))
	var status struct{ Reason string }
	require.NoError(t, json.Unmarshal([]byte(c.errOut), &status))
	assert.Equal(t, "Forbidden", status.Reason)
}

func TestApplyPrintsWhatItAppliedForPrograms(t *testing.T) {
	c := newCLI(t, nil)
	mine := c.write("mine.yaml", manifestOf("a"))
	assert.Equal(t, 0, c.run("apply", "-f", mine, "-o", "name", "--dry-run=client"))
	assert.Equal(t, "session.muxlet.dev/a\n", c.out)
	assert.Equal(t, 0, c.run("apply", "-f", mine, "-o", "json", "--dry-run=server"))
	var s spec.Session
	require.NoError(t, json.Unmarshal([]byte(c.out), &s))
	assert.Equal(t, spec.RestartAlways, s.Spec.RestartPolicy, "defaults are shown")
	assert.Empty(t, c.files("sessions"))
	assert.Equal(t, 0, c.run("apply", "-f", mine, "-o", "yaml"))
	assert.Contains(t, c.out, "kind: Session\n")
	assert.Equal(t, []string{"a.yaml"}, c.files("sessions"))
}

func TestApplyOfTheOutputOfGetLeavesTheStatusOut(t *testing.T) {
	c := newCLI(t, nil)
	mine := c.write("mine.yaml", "# mine\n"+strings.Replace(manifestOf("a"), "  name: a", "  name: a\n  uid: \"1\"\n  generation: 3", 1)+"status:\n  client:\n    incarnation: 3\n")
	assert.Equal(t, 0, c.run("apply", "-f", mine))
	assert.Equal(t, "# mine\n"+manifestOf("a"), c.read("sessions/a.yaml"))
	assert.Equal(t, 0, c.run("apply", "-f", mine))
	assert.Equal(t, "session/a unchanged\n", c.out)
}

func TestApplyReadsTheListsThatGetPrints(t *testing.T) {
	for _, format := range []string{"yaml", "json"} {
		f := newFakeDaemon(runningSession("a", 1, 100), runningSession("b", 1, 101))
		c := newCLI(t, f)
		f.status.Manifests = []string{filepath.Join(c.dir, "sessions")}
		c.write("sessions/a.yaml", "# kept\n"+manifestOf("a"))
		assert.Equal(t, 0, c.run("get", "-o", format))
		c.stdin = c.out
		assert.Equal(t, 0, c.run("apply", "-f", "-"), c.errOut)
		assert.Equal(t, "session/a configured\nsession/b created\n", c.out)
		assert.Contains(t, c.read("sessions/a.yaml"), "# kept\n")
		assert.Equal(t, 0, c.run("validate"))
		assert.Equal(t, "2 sessions valid\n", c.out)
	}
}

func TestApplyTakesAFileThatIsNamedTwiceOnce(t *testing.T) {
	c := newCLI(t, nil)
	mine := c.write("x/mine.yaml", manifestOf("a"))
	assert.Equal(t, 0, c.run("apply", "-f", filepath.Dir(mine), "-f", mine), c.errOut)
	assert.Equal(t, "session/a created\n", c.out)
}

func TestApplyPutsFilesWhereTheDaemonReads(t *testing.T) {
	f := newFakeDaemon()
	c := newCLI(t, f)
	f.status.Manifests = []string{filepath.Join(c.dir, "of-the-daemon")}
	mine := c.write("mine.yaml", manifestOf("a"))
	assert.Equal(t, 0, c.run("apply", "-f", mine))
	assert.Equal(t, []string{"a.yaml"}, c.files("of-the-daemon"))
	assert.Equal(t, 0, c.run("apply", "-f", mine, "--manifests", filepath.Join(c.dir, "named")))
	assert.Equal(t, []string{"a.yaml"}, c.files("named"), "the command line has the last word")
	assert.Empty(t, c.files("sessions"))
}

func TestANewFileTakesAFreeName(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", manifestOf("else"))
	c.write("sessions/b.yaml", "")
	assert.Equal(t, 0, c.run("apply", "-f", c.write("mine.yaml", manifestOf("a")+"---\n"+manifestOf("b"))))
	assert.Equal(t, []string{"a-2.yaml", "a.yaml", "b.yaml"}, c.files("sessions"))
	assert.Equal(t, manifestOf("else"), c.read("sessions/a.yaml"))
	assert.Equal(t, manifestOf("b"), c.read("sessions/b.yaml"), "an empty file is free")
	info, err := os.Stat(filepath.Join(c.dir, "sessions/a-2.yaml"))
	require.NoError(t, err)
	own, err := os.Stat(filepath.Join(c.dir, "mine.yaml"))
	require.NoError(t, err)
	assert.Equal(t, own.Mode(), info.Mode(), "as the umask leaves it")
}
