// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/hack/fakebus"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const testScope = "muxlet-1257-" + testUID + "-3.scope"

// scoped is a launch whose client is to have a scope of its own; executed is the receipt
// that was there when the client would have been executed.
func scoped(t *testing.T) (o Options, p *pane, bus *fakebus.Bus, executed *observe.Receipt) {
	t.Helper()
	p = newPane(t, "/bin/true")
	bus, err := fakebus.Listen(filepath.Join(p.runtime, "bus"), filepath.Join(p.runtime, "muxlet.slice"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = bus.Close() })
	p.stored.Order.Scope = &actuate.ScopeOrder{Name: testScope, Bus: bus.Address(), Slice: "muxlet.slice"}
	executed = &observe.Receipt{}
	o = Options{
		StateDir: p.state, RuntimeDir: p.runtime, UID: testUID, Attempt: testAttempt, Now: time.Now,
		ReadOrder:    func(string) (actuate.Order, actuate.Fence, error) { return p.stored.Order, actuate.FenceOpen, nil },
		ControlGroup: func() (string, error) { return bus.GroupOf(os.Getpid()), nil },
		Exec: func(string, []string, []string) error {
			*executed = p.receipt()
			return os.ErrPermission
		},
	}
	t.Chdir(p.work)
	return o, p, bus, executed
}

func TestTheScopeIsEnteredBeforeAnythingIsSaidToBeExecuted(t *testing.T) {
	o, _, bus, executed := scoped(t)
	require.Error(t, Run(o))
	require.Len(t, bus.Units(), 1)
	assert.Equal(t, observe.StageExec, executed.Stage)
	assert.Equal(t, observe.Scope{Name: testScope, ControlGroup: "/muxlet.slice/" + testScope}, executed.Scope)
	assert.Empty(t, executed.ScopeProblem)
}

func TestALaunchThatFailsHasMadeNoScope(t *testing.T) {
	o, p, bus, _ := scoped(t)
	p.stored.Order.Command = []string{"/does/not/exist"}
	require.Error(t, Run(o))
	assert.Equal(t, spec.ReasonCommandNotFound, p.receipt().Reason)
	assert.Empty(t, bus.Units())
}

func TestWithoutItsLimitsAClientIsExecutedOnlyWhereTheyMayBeIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*actuate.ScopeOrder, *fakebus.Bus)
		// message of what is not put in force; file and lookedFor of a failure.
		message   string
		file      bool
		lookedFor string
	}{
		"no bus": {func(o *actuate.ScopeOrder, _ *fakebus.Bus) {
			o.Bus, o.Problem = "", "there is no bus of this user at /x"
		},
			"there is no bus of this user at /x", false, ""},
		"nobody listens": {func(_ *actuate.ScopeOrder, b *fakebus.Bus) { _ = b.Close() }, "reach the bus of this user", true, ""},
		"refused": {func(_ *actuate.ScopeOrder, b *fakebus.Bus) {
			b.Refuse("Unit", "org.freedesktop.DBus.Error.AccessDenied")
		},
			"The fake refuses " + testScope, true, testScope},
	} {
		t.Run(name, func(t *testing.T) {
			o, p, bus, executed := scoped(t)
			order := p.stored.Order.Scope
			order.Tasks = 100
			c.change(order, bus)
			require.Error(t, Run(o))
			assert.Equal(t, observe.StageExec, executed.Stage)
			assert.Contains(t, executed.ScopeProblem, c.message)
			assert.Zero(t, executed.Scope)

			require.NoError(t, os.Remove(ReceiptPath(p.state, testAttempt)))
			*executed = observe.Receipt{}
			order.Required = true
			require.ErrorContains(t, Run(o), c.message)
			assert.Zero(t, *executed, "nothing is executed without what is required")
			r := p.receipt()
			assert.Equal(t, observe.StageFailed, r.Stage)
			assert.Equal(t, spec.ReasonResourcesUnsupported, r.Reason)
			assert.Contains(t, r.Message, "onUnsupported: Ignore")
			assert.Equal(t, c.lookedFor, r.LookedFor)
			if c.file {
				assert.Equal(t, filepath.Join(p.runtime, "bus"), r.File)
			}
		})
	}
}

func TestABusThatHangsHoldsAClientWithoutLimitsForAMomentOnly(t *testing.T) {
	o, _, bus, executed := scoped(t)
	bus.Mute()
	began := time.Now()
	require.Error(t, Run(o))
	assert.Equal(t, observe.StageExec, executed.Stage)
	assert.Contains(t, executed.ScopeProblem, "did not answer in time")
	assert.GreaterOrEqual(t, time.Since(began), scopePatience)
}
