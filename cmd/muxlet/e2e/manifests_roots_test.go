// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// roots makes them the manifest directories of whatever is started from now on.
func (w *World) roots(paths ...string) { w.setenv("MUXLET_MANIFESTS", strings.Join(paths, ":")) }

func (w *World) mkdir(path string) string {
	w.Helper()
	require.NoError(w, os.MkdirAll(path, 0o755))
	return path
}

// recreated is a document whose edit replaces the client at once.
func (w *World) recreated(name, words string) string {
	return w.document(name, words, "updateStrategy: {type: Recreate}")
}

func TestARootThatIsMadeLaterWithItsParentsIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.dir + "/not/yet/there"
	w.roots(root)
	w.start()
	assert.Contains(t, w.muxlet("get").errOut, root+": the manifest directory does not exist; create it")
	w.mkdir(root)
	w.write(root+"/a.yaml", w.document("a", "stay"))
	before := pid(w.runs("a"))

	moved(w, w.dir+"/not", w.dir+"/gone")
	w.eventually([]string{"get"}, "Held: a", "does not exist")
	moved(w, w.dir+"/gone", w.dir+"/not")
	w.waitFor("nothing is held", func() bool { return !strings.Contains(w.muxlet("get").text(), "Held") })
	w.write(root+"/b.yaml", w.document("b", "stay"))
	w.runs("b")
	assert.Equal(t, before, pid(w.runs("a")))
	w.nth("a", 1)
}

// Another directory takes a root's place in one step.
func TestARootThatIsSwappedIsReadAnewAndOnlyWhatDiffersIsTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next := w.mkdir(w.home + "/.config/muxlet/next")
	for _, name := range []string{"a", "b", "c", "d"} {
		w.write(name+".yaml", w.recreated(name, "say old"))
		w.write(next+"/"+name+".yaml", w.recreated(name, "say old"))
	}
	w.write(next+"/b.yaml", w.recreated("b", "say new"))
	w.write(next+"/e.yaml", w.recreated("e", "stay"))
	dropped(w, next+"/d.yaml")
	w.start()
	for _, name := range []string{"a", "b", "c", "d"} {
		w.runs(name)
	}
	require.NoError(t, unix.Renameat2(unix.AT_FDCWD, next, unix.AT_FDCWD, w.manifests, unix.RENAME_EXCHANGE))
	w.runsAs("b", 2)
	w.runs("e")
	w.gone("d")
	w.write("e.yaml", w.recreated("e", "say again"))
	w.runsAs("e", 2)
	w.holds("the others are left alone", time.Second, func() bool { return w.countOf("a") == 1 && w.countOf("c") == 1 && w.countOf("b") == 2 })
}

// A file, a directory, one below it, a link to one: each document once.
func TestSeveralRootsDeclareEachDocumentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	single, outside := w.dir+"/single.conf", w.mkdir(w.dir+"/outside")
	w.mkdir(w.manifests + "/sub")
	w.write(single, w.recreated("single", "say old"))
	w.write("a.yaml", w.recreated("a", "stay"))
	w.write("sub/b.yaml", w.recreated("b", "stay"))
	w.write(outside+"/c.yaml", w.recreated("c", "stay"))
	require.NoError(t, os.Symlink(outside, w.dir+"/link"))
	require.NoError(t, os.Symlink(outside+"/c.yaml", w.manifests+"/again.yaml"))
	w.roots(single, w.manifests, w.manifests+"/sub", w.dir+"/link", outside)
	w.start()
	for _, name := range []string{"single", "a", "b", "c"} {
		w.runs(name)
	}
	assert.NotContains(t, w.muxlet("get").text(), "Problem")
	w.write(single, w.recreated("single", "say new"))
	w.runsAs("single", 2)
	w.put(single, os.O_TRUNC, nil, w.recreated("single", "say newer"))
	w.runsAs("single", 3)
	w.write(outside+"/c.yaml", w.recreated("c", "say new"))
	w.runsAs("c", 2)
	w.write("sub/b.yaml", w.recreated("b", "say new"))
	w.runsAs("b", 2)

	other := w.mkdir(w.dir + "/other")
	w.write(other+"/c.yaml", w.recreated("c", "say new"))
	require.NoError(t, os.Symlink(other, w.dir+"/link2"))
	moved(w, w.dir+"/link2", w.dir+"/link")
	w.write(other+"/f.yaml", w.recreated("f", "stay"))
	w.runs("f")
	w.eventually([]string{"get"}, "Problem: "+w.dir+"/link/c.yaml:1:1: metadata.name", `session "c" is declared by`)
	w.holds("nothing else is started", time.Second, func() bool { return w.countOf("a") == 1 && w.countOf("b") == 2 && w.countOf("c") == 2 })
}

