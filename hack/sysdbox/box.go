// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sysdbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// Boxes are slow where all are: these limits are for what never happens.
const (
	bootLimit = 2 * time.Minute
	stopLimit = time.Minute
)

// systemd is where PID 1 is, by distribution.
var systemd = []string{"/usr/lib/systemd/systemd", "/lib/systemd/systemd"}

// A Box is one machine: off when it is made, booted and switched off as often as
// wanted. It is for one goroutine, but for Command and what reads files.
type Box struct {
	name   string
	users  map[string]User
	keeper *process
	cgroup *cgroup
	// init is PID 1 while the box is on.
	init *process
	// exec is the cgroup of the commands that come from outside.
	exec   *os.File
	boots  int
	bootID string
	closed bool
	// console is what PID 1 said before it had a journal.
	console *bytes.Buffer
}

// Missing says what a box lacks on this machine, or is nil.
func Missing() error {
	if os.Geteuid() != 0 {
		return errors.New("a box with systemd needs root")
	}
	if _, err := find(systemd); err != nil {
		return fmt.Errorf("systemd is not installed: %w", err)
	}
	for _, program := range []string{"dbus-daemon", "nsenter", "setpriv", "systemctl", "loginctl", "runuser"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("a box with systemd needs %s: %w", program, err)
		}
	}
	for what, patterns := range parts {
		if err := anyOf(patterns); err != nil {
			return fmt.Errorf("a box with systemd needs %s: %w", what, err)
		}
	}
	_, err := cgroupRoot()
	return err
}

// parts that a user's manager needs, by what they are: patterns of their files.
var parts = map[string][]string{
	"libpam-systemd":    {"/usr/lib*/security/pam_systemd.so", "/usr/lib*/*/security/pam_systemd.so"},
	"dbus-user-session": {"/usr/lib/systemd/user/dbus.socket"},
}

func anyOf(patterns []string) error {
	for _, pattern := range patterns {
		if found, err := filepath.Glob(pattern); err != nil || len(found) > 0 {
			return err
		}
	}
	return fmt.Errorf("none of %s is there", strings.Join(patterns, ", "))
}

func find(paths []string) (string, error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("none of %s is there", strings.Join(paths, ", "))
}

