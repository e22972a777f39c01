// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// in runs a verb in a directory.
func (w *World) in(directory string, args ...string) answer {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), binary, args...)
	cmd.Env, cmd.Dir = w.env, directory
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); cmd.ProcessState == nil {
		require.NoError(w, err)
	}
	return answer{out: out.String(), errOut: errOut.String(), code: cmd.ProcessState.ExitCode()}
}

// The fake client is what a session without a word gets in these worlds.
func newWorldOfFakes(t *testing.T) *World {
	w := newWorld(t, settings{"sessionDefaults": settings{"clientClassName": "fake", "client": settings{"shellMode": "None"}}})
	w.fakeClass()
	return w
}

func TestNewMakesASessionOfTheCurrentDirectory(t *testing.T) {
	t.Parallel()
	w := newWorldOfFakes(t)
	w.start()
	shop := w.home + "/src/My Shop"
	require.NoError(t, os.MkdirAll(shop, 0o755))
	first := w.in(shop, "new")
	require.Zero(t, first.code, first.errOut)
	assert.Equal(t, "session/my-shop created ("+w.manifests+"/my-shop.yaml)\n", first.out)
	assert.Equal(t, `apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata:
  name: my-shop
spec:
  workspace:
    directory: ~/src/My Shop
`, w.read("my-shop.yaml"))
	assert.Equal(t, shop, w.runs("my-shop").Status.Workspace.Path)

	second := w.in(shop, "new", "--on-demand", "-l", "repo=shop,team=web")
	assert.Equal(t, "session/my-shop-2 created ("+w.manifests+"/my-shop-2.yaml)\n", second.out)
	s := w.reaches("my-shop-2", spec.StatusDormant)
	assert.Equal(t, spec.ProvisioningOnDemand, s.Spec.ProvisioningPolicy)
	assert.Equal(t, map[string]string{"repo": "shop", "team": "web"}, s.Labels)
	assert.Contains(t, w.does("validate"), "2 sessions")
}

func TestNewTakesAProgramAClassAndAPrompt(t *testing.T) {
	t.Parallel()
	w := newWorldOfFakes(t)
	prompt := w.note("prompt.md", "Look at this:\n\n  - a: 'b'\n\ttab\n")
	w.does("new", "dev", "-C", w.home+"/work", "--", w.dir+"/bin/fake", "stay", "a b", "yes")
	assert.Contains(t, w.read("dev.yaml"), "  client:\n    command: ["+w.dir+`/bin/fake, stay, a b, "yes"]`)
	w.does("new", "triage", "-C=~/work", "--class", "fake", "--prompt-file", prompt)
	assert.Contains(t, w.read("triage.yaml"), "spec:\n  workspace:\n    directory: ~/work\n  initialPrompt: |\n    Look at this:\n")
	w.does("new", "words", "-C", "work", "--class", "fake", "--", "stay", "--loud")
	assert.Contains(t, w.read("words.yaml"), "  client:\n    args: [stay, --loud]\n")
	w.start()
	assert.Equal(t, []string{w.dir + "/bin/fake", "stay", "a b", "yes"}, w.runs("dev").Spec.Client.Command)
	assert.Equal(t, "Look at this:\n\n  - a: 'b'\n\ttab\n", w.get("triage").Spec.InitialPrompt)
	assert.Equal(t, []string{"stay", "--loud"}, w.runs("words").Spec.Client.Args)

	odd := w.home + "/$HOME é"
	require.NoError(t, os.Mkdir(odd, 0o755))
	w.does("new", "odd", "-C", odd)
	assert.Equal(t, odd, w.runs("odd").Status.Workspace.Path)
}

func TestNewRefusesWhatCannotBeAndWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorldOfFakes(t)
	require.NoError(t, os.MkdirAll(w.manifests+"/team", 0o755))
	w.write("team/many.yaml", short("taken", "spec: {workspace: {directory: /tmp}}\n"))
	w.write("file.yaml", "# nothing yet, but mine\n")
	before := w.listing()
	for what, c := range map[string]struct {
		code int
		args []string
		says string
	}{
		"a name that is taken":      {4, []string{"new", "taken"}, `session "taken" is declared in ` + w.manifests + "/team/many.yaml already"},
		"a file that is there":      {4, []string{"new", "file"}, "file.yaml exists already"},
		"a class with a typo":       {1, []string{"new", "a", "--class", "codx"}, `did you mean "codex"?`},
		"a directory that is not":   {4, []string{"new", "a", "-C", "/no/such"}, "the directory /no/such does not exist"},
		"a file for a directory":    {4, []string{"new", "a", "-C", w.manifests + "/file.yaml"}, "is not a directory"},
		"a bad name":                {1, []string{"new", "My.App"}, `did you mean "my-app"?`},
		"two names":                 {2, []string{"new", "a", "b"}, "muxlet new a -- b"},
		"a prompt that is not":      {1, []string{"new", "a", "--prompt-file", "/no/such"}, "no such file"},
		"a class without a program": {1, []string{"new", "a", "--class", "exec"}, "spec.client.command: is required"},
		"no name from /":            {2, []string{"new", "-C", "/"}, "no name can be made"},
		"attach without a terminal": {1, []string{"new", "a", "--attach"}, "not a terminal"},
		"a bad label":               {1, []string{"new", "a", "-l", "x=a b"}, "value of a label"},
		"a format that is not":      {2, []string{"new", "a", "-o", "wide"}, "must be yaml, json or name"},
	} {
		said := w.muxlet(c.args...)
		assert.Equal(t, c.code, said.code, what)
		assert.Contains(t, said.errOut, c.says, what)
		assert.Empty(t, said.out, what)
	}
	assert.Equal(t, before, w.listing())
}

// listing is what is below the manifest directory.
func (w *World) listing() (paths []string) {
	w.Helper()
	require.NoError(w, filepath.WalkDir(w.manifests, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	return paths
}

func TestNewPrintsWhatItWouldWrite(t *testing.T) {
	t.Parallel()
	w := newWorldOfFakes(t)
	dry := w.does("new", "a", "--dry-run", "-o", "yaml", "-C", "work")
	assert.NoFileExists(t, w.manifests+"/a.yaml")
	assert.Equal(t, "session/a created ("+w.manifests+"/a.yaml) (dry run)\n", w.does("new", "a", "--dry-run", "-C", "work"))
	assert.JSONEq(t, `{"apiVersion":"muxlet.dev/v1alpha1","kind":"Session","metadata":{"name":"a"},"spec":{"workspace":{"directory":"~/work"}}}`,
		w.does("new", "a", "--dry-run=client", "-o", "json", "-C", "work"))
	made := w.muxlet("new", "a", "-C", "work", "-o", "name")
	assert.Equal(t, "session/a\n", made.out)
	assert.Contains(t, made.errOut, `start one with "muxlet daemon"`)
	assert.Equal(t, dry, w.read("a.yaml"))
}

func TestNewAttachesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorldOfFakes(t)
	w.start()
	screen := w.open("new", "a", "-C", w.home+"/work", "-a", "--", w.dir+"/bin/fake", "say", "hello-from-new")
	screen.shows("hello-from-new")
	screen.detach()
	assert.Equal(t, int64(1), w.runs("a").Status.Client.Incarnation)
}