// As Kubernetes mounts a ConfigMap: files link to ..data/x, ..data links to a
// directory that is replaced.
func TestAConfigMapIsSwappedInOneStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	version := func(name, words string) {
		w.mkdir(w.manifests + "/" + name)
		w.write(name+"/a.yaml", w.recreated("a", words))
		w.write(name+"/b.yaml", w.recreated("b", "stay"))
		require.NoError(t, os.Symlink(name, w.manifests+"/..data_tmp"))
		moved(w, w.manifests+"/..data_tmp", w.manifests+"/..data")
	}
	version("..2026_1", "say old")
	for _, name := range []string{"a.yaml", "b.yaml"} {
		require.NoError(t, os.Symlink("..data/"+name, w.manifests+"/"+name))
	}
	w.start()
	w.runs("a")
	w.runs("b")
	version("..2026_2", "say new")
	require.NoError(t, os.RemoveAll(w.manifests+"/..2026_1"))
	w.runsAs("a", 2)
	version("..2026_3", "say newer")
	w.runsAs("a", 3)
	w.holds("b is left alone", time.Second, func() bool { return w.countOf("b") == 1 && w.countOf("a") == 3 })
}

// A mount that goes leaves an empty directory behind (see
// TestADirectoryThatIsUnmountedStopsNothing); one that comes has more to read, and
// gives no notice of itself.
func TestARootOnWhichAFileSystemIsMountedIsReadAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.mount(w.manifests)
	w.declare("a", "stay")
	before := pid(w.runs("a"))
	require.NoError(t, unix.Unmount(w.manifests, unix.MNT_DETACH))
	w.eventually([]string{"get"}, "Held: a", "is empty")
	w.mount(w.manifests)
	w.declare("b", "stay")
	w.runs("b")
	w.holds("a goes on", time.Second, func() bool { s := w.get("a"); return s != nil && pid(s) == before })
	w.declare("a", "stay")
	w.waitFor("nothing is held", func() bool { return !strings.Contains(w.muxlet("get").text(), "Held") })
	w.nth("a", 1)
}

// git runs a command in the manifest directory, which is a checkout.
func (w *World) git(args ...string) {
	w.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=me", "-c", "user.email=me@example.com"}, args...)...)
	cmd.Dir, cmd.Env = w.manifests, append([]string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}, w.env...)
	out, err := cmd.CombinedOutput()
	require.NoError(w, err, "git %v: %s", args, out)
}

func (w *World) commit(branch string) {
	w.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "-m", branch)
	w.git("branch", "-f", branch)
}

