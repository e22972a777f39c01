// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/hack/fakebus"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/cgroup"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

// scoped is a world whose clients get scopes: the user's systemd manager is a fake, and
// the control groups are files of the test's.
type scoped struct {
	*envtest.Env
	bus *fakebus.Bus
	// tree of the control groups.
	tree cgroup.Tree
}

// controlGroups are those of a scoped world.
type controlGroups struct {
	cgroup.Tree
	*cgroup.Watcher
	socket string
}

// Bus is controller.Scopes'.
func (g controlGroups) Bus() (address, why string) {
	if _, err := os.Stat(g.socket); err != nil {
		return "", "there is no bus of this user"
	}
	return "unix:path=" + g.socket, ""
}

func makeScoped(t *testing.T) *scoped {
	t.Helper()
	w := &scoped{}
	w.Env = envtest.Make(t, envtest.Config{Adjust: func(o *controller.Options) {
		watcher, err := cgroup.NewWatcher(w.tree, time.Now)
		require.NoError(t, err)
		t.Cleanup(func() { _ = watcher.Close() })
		o.Scopes = controlGroups{w.tree, watcher, w.socket()}
	}})
	w.tree = cgroup.Tree{Root: filepath.Join(w.Dir, "cgroup"), Slice: "/" + cgroup.Slice}
	require.NoError(t, os.MkdirAll(filepath.Join(w.tree.Root, cgroup.Slice), 0o700))
	return w
}

func startScoped(t *testing.T) *scoped {
	t.Helper()
	w := makeScoped(t)
	w.listen()
	w.Boot()
	return w
}

func (w *scoped) socket() string { return filepath.Join(w.Dir, "bus") }

// listen starts the manager.
func (w *scoped) listen() {
	w.Helper()
	bus, err := fakebus.Listen(w.socket(), filepath.Join(w.tree.Root, cgroup.Slice))
	require.NoError(w, err)
	w.Cleanup(func() { _ = bus.Close() })
	w.bus = bus
}

// scope is that of the session's client.
func (w *scoped) scope(name string) observe.Scope {
	w.Helper()
	s := w.Record(name).Client.Scope
	require.NotEmpty(w, s.Name)
	return s
}

func (w *scoped) file(s observe.Scope, name string) string {
	return filepath.Join(w.tree.Root, s.ControlGroup, name)
}

// escape starts a process that is in the scope and in no client's tree.
func (w *scoped) escape(s observe.Scope) observe.Process {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "sh", "-c", `trap "" HUP; while :; do sleep 1000 & wait; done`)
	require.NoError(w, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	w.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	p, _ := process.Identify(cmd.Process.Pid)
	w.enter(s, p)
	return p
}

