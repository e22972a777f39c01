// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// editor makes $EDITOR a shell script that gets the copy's path, and the copies
// a directory of their own.
func (c *cli) editor(script string) {
	c.t.Helper()
	path := c.write("bin/editor", "#!/bin/sh\nset -e\n"+script+"\n")
	require.NoError(c.t, os.Chmod(path, 0o755))
	require.NoError(c.t, os.MkdirAll(filepath.Join(c.dir, "tmp"), 0o755))
	c.t.Setenv("TMPDIR", filepath.Join(c.dir, "tmp"))
	c.env["EDITOR"] = path
}

const commented = "# mine\n"

func (c *cli) declares(before, after string) {
	c.write("sessions/a.yaml", before+commented+manifestOf("a")+after)
}

func TestEditPutsWhatIsSavedInItsPlace(t *testing.T) {
	c := newCLI(t, nil)
	before, after := "\uFEFF"+manifestOf("first")+"--- # second\n", "...\n---\n"+manifestOf("third")
	c.declares(before, after)
	c.editor(`ls -l "$1" | cut -c1-10 >` + c.dir + `/mode; cp "$1" ` + c.dir + `/seen; sed -i 's/1d/2d/; s/# mine/# mine, edited/' "$1"`)
	assert.Equal(t, 0, c.run("edit", "session/a"), c.errOut)
	assert.Equal(t, "session/a edited\n", c.out)
	edited := strings.Replace("# mine, edited\n"+manifestOf("a"), "1d", "2d", 1)
	assert.Equal(t, before+edited+after, c.read("sessions/a.yaml"))
	assert.Equal(t, "-rw-------\n", c.read("mode"))
	assert.Regexp(t, `\A(#muxlet: .*\n)+# mine\n`, c.read("seen"))
	assert.True(t, strings.HasSuffix(c.read("seen"), manifestOf("a")), "one document alone")
	assert.Contains(t, c.read("seen"), c.dir+"/sessions/a.yaml")
	assert.Empty(t, c.files("tmp"), "the copy is gone")
}

func TestAnEditWithoutAChangeIsCancelled(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "")
	for script, said := range map[string]string{
		"true":             "Edit cancelled, no changes made.\n",
		`sed -i '1d' "$1"`: "Edit cancelled, no changes made.\n",
		`: >"$1"`:          "Edit cancelled, saved file was empty.\n",
		`grep '^#muxlet' "$1" >"$1.2"; mv "$1.2" "$1"`: "Edit cancelled, saved file was empty.\n",
	} {
		c.editor(script)
		assert.Equal(t, 0, c.run("edit", "a"), script)
		assert.Equal(t, said, c.errOut)
		assert.Empty(t, c.out)
		assert.Equal(t, commented+manifestOf("a"), c.read("sessions/a.yaml"))
		assert.Empty(t, c.files("tmp"))
	}
}

func TestAnInvalidEditIsOpenedAgainWithTheProblem(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "")
	c.editor(`if grep -q bogus "$1"; then cp "$1" ` + c.dir + `/seen; sed -i 's/bogus: 1/suspend: true/' "$1"; else echo '  bogus: 1' >>"$1"; fi`)
	assert.Equal(t, 0, c.run("edit", "a"), c.errOut)
	assert.Equal(t, commented+manifestOf("a")+"  suspend: true\n", c.read("sessions/a.yaml"))
	seen := c.read("seen")
	m := regexp.MustCompile(`(?m)^#muxlet: line (\d+): spec\.bogus: unknown field`).FindStringSubmatch(seen)
	require.NotNil(t, m, seen)
	line := strings.Count(seen[:strings.Index(seen, "  bogus: 1")], "\n") + 1
	assert.Equal(t, m[1], strconv.Itoa(line), "the line in the copy itself:\n%s", seen)
}

