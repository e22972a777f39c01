// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package scope puts the process that calls it into a control group of its own, by
// asking the systemd manager of its user for a transient scope. It never moves another
// process, and touches no unit that it has not made.
package scope

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/muxlet/muxlet/actuate"
)

// The names of systemd's manager; see org.freedesktop.systemd1(5).
const (
	service   = "org.freedesktop.systemd1"
	object    = dbus.ObjectPath("/org/freedesktop/systemd1")
	manager   = "org.freedesktop.systemd1.Manager"
	jobSignal = manager + ".JobRemoved"

	errExists   = "org.freedesktop.systemd1.UnitExists"
	errReadOnly = "org.freedesktop.DBus.Error.PropertyReadOnly"
)

// existsPoll is the time between two tries while a scope of the name is still being
// removed.
const existsPoll = 20 * time.Millisecond

// ErrRefused is matched by an error of the manager: it can be reached, and does not do
// what it is asked for.
var ErrRefused = errors.New("systemd refuses")

// Enter puts this process into the scope that o describes, and returns once it is
// there: every process that it starts from then on is in it too. own reads the control
// group of this process. It returns at the end of ctx at the latest, and has then no
// scope for certain, or one that it may yet be moved to.
func Enter(ctx context.Context, o actuate.ScopeOrder, own func() (string, error)) (group string, err error) {
	type outcome struct {
		group string
		err   error
	}
	done := make(chan outcome, 1)
	// Neither a bus nor a driver that hangs may hold a start: whoever waits for it goes on.
	go func() {
		group, err := enter(ctx, o, own)
		done <- outcome{group, err}
	}()
	var out outcome
	select {
	case out = <-done:
	case <-ctx.Done():
		out.err = fmt.Errorf("enter the scope: the systemd manager of this user did not answer in time: %w", ctx.Err())
	}
	if out.err == nil || errors.Is(out.err, ErrRefused) {
		return out.group, out.err
	}
	// The word that it is done may be late or lost, and the process be there all the same: its
	// limits are in force, and its scope is to be known.
	if group, err := own(); err == nil && path.Base(group) == o.Name {
		return group, nil
	}
	return "", out.err
}

func enter(ctx context.Context, o actuate.ScopeOrder, own func() (string, error)) (string, error) {
	conn, err := connect(ctx, o.Bus)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	signals := make(chan *dbus.Signal, 64)
	conn.Signal(signals)
	if err := conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(service), dbus.WithMatchObjectPath(object),
		dbus.WithMatchInterface(manager), dbus.WithMatchMember("JobRemoved")); err != nil {
		return "", fmt.Errorf("enter the scope: listen to systemd: %w", err)
	}
	job, err := start(ctx, conn, o)
	if err != nil {
		return "", err
	}
	if err := wait(ctx, signals, job); err != nil {
		return "", err
	}
	// systemd may say that all went well and have moved nobody (systemd issue 36781).
	group, err := own()
	if err != nil {
		return "", err
	}
	if path.Base(group) != o.Name {
		return "", fmt.Errorf("enter the scope: %w: it says that it has made %s, and this process is in %s", ErrRefused, o.Name, group)
	}
	return group, nil
}

// connect is a connection to the bus of this user.
func connect(ctx context.Context, address string) (*dbus.Conn, error) {
	conn, err := dbus.Dial(address, dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("reach the bus of this user: %w", err)
	}
	err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))})
	if err == nil {
		err = conn.Hello()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("reach the bus of this user: %w", err)
	}
	return conn, nil
}

// start asks for the scope and gives the job that makes it. A scope of the name may be
// on its way out: that of an attempt with the same incarnation which executed nothing.
func start(ctx context.Context, conn *dbus.Conn, o actuate.ScopeOrder) (job dbus.ObjectPath, err error) {
	properties := propertiesOf(o, os.Getpid())
	for {
		err = conn.Object(service, object).CallWithContext(ctx, manager+".StartTransientUnit", 0,
			o.Name, "fail", properties, []auxiliary{}).Store(&job)
		var refusal dbus.Error
		switch {
		case err == nil:
			return job, nil
		case !errors.As(err, &refusal) || ctx.Err() != nil:
			return "", fmt.Errorf("ask systemd for the scope: %w", err)
		case refusal.Name == errReadOnly && properties[0].Name == oomPolicy:
			// Before systemd 253, unless somebody has brought it back, scopes have no
			// OOMPolicy.
			properties = properties[1:]
		case refusal.Name != errExists:
			return "", fmt.Errorf("ask systemd for the scope: %w: %s", ErrRefused, messageOf(refusal))
		default:
			select {
			case <-ctx.Done():
				return "", fmt.Errorf("ask systemd for the scope: %w: %s is still there", ErrRefused, o.Name)
			case <-time.After(existsPoll):
			}
		}
	}
}

func messageOf(e dbus.Error) string {
	if len(e.Body) > 0 {
		if text, ok := e.Body[0].(string); ok {
			return strings.TrimSuffix(text, ".")
		}
	}
	return e.Name
}

// wait waits for the end of the job.
func wait(ctx context.Context, signals <-chan *dbus.Signal, job dbus.ObjectPath) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the scope: %w", ctx.Err())
		case s, open := <-signals:
			if !open {
				return errors.New("wait for the scope: the bus has closed the connection")
			}
			var id uint32
			var removed dbus.ObjectPath
			var unit, result string
			if s.Name != jobSignal || dbus.Store(s.Body, &id, &removed, &unit, &result) != nil || removed != job {
				continue
			}
			if result != "done" {
				return fmt.Errorf("wait for the scope: %w: the job ended with %q", ErrRefused, result)
			}
			return nil
		}
	}
}

// property and auxiliary are arguments of StartTransientUnit.
type property struct {
	Name  string
	Value dbus.Variant
}

type auxiliary struct {
	Name       string
	Properties []property
}

// oomPolicy is the property that older versions of systemd do not know; it stands first.
const oomPolicy = "OOMPolicy"

// propertiesOf is what the scope is to be. OOMPolicy continue: a child that the kernel
// ends for want of memory ends nobody else. The daemon's unit is stopped before the
// scopes are (Before=): else it would see its clients end at each shutdown, and start
// others.
func propertiesOf(o actuate.ScopeOrder, pid int) []property {
	of := func(name string, value any) property { return property{name, dbus.MakeVariant(value)} }
	properties := []property{
		of(oomPolicy, "continue"), of("Description", o.Description), of("Slice", o.Slice), of("CollectMode", "inactive-or-failed"),
		of("PIDs", []uint32{uint32(pid)}), of("Before", []string{"muxlet.service"}), of("SendSIGHUP", true),
		of("TimeoutStopUSec", uint64(max(o.StopTimeout, time.Second).Microseconds())),
	}
	if o.MemoryBytes > 0 {
		// Swap would only put the end off, and make the machine slow for everybody.
		properties = append(properties, of("MemoryMax", o.MemoryBytes), of("MemorySwapMax", uint64(0)))
	}
	if o.CPUMicroseconds > 0 {
		properties = append(properties, of("CPUQuotaPerSecUSec", o.CPUMicroseconds))
	}
	if o.Tasks > 0 {
		properties = append(properties, of("TasksMax", o.Tasks))
	}
	return properties
}