// enter has a process be in the scope.
func (w *scoped) enter(s observe.Scope, p observe.Process) {
	w.Helper()
	file, err := os.OpenFile(w.file(s, "cgroup.procs"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(w, err)
	_, err = fmt.Fprintln(file, p.PID)
	require.NoError(w, err)
	require.NoError(w, file.Close())
}

// oom has the kernel count what it has ended in the scope.
func (w *scoped) oom(s observe.Scope, kills int) {
	w.Helper()
	require.NoError(w, os.WriteFile(w.file(s, "memory.events"), []byte(fmt.Sprintf("oom_kill %d\n", kills)), 0o600))
}

func (w *scoped) limited(name string, memory string) *spec.Session {
	w.Helper()
	s := w.Fake(name, envtest.Script{})
	s.Spec.Resources.Limits.Memory = ptr.To(resource.MustParse(memory))
	return s
}

// Each incarnation has a scope of its own, whose name says which one it is.
func TestEachIncarnationRunsInAScopeOfItsOwn(t *testing.T) {
	w := startScoped(t)
	s := w.limited("shop", "60Mi")
	s.Spec.Resources.Limits.Tasks = ptr.To[int32](100)
	w.Apply(s)
	first := w.WaitFor("shop", envtest.Incarnation(1))
	r := w.Record("shop")
	name := observe.ScopeName(w.Panes("shop")[0].Labels.Instance, r.UID, 1)
	require.Equal(t, &spec.ScopeStatus{Name: name, ControlGroup: "/" + cgroup.Slice + "/" + name}, first.Status.Client.Scope)
	require.Len(t, w.bus.Units(), 1)
	unit := w.bus.Units()[0]
	assert.Equal(t, name, unit.Name)
	assert.Equal(t, []uint32{uint32(first.Status.Client.Pid)}, unit.PIDs)
	assert.Equal(t, uint64(60<<20), unit.Properties["MemoryMax"])
	assert.Equal(t, uint64(100), unit.Properties["TasksMax"])

	w.Kill(w.Client("shop").Process)
	w.WaitFor("shop", envtest.Incarnation(2))
	require.Len(t, w.bus.Units(), 2)
	assert.True(t, strings.HasSuffix(w.bus.Units()[1].Name, "-2.scope"))
	assert.Empty(t, w.Events("shop", spec.ReasonScopeFailed))
}

// Without a manager limits are refused, and put in force once there is one.
func TestLimitsWaitForTheManagerThatPutsThemInForce(t *testing.T) {
	w := makeScoped(t)
	w.Boot()
	w.Apply(w.limited("shop", "60Mi"))
	w.Run("other")
	blocked := w.WaitFor("shop", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonResourcesUnsupported),
		envtest.Condition(spec.ConditionStalled, metav1.ConditionTrue, spec.ReasonResourcesUnsupported))
	assert.Contains(t, blocked.Status.Decision.Message, "there is no bus of this user")
	assert.Contains(t, blocked.Status.Decision.Message, "onUnsupported: Ignore")
	assert.Empty(t, w.Launches("shop"))
	assert.Empty(t, w.Events("other", spec.ReasonScopeFailed), "who has no limits does as before")

	w.listen()
	w.WaitFor("shop", envtest.Incarnation(1))
	require.Len(t, w.bus.Units(), 1)
}

// A manager that can be reached and refuses is not asked over and over; one that came in
// its place is.
// A person who asks for another client must not lose the one that runs for limits that nobody
// can put in force.
func TestARestartWhoseLimitsCannotBePutInForceIsRefused(t *testing.T) {
	w := makeScoped(t)
	w.Boot()
	w.Run("shop")
	before := w.Client("shop").Process
	w.Apply(w.limited("shop", "64Mi"))
	w.Eventually("the limits are wanted", func() bool { return !w.Record("shop").Spec.Resources.Limits.None() })
	require.ErrorContains(t, w.Controller().Restart(t.Context(), "shop"), "spec.resources.limits cannot be put in force")
	assert.Equal(t, before, w.Client("shop").Process)
	assert.Nil(t, w.Record("shop").Intent, "nothing of it is left to be done later")

	w.listen()
	require.NoError(t, w.Controller().Restart(t.Context(), "shop"))
	w.WaitFor("shop", envtest.Incarnation(2))
}

func TestAManagerThatRefusesIsAskedAgainWhenItIsAnotherOne(t *testing.T) {
	w := makeScoped(t)
	w.listen()
	w.bus.Refuse("Unit", "org.freedesktop.DBus.Error.AccessDenied")
	w.Boot()
	w.Apply(w.limited("shop", "60Mi"))
	w.WaitFor("shop", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonResourcesUnsupported))
	w.Always(3*envtest.Resync, "it is not tried again", func() bool { return len(w.Launches("shop")) == 1 })

	require.NoError(t, w.bus.Close())
	w.listen()
	w.WaitFor("shop", envtest.Incarnation(1))
}

func TestWhereLimitsMayBeIgnoredTheClientRunsAndThatIsToldOnce(t *testing.T) {
	w := makeScoped(t)
	w.Boot()
	s := w.limited("shop", "60Mi")
	s.Spec.Resources.OnUnsupported = spec.UnsupportedIgnore
	w.Apply(s)
	w.WaitFor("shop", envtest.Incarnation(1))
	require.Len(t, w.Events("shop", spec.ReasonResourcesIgnored), 1)
	require.NoError(t, w.Controller().Restart(t.Context(), "shop"))
	w.WaitFor("shop", envtest.Incarnation(2))
	events := w.Events("shop", spec.ReasonResourcesIgnored)
	require.Len(t, events, 1)
	assert.LessOrEqual(t, events[0].Count, int32(1))
	assert.Nil(t, w.WaitFor("shop", envtest.Running).Status.Client.Scope)
}

