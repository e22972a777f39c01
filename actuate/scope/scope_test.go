// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/hack/fakebus"
)

// patience is how long a test waits for what is there at once.
const patience = 30 * time.Second

func bus(t *testing.T) (*fakebus.Bus, actuate.ScopeOrder) {
	t.Helper()
	dir := t.TempDir()
	b, err := fakebus.Listen(filepath.Join(dir, "bus"), filepath.Join(dir, "muxlet.slice"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b, actuate.ScopeOrder{
		Name: "muxlet-i-u-1.scope", Bus: b.Address(), Slice: "muxlet.slice", Description: "muxlet session s", StopTimeout: 10 * time.Second,
	}
}

func enterIt(t *testing.T, b *fakebus.Bus, o actuate.ScopeOrder, within time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return Enter(ctx, o, func() (string, error) { return b.GroupOf(os.Getpid()), nil })
}

func TestAScopeIsMadeForTheCallerAloneAsItIsOrdered(t *testing.T) {
	b, o := bus(t)
	o.MemoryBytes, o.CPUMicroseconds, o.Tasks = 2<<30, 1_500_000, 200
	group, err := enterIt(t, b, o, patience)
	require.NoError(t, err)
	assert.Equal(t, "/muxlet.slice/"+o.Name, group)
	require.Len(t, b.Units(), 1)
	unit := b.Units()[0]
	assert.Equal(t, []uint32{uint32(os.Getpid())}, unit.PIDs)
	assert.Equal(t, map[string]any{
		"Description": "muxlet session s", "Slice": "muxlet.slice", "OOMPolicy": "continue", "CollectMode": "inactive-or-failed",
		"Before": []string{"muxlet.service"}, "SendSIGHUP": true, "TimeoutStopUSec": uint64(10_000_000),
		"MemoryMax": uint64(2 << 30), "MemorySwapMax": uint64(0), "CPUQuotaPerSecUSec": uint64(1_500_000), "TasksMax": uint64(200),
	}, unit.Properties)
}

func TestASystemdWithoutOOMPolicyOfScopesMakesOneWithout(t *testing.T) {
	b, o := bus(t)
	b.Refuse("OOMPolicy", "org.freedesktop.DBus.Error.PropertyReadOnly")
	_, err := enterIt(t, b, o, patience)
	require.NoError(t, err)
	assert.NotContains(t, b.Units()[0].Properties, "OOMPolicy")
	assert.NotContains(t, b.Units()[0].Properties, "MemoryMax", "what is not limited is not mentioned")
}

func TestARefusalIsToldFromABusThatIsNotThere(t *testing.T) {
	b, o := bus(t)
	b.Refuse("Unit", "org.freedesktop.DBus.Error.AccessDenied")
	_, err := enterIt(t, b, o, patience)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "The fake refuses "+o.Name)
	b.Refuse("Unit", "")
	b.End("failed")
	_, err = enterIt(t, b, o, patience)
	require.ErrorIs(t, err, ErrRefused)

	require.NoError(t, b.Close())
	_, err = enterIt(t, b, o, patience)
	require.ErrorContains(t, err, "reach the bus of this user")
	require.NotErrorIs(t, err, ErrRefused)
}

// systemd issue 36781: the job is done, and the process was not moved.
func TestAScopeCountsOnlyWhenTheProcessIsInIt(t *testing.T) {
	_, o := bus(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := Enter(ctx, o, func() (string, error) { return "/muxlet.slice/muxlet-tmux.service", nil })
	require.ErrorIs(t, err, ErrRefused)
}

func TestAWordThatIsLostTakesNobodyOutOfTheScope(t *testing.T) {
	b, o := bus(t)
	b.Mute()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	group, err := Enter(ctx, o, func() (string, error) { return "/muxlet.slice/" + o.Name, nil })
	require.NoError(t, err)
	assert.Equal(t, "/muxlet.slice/"+o.Name, group)
}

func TestAScopeOfTheNameThatIsStillBeingRemovedIsWaitedFor(t *testing.T) {
	b, o := bus(t)
	before := filepath.Join(b.Slice, o.Name)
	require.NoError(t, os.MkdirAll(before, 0o700))
	_, err := enterIt(t, b, o, 100*time.Millisecond)
	require.Error(t, err)
	gone := time.AfterFunc(50*time.Millisecond, func() { _ = os.Remove(before) })
	defer gone.Stop()
	_, err = enterIt(t, b, o, patience)
	require.NoError(t, err)
}

func TestWhoDoesNotAnswerHoldsNobody(t *testing.T) {
	b, o := bus(t)
	b.Mute()
	began := time.Now()
	_, err := enterIt(t, b, o, 50*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(began), patience)

	deaf, err := net.Listen("unix", filepath.Join(t.TempDir(), "deaf"))
	require.NoError(t, err)
	defer deaf.Close()
	o.Bus = "unix:path=" + deaf.Addr().String()
	_, err = enterIt(t, b, o, 50*time.Millisecond)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrRefused)
	assert.Less(t, time.Since(began), patience)
}
