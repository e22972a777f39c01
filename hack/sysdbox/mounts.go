// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sysdbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The disk as its keeper sees it: a file system in memory, with the layer that takes
// the writes and, merged with the machine's root, the root of the box.
const (
	diskMount = "/tmp"
	layer     = diskMount + "/layer"
	root      = diskMount + "/root"
)

// BootIDFile has the boot id in the box. It lies above the kernel's, and not in the new
// /proc that a unit with ProtectKernelTunables= and the like gets: such a unit wants
// BindReadOnlyPaths=/run/boot_id:/proc/sys/kernel/random/boot_id.
const BootIDFile = "/run/boot_id"

// keepDisk mounts the box's disk in a mount namespace of its own, says so by a byte on
// standard output, and keeps it until standard input ends. The layer is in memory since an overlay's
// layer below its own lower directory is refused (ELOOP), and so that nothing of it
// outlives the keeper.
func keepDisk() error {
	steps := []mount{
		{to: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
		{from: "sysdbox", to: diskMount, kind: "tmpfs", data: "mode=0755"},
	}
	if err := mountAll(steps); err != nil {
		return err
	}
	for _, directory := range []string{layer, diskMount + "/work", root} {
		if err := os.Mkdir(directory, 0o755); err != nil {
			return fmt.Errorf("make the disk: %w", err)
		}
	}
	options := "lowerdir=/,upperdir=" + layer + ",workdir=" + diskMount + "/work"
	if err := mountAll([]mount{{from: "overlay", to: root, kind: "overlay", data: options}}); err != nil {
		return err
	}
	if _, err := os.Stdout.Write([]byte{'.'}); err != nil {
		return fmt.Errorf("say that the disk is there: %w", err)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// mount is one call of mount(2), and the flags that a second call adds: a bind mount
// takes none at once.
type mount struct {
	from, to, kind string
	flags          uintptr
	data           string
	then           uintptr
}

func mountAll(mounts []mount) error {
	for _, m := range mounts {
		if err := unix.Mount(m.from, m.to, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.to, err)
		}
		if m.then == 0 {
			continue
		}
		if err := unix.Mount("", m.to, "", unix.MS_REMOUNT|unix.MS_BIND|m.then, ""); err != nil {
			return fmt.Errorf("protect %s: %w", m.to, err)
		}
	}
	return nil
}

// mountMachine makes the directory root the machine that systemd boots, and the root of
// this process. /proc/sys, sysrq-trigger and /sys are the real machine's: they are
// read-only, or PID 1 and systemd-sysctl would change it.
func mountMachine(bootID string) error {
	const quiet = unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV
	in := func(path string) string { return filepath.Join(root, path) }
	bind := func(path string, then uintptr) mount {
		return mount{from: path, to: in(path), flags: unix.MS_BIND, then: then}
	}
	protect := func(path string) mount {
		return mount{from: in(path), to: in(path), flags: unix.MS_BIND, then: unix.MS_RDONLY | quiet}
	}
	mounts := []mount{{from: "proc", to: in("/proc"), kind: "proc", flags: quiet}, protect("/proc/sys")}
	if _, err := os.Stat("/proc/sysrq-trigger"); err == nil { // not every kernel has it
		mounts = append(mounts, protect("/proc/sysrq-trigger"))
	}
	err := mountAll(append(mounts, []mount{
		{from: "sysfs", to: in("/sys"), kind: "sysfs", flags: quiet | unix.MS_RDONLY},
		{from: "cgroup2", to: in("/sys/fs/cgroup"), kind: "cgroup2", flags: quiet},
		{from: "tmpfs", to: in("/run"), kind: "tmpfs", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=0755"},
		{from: "tmpfs", to: in("/tmp"), kind: "tmpfs", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=1777"},
		{from: "tmpfs", to: in("/dev"), kind: "tmpfs", flags: unix.MS_NOSUID, data: "mode=0755"},
	}...))
	if err != nil {
		return err
	}
	if err := makeDev(in, bind); err != nil {
		return err
	}
	if err := os.WriteFile(in(BootIDFile), []byte(bootID+"\n"), 0o444); err != nil {
		return fmt.Errorf("write the boot id: %w", err)
	}
	random := mount{from: in(BootIDFile), to: in("/proc/sys/kernel/random/boot_id"), flags: unix.MS_BIND}
	if err := mountAll([]mount{random}); err != nil {
		return err
	}
	return enterRoot()
}

// makeDev fills /dev. There is no kmsg: the log of the kernel is the real machine's.
func makeDev(in func(string) string, bind func(string, uintptr) mount) error {
	for _, directory := range []string{"pts", "shm", "mqueue"} {
		if err := os.Mkdir(in("/dev/"+directory), 0o755); err != nil {
			return fmt.Errorf("make /dev: %w", err)
		}
	}
	mounts := []mount{
		{from: "devpts", to: in("/dev/pts"), kind: "devpts", flags: unix.MS_NOSUID | unix.MS_NOEXEC, data: "newinstance,ptmxmode=0666,mode=620,gid=5"},
		{from: "tmpfs", to: in("/dev/shm"), kind: "tmpfs", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=1777"},
	}
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := os.WriteFile(in("/dev/"+device), nil, 0o666); err != nil {
			return fmt.Errorf("make /dev: %w", err)
		}
		mounts = append(mounts, bind("/dev/"+device, 0))
	}
	links := map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
	for name, target := range links {
		if err := os.Symlink(target, in("/dev/"+name)); err != nil {
			return fmt.Errorf("make /dev: %w", err)
		}
	}
	return mountAll(mounts)
}

// enterRoot makes root the root, and lets mounts propagate below it: without that, what
// systemd mounts for a unit (LoadCredential=) does not reach the unit.
func enterRoot() error {
	if err := unix.Chdir(root); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	return mountAll([]mount{{to: "/", flags: unix.MS_REC | unix.MS_SHARED}})
}