func TestTheSettingsMayForbidScopes(t *testing.T) {
	w := makeScoped(t)
	w.listen()
	adjust := w.Adjust
	w.Adjust = func(o *controller.Options) {
		adjust(o)
		o.Initial.Scopes = spec.ScopesNever
	}
	w.Boot()
	w.Run("free")
	w.Apply(w.limited("shop", "60Mi"))
	blocked := w.WaitFor("shop", envtest.Because(spec.ReasonResourcesUnsupported))
	assert.Contains(t, blocked.Status.Decision.Message, "scopes: Never")
	assert.Empty(t, w.bus.Units())
}

// What has left the client's tree is in its scope all the same: a restart leaves and
// lists it, and it ends with the session.
func TestWhatHasLeftTheClientsTreeEndsWithTheSession(t *testing.T) {
	w := startScoped(t)
	for name, end := range map[string]func(name string){
		"suspended": func(name string) {
			s := w.Fake(name, envtest.Script{})
			s.Spec.Suspend = true
			w.Apply(s)
			w.WaitFor(name, envtest.Shows(spec.StatusSuspended))
		},
		"terminated": func(name string) {
			require.NoError(t, w.Controller().Terminate(t.Context(), name))
			w.WaitFor(name, envtest.Shows(spec.StatusTerminated))
		},
		"removed": func(name string) {
			w.Delete(name)
			w.WaitNoSession(name)
		},
	} {
		w.Run(name)
		escaped := w.escape(w.scope(name))
		require.NoError(t, w.Controller().Restart(t.Context(), name))
		s := w.WaitFor(name, envtest.Incarnation(2))
		assert.Equal(t, []int{escaped.PID}, s.Status.Client.Survivors, name)
		later := w.escape(w.scope(name))
		bystander := w.escape(observe.Scope{Name: "x", ControlGroup: w.foreign(name)})
		end(name)
		w.WaitGone(escaped)
		w.WaitGone(later)
		assert.Equal(t, observe.Running, process.State(bystander), "what is in nobody's scope, or in another session's, is nobody's")
	}
}

// foreign makes control groups that are not the session's, and gives one of them.
func (w *scoped) foreign(name string) string {
	w.Helper()
	uid := w.Record(name).UID
	group := ""
	for _, other := range []string{observe.ScopeName("another-instance", uid, 1), observe.ScopeName(w.Panes(name)[0].Labels.Instance, uid, 99)} {
		group = "/" + cgroup.Slice + "/" + other
		require.NoError(w, os.MkdirAll(filepath.Join(w.tree.Root, group), 0o700))
		require.NoError(w, os.WriteFile(filepath.Join(w.tree.Root, group, "cgroup.procs"), nil, 0o600))
	}
	return group
}

// A session that is down by a person's word has nothing left, also when its client had
// ended before, and whatever daemon finds it.
func TestWhatATerminatedSessionHasLeftIsEndedByTheNextDaemon(t *testing.T) {
	w := startScoped(t)
	w.Run("shop", "lives")
	scope := w.scope("shop")
	beside := w.escape(w.scope("lives"))
	require.NoError(t, w.Controller().Terminate(t.Context(), "shop"))
	w.WaitFor("shop", envtest.Shows(spec.StatusTerminated))
	w.Drop()
	left := w.escape(scope)
	w.Boot()
	w.WaitGone(left)
	w.WaitFor("shop", envtest.Shows(spec.StatusTerminated))
	assert.Equal(t, observe.Running, process.State(beside))
}