// New makes a box with its disk and its users. It is off. Close ends it.
func New(users ...User) (*Box, error) {
	if !mainCalled {
		return nil, errors.New("main or TestMain must call sysdbox.Main first")
	}
	if err := Missing(); err != nil {
		return nil, err
	}
	b := &Box{users: map[string]User{}, console: &bytes.Buffer{}}
	var err error
	if b.cgroup, err = newCgroup(); err != nil {
		return nil, err
	}
	b.name = filepath.Base(b.cgroup.path)
	if err := b.startKeeper(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if err := b.fillDisk(users); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// stage is a run of this program as one of the box's own processes.
func stage(name string, namespaces uintptr) *exec.Cmd {
	return &exec.Cmd{Path: "/proc/self/exe", Args: []string{name}, Env: []string{}, SysProcAttr: &syscall.SysProcAttr{Cloneflags: namespaces}}
}

func (b *Box) startKeeper() error {
	cmd := stage(diskStage, unix.CLONE_NEWNS)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // it ends when this process does
		return fmt.Errorf("make the disk: %w", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make the disk: %w", err)
	}
	defer reader.Close()
	cmd.Stdout = writer
	b.keeper, err = spawn(cmd)
	_ = writer.Close()
	if err != nil {
		return fmt.Errorf("make the disk: %w", err)
	}
	if _, err := reader.Read(make([]byte, 1)); err != nil {
		return errors.New("make the disk: its keeper ended")
	}
	return nil
}

// Boot switches the box on, with a boot id of its own, and waits until systemd is up,
// and the managers of the lingering users are.
func (b *Box) Boot() error {
	if b.init != nil {
		return errors.New("the box is on")
	}
	if err := b.startInit(); err != nil {
		return errors.Join(err, b.PowerCut())
	}
	ctx, cancel := context.WithTimeout(context.Background(), bootLimit)
	defer cancel()
	if err := b.waitUntilUp(ctx); err != nil {
		return errors.Join(fmt.Errorf("boot the box: %w\n%s", err, b.console), b.PowerCut())
	}
	return nil
}

func (b *Box) startInit() error {
	program, err := find(systemd)
	if err != nil {
		return err
	}
	b.boots++
	b.bootID = uuid.NewString()
	machine := fmt.Sprintf("boot-%d", b.boots)
	group, err := b.cgroup.below(machine)
	if err != nil {
		return err
	}
	defer group.Close()
	disk, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", b.keeper.cmd.Process.Pid))
	if err != nil {
		return fmt.Errorf("find the disk: %w", err)
	}
	defer disk.Close()
	told, err := json.Marshal(order{Hostname: b.name, BootID: b.bootID, Argv: []string{
		program, "--unit=box.target", "--log-target=journal", "--show-status=0",
	}})
	if err != nil {
		return fmt.Errorf("write the order: %w", err)
	}
	cmd := stage(bootStage, unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC|unix.CLONE_NEWNET)
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
	cmd.Stdin, cmd.ExtraFiles = bytes.NewReader(told), []*os.File{disk}
	b.console.Reset()
	cmd.Stdout, cmd.Stderr = b.console, b.console
	if b.init, err = spawn(cmd); err != nil {
		return fmt.Errorf("start the box: %w", err)
	}
	b.exec, err = b.cgroup.below(machine + "/outside")
	return err
}

// waitUntilUp asks until systemd answers, and then waits for it.
func (b *Box) waitUntilUp(ctx context.Context) error {
	var state []byte
	for {
		select {
		case <-b.init.over:
			return errors.New("systemd ended")
		case <-ctx.Done():
			return fmt.Errorf("systemd is not up, it says %q", strings.TrimSpace(string(state)))
		case <-time.After(10 * time.Millisecond):
		}
		state, _ = b.Command(ctx, "root", "systemctl", "is-system-running", "--wait").Output()
		if word := strings.TrimSpace(string(state)); word == "running" || word == "degraded" {
			break
		}
	}
	for _, user := range b.users {
		if !user.Linger {
			continue
		}
		if err := b.waitForManager(ctx, user); err != nil {
			return err
		}
	}
	return nil
}

// waitForManager waits for a user's manager: what is booted is up before it is.
func (b *Box) waitForManager(ctx context.Context, user User) error {
	unit := fmt.Sprintf("user@%d.service", user.UID)
	for {
		state, _ := b.Command(ctx, "root", "systemctl", "is-active", unit).Output()
		word := strings.TrimSpace(string(state))
		if word == "active" {
			return nil
		}
		if word == "failed" || ctx.Err() != nil {
			log, _ := b.Command(context.Background(), "root", "journalctl", "-b", "--no-pager", "-n", "50").CombinedOutput()
			return fmt.Errorf("the manager of %s is %s\n%s", user.Name, word, log)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// BootID is that of the last boot.
func (b *Box) BootID() string { return b.bootID }

// PID is that of the box's PID 1, as this machine sees it.
func (b *Box) PID() int { return b.init.cmd.Process.Pid }

// PowerCut switches the box off as a cable that is pulled does: no process has a last
// word. The disk stays as it was seen at that instant, what was not synced included.
func (b *Box) PowerCut() error {
	if b.init == nil {
		return nil
	}
	b.init.end()
	return b.off()
}

// Poweroff switches the box off in order, as systemctl poweroff does.
func (b *Box) Poweroff() error {
	if b.init == nil {
		return errors.New("the box is off")
	}
	// SIGRTMIN+4, as systemd(1) has it; the kernel's first real-time signal is 32, the C library keeps two.
	if err := b.init.cmd.Process.Signal(syscall.Signal(34 + 4)); err != nil {
		return fmt.Errorf("switch the box off: %w", err)
	}
	select {
	case <-b.init.over:
		return b.off()
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("the box is not off after %s", stopLimit), b.PowerCut())
	}
}

func (b *Box) off() error {
	b.init = nil
	if b.exec != nil {
		_ = b.exec.Close()
		b.exec = nil
	}
	return b.cgroup.clear()
}

// Close ends the box and removes all that is of it. A second one does nothing.
func (b *Box) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	err := b.PowerCut()
	if b.keeper != nil {
		b.keeper.end()
	}
	return errors.Join(err, b.cgroup.remove())
}
