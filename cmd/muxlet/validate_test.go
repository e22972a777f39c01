// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func manifestOf(name string) string {
	return "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata:\n  name: " + name +
		"\nspec:\n  client:\n    command: [sleep, 1d]\n  workspace:\n    directory: /tmp\n"
}

func (c *cli) write(name, content string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	require.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(c.t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func TestValidateChecksTheManifestDirectoriesOfTheSettings(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", manifestOf("a"))
	assert.Equal(t, 0, c.run("validate"))
	assert.Equal(t, "1 session valid\n", c.out)
	c.write("sessions/more/b.yml", manifestOf("b")+"---\n"+manifestOf("c"))
	assert.Equal(t, 0, c.run("validate"))
	assert.Equal(t, "3 sessions valid\n", c.out)
	assert.Empty(t, c.errOut)
}

func TestValidateNamesThePlaceOfEachProblem(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", manifestOf("a")+"  workspce: {}\n---\n"+manifestOf("My.App"))
	c.write("sessions/b.yaml", "apiVersion: muxlet.dev/v1alpha1\n\tkind: Session\n")
	assert.Equal(t, exitError, c.run("validate"))
	c.golden("validate-problems")
}

func TestValidateTakesFilesFoldersAndStandardInput(t *testing.T) {
	c := newCLI(t, nil)
	one := c.write("x/one.yaml", manifestOf("one"))
	folder := filepath.Dir(c.write("y/two.yaml", manifestOf("two")))
	c.stdin = manifestOf("three")
	assert.Equal(t, 0, c.run("validate", one, folder, "-"))
	assert.Equal(t, "3 sessions valid\n", c.out)
	c.stdin = "kind: Nonsense\n"
	assert.Equal(t, exitError, c.run("validate", "-"))
	assert.Contains(t, c.errOut, "<stdin>:1:")
}

func TestValidateFindsANameThatIsDeclaredTwice(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", manifestOf("same"))
	c.write("sessions/b.yaml", "\n\n"+manifestOf("same"))
	assert.Equal(t, exitError, c.run("validate"))
	c.golden("validate-duplicate")
}

func TestAMissingDirectoryIsAWarning(t *testing.T) {
	c := newCLI(t, nil)
	assert.Equal(t, 0, c.run("validate"))
	assert.Equal(t, "0 sessions valid\n", c.out)
	assert.Equal(t, "Warning: the directory /tmp/test/sessions does not exist.\n", c.errOut)
	assert.Equal(t, 0, c.run("validate", filepath.Join(c.dir, "nowhere")))
	assert.Equal(t, exitError, c.run("validate", filepath.Join(c.dir, "nowhere.yaml")), "a file that is asked for by name is no directory")
	assert.Contains(t, c.errOut, "/tmp/test/nowhere.yaml: the file does not exist\n")
}