// Each mistake is shown alone, at its own place, until there is none.
func TestTwoMistakesInARowAreShownOneAfterTheOther(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "")
	c.editor(`cp "$1" ` + c.dir + `/seen-$(ls ` + c.dir + ` | grep -c seen)
if grep -q '^  bogus' "$1"; then sed -i 's/^  bogus: 1/  provisioningPolicy: Never/' "$1"
elif grep -q '^  provisioningPolicy: Never' "$1"; then sed -i 's/^  provisioningPolicy: Never/  suspend: true/' "$1"
else echo '  bogus: 1' >>"$1"; fi`)
	assert.Equal(t, 0, c.run("edit", "a"), c.errOut)
	assert.Equal(t, commented+manifestOf("a")+"  suspend: true\n", c.read("sessions/a.yaml"))
	first, second := c.read("seen-1"), c.read("seen-2")
	assert.Regexp(t, `(?m)^#muxlet: line \d+: spec\.bogus: unknown field`, first)
	assert.NotContains(t, first, "provisioningPolicy:")
	assert.Regexp(t, `(?m)^#muxlet: line \d+: spec\.provisioningPolicy: `, second)
	assert.NotContains(t, second, "bogus", "the first mistake is not shown again")
}

func TestAnInvalidEditThatIsGivenUpIsKept(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "")
	c.editor(`grep -q bogus "$1" || echo '  bogus: 1' >>"$1"`)
	assert.Equal(t, exitError, c.run("edit", "a"))
	assert.Regexp(t, `^Error: edit cancelled, no valid changes were saved: /tmp/test/tmp/muxlet-edit-a-.*\.yaml:\d+:\d+: spec\.bogus: unknown field.*; your text is kept in /tmp/test/tmp/muxlet-edit-a-.*\.yaml\n$`, c.errOut)
	require.Len(t, c.files("tmp"), 1)
	assert.Contains(t, c.read("tmp/"+c.files("tmp")[0]), "  bogus: 1\n")
	assert.Equal(t, commented+manifestOf("a"), c.read("sessions/a.yaml"))
	place := regexp.MustCompile(`muxlet-edit-a-\d+\.yaml:(\d+):\d+: spec`).FindStringSubmatch(c.errOut)
	require.NotNil(t, place, c.errOut)
	line, err := strconv.Atoi(place[1])
	require.NoError(t, err)
	assert.Equal(t, "  bogus: 1", strings.Split(c.read("tmp/"+c.files("tmp")[0]), "\n")[line-1], "where it is in what is kept")
}

func TestAnEditDoesNotRenameNorAddADocument(t *testing.T) {
	for script, said := range map[string]string{
		`sed -i 's/name: a/name: b/' "$1"`:                  `a session cannot be renamed: put "a" back`,
		`printf -- '---\n' >>"$1"; sed '/^#/d' "$1" >>"$1"`: "a second document",
		`printf -- 'x: [\n' >>"$1"`:                         "a value is missing here",
		`sed -i 's/kind: Session/kind: Pod/' "$1"`:          "it must be Session or ClientClass",
	} {
		c := newCLI(t, nil)
		c.declares("", "")
		c.editor(`if [ -e ` + c.dir + `/again ]; then exit 0; fi; touch ` + c.dir + "/again\n" + script)
		assert.Equal(t, exitError, c.run("edit", "a"), script)
		assert.Contains(t, c.errOut, said)
		assert.Contains(t, c.errOut, "your text is kept in ")
		assert.Equal(t, commented+manifestOf("a"), c.read("sessions/a.yaml"))
	}
}

func TestAFileThatChangedUnderAnEditIsNotOverwritten(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "")
	c.editor(`sed -i 's/1d/2d/' "$1"; echo '  suspend: true' >>` + c.dir + `/sessions/a.yaml`)
	assert.Equal(t, exitConflict, c.run("edit", "a"))
	assert.Contains(t, c.errOut, "it was changed by somebody else")
	assert.Contains(t, c.errOut, "your text is kept in /tmp/test/tmp/")
	assert.Equal(t, commented+manifestOf("a")+"  suspend: true\n", c.read("sessions/a.yaml"))
	require.Len(t, c.files("tmp"), 1)
	assert.Contains(t, c.read("tmp/"+c.files("tmp")[0]), "2d")
}

func TestAnotherDocumentMayChangeUnderAnEdit(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "---\n"+manifestOf("b"))
	c.editor(`sed -i 's/1d/2d/' "$1"; echo '  suspend: true' >>` + c.dir + `/sessions/a.yaml`)
	assert.Equal(t, 0, c.run("edit", "a"), c.errOut)
	assert.Equal(t, commented+strings.Replace(manifestOf("a"), "1d", "2d", 1)+"---\n"+manifestOf("b")+"  suspend: true\n", c.read("sessions/a.yaml"))
}

