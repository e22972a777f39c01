// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sysdbox

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// The names that the box's own processes are started by.
const (
	diskStage = "sysdbox-disk"
	bootStage = "sysdbox-boot"
)

// mainCalled is true once Main was: without it a box's process would be another run
// of the tests.
var mainCalled bool

// Main becomes one of the box's own processes when the program was started as one, and
// returns at once otherwise.
func Main() {
	mainCalled = true
	var err error
	switch os.Args[0] {
	case diskStage:
		err = keepDisk()
	case bootStage:
		err = becomeInit()
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// order is what the process that becomes PID 1 is told, on its standard input.
type order struct {
	Hostname string
	// BootID is the boot id that everything in the box reads.
	BootID string
	Argv   []string
}

// becomeInit makes the rest of the machine around this process, and executes systemd.
// Standard input is the order, descriptor 3 the mount namespace of the disk. The
// process is in the box's cgroup already: a cgroup namespace is rooted where the process
// that makes it is.
func becomeInit() error {
	runtime.LockOSThread() // what follows changes one thread, and execve keeps that one
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP | unix.CLONE_FS); err != nil {
		return fmt.Errorf("make a cgroup namespace: %w", err)
	}
	if err := unix.Setns(3, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the disk's mount namespace: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Sethostname([]byte(o.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := mountMachine(o.BootID); err != nil {
		return err
	}
	if err := toStdin("/dev/null"); err != nil {
		return err
	}
	env := []string{"container=sysdbox", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	return fmt.Errorf("execute %s: %w", o.Argv[0], unix.Exec(o.Argv[0], o.Argv, env))
}

func toStdin(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if err := unix.Dup3(fd, 0, 0); err != nil {
		return fmt.Errorf("replace standard input: %w", err)
	}
	return nil
}