func TestAnotherBranchIsCheckedOutUnderARunningDaemon(t *testing.T) {
	t.Parallel()
	const settle = 1500 * time.Millisecond
	w := newWorld(t, settings{"removal": settings{"settle": settle.String()}})
	names := []string{"a", "b", "c", "d", "e", "f"}
	w.git("init", "-q", "-b", "work")
	for _, name := range names {
		w.write(name+".yaml", w.recreated(name, "say old"))
	}
	w.commit("one")
	w.write("a.yaml", w.recreated("a", "say new"))
	w.mkdir(w.manifests + "/team")
	moved(w, w.manifests+"/b.yaml", w.manifests+"/team/b.yaml")
	dropped(w, w.manifests+"/f.yaml")
	w.write("g.yaml", w.recreated("g", "stay"))
	w.commit("two")
	for _, name := range names[2:5] {
		dropped(w, w.manifests+"/"+name+".yaml")
	}
	w.commit("few")
	w.git("checkout", "-q", "one")
	w.write(".git/index.lock", "")
	w.start()
	before := map[string]int{}
	for _, name := range names {
		before[name] = pid(w.runs(name))
	}
	dropped(w, w.manifests+"/.git/index.lock")

	w.git("checkout", "-q", "two")
	w.runsAs("a", 2)
	w.runs("g")
	w.git("checkout", "-q", "one")
	w.runsAs("a", 3)
	w.git("checkout", "-q", "two")
	w.runsAs("a", 4)
	w.eventually([]string{"describe", "b"}, "team/b.yaml:1")
	w.gone("f")
	before["a"] = pid(w.get("a"))
	delete(before, "f")
	before["g"] = pid(w.get("g"))
	w.holds("what is the same on both branches is left alone", time.Second, func() bool { return w.same(before) })

	w.git("checkout", "-q", "few")
	w.eventually([]string{"get"}, "Held: c, d, e", "3 of 6 sessions are missing at once")
	w.holds("nothing stops", 2*settle, func() bool { return w.same(before) })
	w.git("checkout", "-q", "two")
	w.waitFor("nothing is held", func() bool { return !strings.Contains(w.muxlet("get").text(), "Held") })
	w.holds("it is as before", time.Second, func() bool { return w.same(before) })
	assert.NotContains(t, w.log(), "Found a problem")
}

// Written to the new file first, or taken out of the old one first: the same
// session, the same client, whether it runs or rests.
func TestADocumentMovesInEitherOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"removal": settings{"settle": "3s"}})
	w.declare("other", "stay")
	a, b := w.document("a", "stay"), w.document("rests", "stay", "suspend: true")
	w.write("one.yaml", a+"---\n"+b)
	w.start()
	before, rests := w.runs("a"), w.reaches("rests", spec.StatusSuspended)

	w.write("two.yaml", b+"---\n"+a)
	w.eventually([]string{"describe", "a"}, "passed over in "+w.manifests+"/two.yaml:")
	dropped(w, w.manifests+"/one.yaml")
	w.eventually([]string{"describe", "a"}, "two.yaml:13")

	dropped(w, w.manifests+"/two.yaml")
	w.holds("the client stays within the settle time", 300*time.Millisecond, func() bool { return pid(w.get("a")) == pid(before) })
	w.write("three.yaml", a+"---\n"+b)
	w.eventually([]string{"describe", "a"}, "three.yaml:1")
	w.holds("the client stays", 2*time.Second, func() bool { s := w.get("a"); return s != nil && pid(s) == pid(before) })
	assert.Equal(t, before.UID, w.get("a").UID)
	assert.Equal(t, rests.UID, w.reaches("rests", spec.StatusSuspended).UID)
	assert.Zero(t, w.countOf("rests"))
	w.nth("a", 1)
}

func TestARenamedSessionIsAnotherSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("other", "stay")
	w.start()
	w.write("s.yaml", w.document("old", "stay"))
	old := w.runs("old")
	w.write("s.yaml", w.document("new", "stay"))
	fresh := w.runs("new")
	assert.NotEqual(t, old.UID, fresh.UID)
	w.gone("old")
	w.waitFor("no process is left", func() bool { return len(w.family("old")) == 0 })
	moved(w, w.manifests+"/s.yaml", filepath.Join(w.mkdir(w.manifests+"/deep"), "renamed.yml"))
	w.eventually([]string{"describe", "new"}, "deep/renamed.yml:1")
	w.holds("the client stays", time.Second, func() bool { return pid(w.get("new")) == pid(fresh) })
	w.nth("old", 1)
}