func TestAnEditorThatFailsKeepsTheCopy(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "")
	c.editor(`sed -i 's/1d/2d/' "$1"; exit 3`)
	assert.Equal(t, exitError, c.run("edit", "a"))
	assert.Regexp(t, `did not end well \(exit status 3\), so nothing was changed; your text is kept in /tmp/test/tmp/muxlet-edit-a-`, c.errOut)
	assert.Contains(t, c.read("tmp/"+c.files("tmp")[0]), "2d")
	assert.Equal(t, commented+manifestOf("a"), c.read("sessions/a.yaml"))
}

func TestVisualWinsAndMayHaveArguments(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "")
	c.editor(`sed -i "$1" "$2"`)
	c.env["VISUAL"] = " " + c.env["EDITOR"] + "  s/1d/3d/ "
	c.env["EDITOR"] = "/nonexistent"
	assert.Equal(t, 0, c.run("edit", "a"), c.errOut)
	assert.Contains(t, c.read("sessions/a.yaml"), "3d")
	c.env["MUXLET_EDITOR"], c.env["VISUAL"] = c.env["VISUAL"]+" -e s/3d/4d/", "/nonexistent"
	c.env["MUXLET_EDITOR"] = strings.Replace(c.env["MUXLET_EDITOR"], "s/1d/3d/  -e", "", 1)
	assert.Equal(t, 0, c.run("edit", "a"), "one's own for muxlet comes first: "+c.errOut)
	assert.Contains(t, c.read("sessions/a.yaml"), "4d")
	delete(c.env, "VISUAL")
	delete(c.env, "MUXLET_EDITOR")
	assert.Equal(t, exitError, c.run("edit", "a"))
	assert.Contains(t, c.errOut, "/nonexistent")
	assert.Contains(t, c.errOut, "$EDITOR")
	assert.Empty(t, c.files("tmp"))
}

func TestAnEditorWithQuotedArgumentsIsReadByAShell(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "")
	c.editor("exit 1")
	c.env["EDITOR"] = `sed -i -e 's/# mine/# my  own/'`
	assert.Equal(t, 0, c.run("edit", "a"), c.errOut)
	assert.Contains(t, c.read("sessions/a.yaml"), "# my  own\n")
}

func TestEditOfAnUnknownSessionSaysWhereItLooked(t *testing.T) {
	c := newCLI(t, nil)
	c.editor("true")
	assert.Equal(t, exitNotFound, c.run("edit", "a"))
	assert.Equal(t, "Error: session \"a\" not found: no file in /tmp/test/sessions declares it\n", c.errOut)
	assert.Equal(t, exitUsage, c.run("edit"))
	assert.Equal(t, exitUsage, c.run("edit", "a", "b"))
}

func TestEditMendsAnInvalidDocument(t *testing.T) {
	c := newCLI(t, nil)
	c.declares("", "  bogus: 1\n")
	c.editor(`sed -i '/bogus/d' "$1"`)
	assert.Equal(t, 0, c.run("edit", "a"), c.errOut)
	assert.Equal(t, commented+manifestOf("a"), c.read("sessions/a.yaml"))
}

func TestEditKeepsTheLineEndsOfTheFile(t *testing.T) {
	c := newCLI(t, nil)
	c.write("sessions/a.yaml", strings.ReplaceAll(manifestOf("a"), "\n", "\r\n"))
	c.editor(`tr -d '\r' <"$1" | sed 's/1d/2d/' >"$1.2"; mv "$1.2" "$1"`)
	assert.Equal(t, 0, c.run("edit", "a"), c.errOut)
	assert.Equal(t, strings.ReplaceAll(strings.Replace(manifestOf("a"), "1d", "2d", 1), "\n", "\r\n"), c.read("sessions/a.yaml"))
}

func TestEditOfJSON(t *testing.T) {
	c := newCLI(t, nil)
	text := `{"apiVersion":"muxlet.dev/v1alpha1","kind":"Session","metadata":{"name":"a"},"spec":{"client":{"command":["x"]},"workspace":{"directory":"/"}}}`
	c.write("sessions/a.json", text)
	c.editor(`case $1 in *.json) ;; *) exit 1;; esac; sed -i 's/"x"/"y"/' "$1"`)
	assert.Equal(t, 0, c.run("edit", "a"), c.errOut)
	assert.Equal(t, strings.Replace(text, `"x"`, `"y"`, 1), strings.TrimSuffix(c.read("sessions/a.json"), "\n"))
}