// Leftovers of a session that is gone are ended, but for what was left on purpose.
func TestWhatARemovedSessionHasLeftIsEndedByTheNextDaemon(t *testing.T) {
	w := startScoped(t)
	// A directory that is emptied holds every removal.
	w.Run("shop", "stays")
	kept := w.Fake("kept", envtest.Script{})
	kept.Spec.DeletionPolicy = spec.DeletionOrphan
	w.Apply(kept)
	w.WaitFor("kept", envtest.Incarnation(1))
	scope, orphanage := w.scope("shop"), w.scope("kept")
	client := w.Client("kept").Process
	w.Delete("shop")
	w.WaitNoSession("shop")
	w.Delete("kept")
	w.WaitNoSession("kept")
	w.Drop()
	left, orphan := w.escape(scope), w.escape(orphanage)
	w.Boot()
	w.WaitGone(left)
	w.Eventually("it is told", func() bool { return len(w.Events("", spec.ReasonLeftoversEnded)) == 1 })
	assert.Equal(t, observe.Running, process.State(orphan))
	assert.Equal(t, observe.Running, process.State(client))
	w.Kill(client)
	w.WaitGone(client)
}

// A daemon that a person has started in a session's terminal starts the tmux server, and
// what runs in that without a scope of its own, in that session's scope.
func TestAScopeThatHasTheTmuxServerInItIsLeftAlone(t *testing.T) {
	w := startScoped(t)
	w.Run("shop", "other", "lives", "more")
	server, client := w.Server(), w.Client("lives").Process
	w.enter(w.scope("shop"), server)
	w.enter(w.scope("other"), client)
	scopes := []observe.Scope{w.scope("shop"), w.scope("other"), w.scope("more")}
	require.NoError(t, w.Controller().Terminate(t.Context(), "other"))
	w.WaitFor("other", envtest.Shows(spec.StatusTerminated))
	for _, name := range []string{"shop", "other", "more"} {
		w.Delete(name)
		w.WaitNoSession(name)
	}
	w.Drop()
	left := w.escape(scopes[2])
	w.Boot()
	w.WaitGone(left)
	assert.Equal(t, server, w.Server())
	assert.Equal(t, observe.Running, process.State(client))
	w.WaitFor("lives", envtest.Incarnation(1))
	assert.Len(t, w.Events("", spec.ReasonLeftoversEnded), 1)
}

// Nothing but the session whose scope it was is concerned.
func TestAnOOMKillEndsItsOwnSessionAlone(t *testing.T) {
	w := startScoped(t)
	w.Apply(w.limited("shop", "60Mi"))
	w.WaitFor("shop", envtest.Incarnation(1))
	w.Run("beside")

	// A child: told once, and nothing else.
	w.oom(w.scope("shop"), 1)
	w.Eventually("the child's end is told", func() bool { return len(w.Events("shop", spec.ReasonOOMKilled)) == 1 })
	w.WaitFor("shop", envtest.Incarnation(1))

	// The next daemon knows which one that was, and tells of another.
	w.Drop()
	w.Boot()
	w.WaitFor("shop", envtest.Incarnation(1))
	w.oom(w.scope("shop"), 2)
	w.Eventually("the second child's end is told", func() bool { return w.Record("shop").Client.OOMKills == 2 })

	w.oom(w.scope("shop"), 3)
	w.Kill(w.Client("shop").Process)
	s := w.WaitFor("shop", envtest.Incarnation(2))
	end := s.Status.Client.LastTermination
	require.NotNil(t, end)
	assert.Equal(t, spec.ReasonOOMKilled, end.Reason)
	assert.Equal(t, 1, scrape(w.Env).value("muxlet_client_restarts_total", "reason", spec.ReasonOOMKilled))
	assert.Contains(t, end.Message, "its limit of 60Mi")
	assert.EqualValues(t, 1, s.Status.ConsecutiveDeaths, "it backs off as any other")
	assert.Len(t, w.Events("shop", spec.ReasonOOMKilled), 2)
	answer := httptest.NewRecorder()
	w.Controller().MetricsHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	assert.Contains(t, answer.Body.String(), `muxlet_client_restarts_total{reason="OOMKilled"} 1`)
	w.WaitFor("beside", envtest.Incarnation(1))
	assert.Empty(t, w.Events("beside", spec.ReasonOOMKilled))

	w.Kill(w.Client("shop").Process)
	s = w.WaitFor("shop", envtest.Incarnation(3))
	assert.NotEqual(t, spec.ReasonOOMKilled, s.Status.Client.LastTermination.Reason)
}
