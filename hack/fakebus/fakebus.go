// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package fakebus is a bus of one user with a systemd manager on it, for tests: it makes
// transient scopes as plain directories, with the processes that are put into them in a
// file cgroup.procs. It moves no process, and knows nothing of what processes start.
package fakebus

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
)

// Unit is a scope that was asked for.
type Unit struct {
	Name string
	// PIDs that were put into it, and its other properties.
	PIDs       []uint32
	Properties map[string]any
}

// Bus is the fake.
type Bus struct {
	// Socket is the path of its socket, Slice the directory below which it makes scopes.
	Socket, Slice string

	listener net.Listener
	mu       sync.Mutex
	units    []Unit
	refusals map[string]string
	mute     bool
	result   string
	conns    map[net.Conn]bool
}

// Listen starts a bus; Close ends it.
func Listen(socket, slice string) (*Bus, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	b := &Bus{Socket: socket, Slice: slice, listener: listener, refusals: map[string]string{}, result: "done", conns: map[net.Conn]bool{}}
	go b.accept()
	return b, nil
}

// Address is that of the bus, for a client.
func (b *Bus) Address() string { return "unix:path=" + b.Socket }

// Close ends the bus, and removes its socket.
func (b *Bus) Close() error {
	err := b.listener.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.conns {
		_ = conn.Close()
	}
	return err
}

// Units are those that were made.
func (b *Bus) Units() []Unit {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Unit(nil), b.units...)
}

// Mute has the manager answer nothing more.
func (b *Bus) Mute() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mute = true
}

// Refuse has each scope with a property refused, with an error of that name; with the
// name Unit every scope. An empty error ends that.
func (b *Bus) Refuse(property, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusals[property] = name
}

// End has each job end with a result; done is the good one.
func (b *Bus) End(result string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.result = result
}

// GroupOf is the control group, below Slice's parent, that pid was put into last; empty
// when it was put into none.
func (b *Bus) GroupOf(pid int) string { return GroupOf(b.Slice, pid) }

// GroupOf is Bus.GroupOf for a process that has no Bus.
func GroupOf(slice string, pid int) string {
	found, _ := filepath.Glob(filepath.Join(slice, "*.scope", "cgroup.procs"))
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains("\n"+string(text), fmt.Sprintf("\n%d\n", pid)) {
			return "/" + filepath.Join(filepath.Base(slice), filepath.Base(filepath.Dir(path)))
		}
	}
	return ""
}

func (b *Bus) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		b.conns[conn] = true
		b.mu.Unlock()
		go func() {
			defer conn.Close()
			_ = b.serve(conn)
		}()
	}
}

// serve speaks with one client: the handshake of the D-Bus specification, with every
// client believed, then messages.
func (b *Bus) serve(conn net.Conn) error {
	in := bufio.NewReader(conn)
	if err := handshake(conn, in); err != nil {
		return err
	}
	serial := uint32(0)
	send := func(m *dbus.Message, headers map[dbus.HeaderField]any, body ...any) error {
		serial++
		m.Headers = map[dbus.HeaderField]dbus.Variant{}
		for field, value := range headers {
			m.Headers[field] = dbus.MakeVariant(value)
		}
		if m.Body = body; len(body) > 0 {
			m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
		}
		var text bytes.Buffer
		if err := m.EncodeTo(&text, binary.LittleEndian); err != nil {
			return err
		}
		// The library numbers only what it sends itself: bytes 8 to 11 of the header.
		binary.LittleEndian.PutUint32(text.Bytes()[8:], serial)
		_, err := conn.Write(text.Bytes())
		return err
	}
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return err
		}
		if err := b.answer(call, send); err != nil {
			return err
		}
	}
}

func handshake(conn net.Conn, in *bufio.Reader) error {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		answer := "ERROR\r\n"
		switch words := strings.Fields(strings.TrimPrefix(line, "\x00")); {
		case len(words) == 0:
		case words[0] == "BEGIN":
			return nil
		case words[0] == "AUTH" && len(words) == 1:
			answer = "REJECTED EXTERNAL\r\n"
		case words[0] == "AUTH":
			answer = "OK 0123456789abcdef0123456789abcdef\r\n"
		case words[0] == "NEGOTIATE_UNIX_FD":
			answer = "AGREE_UNIX_FD\r\n"
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return err
		}
	}
}

type sender = func(m *dbus.Message, headers map[dbus.HeaderField]any, body ...any) error

func (b *Bus) answer(call *dbus.Message, send sender) error {
	member, _ := call.Headers[dbus.FieldMember].Value().(string)
	to := map[dbus.HeaderField]any{dbus.FieldReplySerial: call.Serial(), dbus.FieldSender: "org.freedesktop.DBus"}
	switch member {
	case "Hello":
		return send(&dbus.Message{Type: dbus.TypeMethodReply}, to, ":1.1")
	case "StartTransientUnit":
		return b.start(call, to, send)
	}
	return send(&dbus.Message{Type: dbus.TypeMethodReply}, to)
}

func (b *Bus) start(call *dbus.Message, to map[dbus.HeaderField]any, send sender) error {
	unit, refusal, err := b.unitOf(call)
	b.mu.Lock()
	mute, result := b.mute, b.result
	b.mu.Unlock()
	switch {
	case mute:
		return nil
	case err != nil:
		return err
	case refusal != "":
		to[dbus.FieldErrorName] = refusal
		return send(&dbus.Message{Type: dbus.TypeError}, to, "The fake refuses "+unit.Name+".")
	case result == "done":
		if err := b.put(unit); err != nil {
			return err
		}
	}
	job := dbus.ObjectPath("/org/freedesktop/systemd1/job/7")
	if err := send(&dbus.Message{Type: dbus.TypeMethodReply}, to, job); err != nil {
		return err
	}
	return send(&dbus.Message{Type: dbus.TypeSignal}, map[dbus.HeaderField]any{
		dbus.FieldPath: dbus.ObjectPath("/org/freedesktop/systemd1"), dbus.FieldInterface: "org.freedesktop.systemd1.Manager",
		dbus.FieldMember: "JobRemoved", dbus.FieldSender: "org.freedesktop.systemd1",
	}, uint32(7), job, unit.Name, result)
}

// unitOf reads what is asked for, and the name of the error by which it is refused.
func (b *Bus) unitOf(call *dbus.Message) (unit Unit, refusal string, err error) {
	var mode string
	var given []struct {
		Name  string
		Value dbus.Variant
	}
	if len(call.Body) < 3 {
		return unit, "", errors.New("StartTransientUnit needs four arguments")
	}
	if err := dbus.Store(call.Body[:3], &unit.Name, &mode, &given); err != nil {
		return unit, "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	refusal = b.refusals["Unit"]
	unit.Properties = map[string]any{}
	for _, p := range given {
		if name := b.refusals[p.Name]; name != "" {
			refusal = name
		}
		if pids, ok := p.Value.Value().([]uint32); ok && p.Name == "PIDs" {
			unit.PIDs = pids
			continue
		}
		unit.Properties[p.Name] = p.Value.Value()
	}
	if _, err := os.Stat(filepath.Join(b.Slice, unit.Name)); err == nil {
		refusal = "org.freedesktop.systemd1.UnitExists"
	}
	return unit, refusal, nil
}

// put makes the control group.
func (b *Bus) put(unit Unit) error {
	dir := filepath.Join(b.Slice, unit.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var pids strings.Builder
	for _, pid := range unit.PIDs {
		fmt.Fprintln(&pids, pid)
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.events"), []byte("oom 0\noom_kill 0\n"), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(pids.String()), 0o600); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.units = append(b.units, unit)
	return nil
}
