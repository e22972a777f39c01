// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sysdbox

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// User is a person of the box, with a home and a login shell.
type User struct {
	Name string
	// UID, and the id of the group of the same name.
	UID int
	// Linger starts the user's manager at boot, as loginctl enable-linger does.
	Linger bool
}

// masked are units that are no use in the box, slow, or would touch the real machine.
var masked = []string{
	"cryptsetup.target", "dev-hugepages.mount", "dev-mqueue.mount", "e2scrub_reap.service", "getty.target",
	"integritysetup.target", "kmod-static-nodes.service", "proc-sys-fs-binfmt_misc.automount", "sys-fs-fuse-connections.mount",
	"sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "systemd-binfmt.service",
	"systemd-firstboot.service", "systemd-hwdb-update.service", "systemd-machine-id-commit.service", "systemd-modules-load.service",
	"systemd-networkd.service", "systemd-networkd.socket", "systemd-pcrphase-sysinit.service", "systemd-pcrphase.service",
	"systemd-pstore.service", "systemd-random-seed.service", "systemd-remount-fs.service", "systemd-repart.service",
	"systemd-resolved.service", "systemd-sysctl.service", "systemd-sysusers.service", "systemd-timesyncd.service",
	"systemd-ask-password-wall.path", "systemd-ask-password-console.path", "systemd-udev-trigger.service", "systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket",
	"timers.target", "veritysetup.target",
}

// target is what a box boots: multi-user.target without what the machine below happens
// to have enabled, and a person's service manager.
const target = `[Unit]
Description=A box with systemd
Requires=multi-user.target dbus.socket systemd-logind.service systemd-user-sessions.service
Wants=dbus.service
After=multi-user.target dbus.service systemd-logind.service systemd-user-sessions.service
AllowIsolate=yes
`

// fillDisk writes what makes the disk a machine of its own.
func (b *Box) fillDisk(users []User) error {
	files := map[string]string{
		"/etc/machine-id":                strings.ReplaceAll(uuid.NewString(), "-", "") + "\n",
		"/etc/hostname":                  b.name + "\n",
		"/etc/fstab":                     "",
		"/etc/systemd/system/box.target": target,
		"/etc/systemd/journald.conf":     "[Journal]\nStorage=persistent\nSystemMaxUse=64M\nRateLimitIntervalSec=0\n",
		"/etc/systemd/logind.conf":       "[Login]\nUserStopDelaySec=1s\n",
		"/var/log/journal/.sysdbox":      "",
		"/etc/systemd/user.conf":         "",
		"/etc/systemd/system.conf":       "[Manager]\nDefaultTimeoutStopSec=10s\n",
	}
	for path, text := range files {
		if err := b.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	if err := b.disableAll(); err != nil {
		return err
	}
	// Who lingers on the machine below does not here.
	if err := os.RemoveAll(b.Path("/var/lib/systemd/linger")); err != nil {
		return fmt.Errorf("make the disk: %w", err)
	}
	for _, user := range users {
		if err := b.addUser(user); err != nil {
			return err
		}
	}
	return nil
}

// disableAll takes away what is enabled on the machine below, and masks what a box
// cannot have.
func (b *Box) disableAll() error {
	for _, pattern := range []string{"/etc/systemd/system/*.wants", "/etc/systemd/system/*.requires", "/etc/systemd/user/*.wants"} {
		enabled, err := filepath.Glob(b.Path(pattern))
		if err != nil {
			return fmt.Errorf("make the disk: %w", err)
		}
		for _, directory := range enabled {
			if err := os.RemoveAll(directory); err != nil {
				return fmt.Errorf("disable what is enabled below: %w", err)
			}
		}
	}
	// Generators make units of the machine's disks, terminals and init scripts.
	generators, err := filepath.Glob(b.Path("/usr/lib/systemd/system-generators/*"))
	if err != nil {
		return fmt.Errorf("make the disk: %w", err)
	}
	masks := make([]string, 0, len(masked)+len(generators))
	for _, generator := range generators {
		masks = append(masks, "/etc/systemd/system-generators/"+filepath.Base(generator))
	}
	for _, unit := range masked {
		masks = append(masks, "/etc/systemd/system/"+unit)
	}
	for _, path := range masks {
		if err := os.MkdirAll(b.Path(filepath.Dir(path)), 0o755); err != nil {
			return fmt.Errorf("mask %s: %w", path, err)
		}
		_ = os.Remove(b.Path(path)) // there is none, mostly
		if err := os.Symlink("/dev/null", b.Path(path)); err != nil {
			return fmt.Errorf("mask %s: %w", path, err)
		}
	}
	return nil
}

// addUser makes a user by files: useradd would ask the machine that it runs on.
func (b *Box) addUser(user User) error {
	home := "/home/" + user.Name
	lines := map[string]string{
		"/etc/passwd": fmt.Sprintf("%s:x:%d:%d::%s:/bin/bash\n", user.Name, user.UID, user.UID, home),
		"/etc/group":  fmt.Sprintf("%s:x:%d:\n", user.Name, user.UID),
		"/etc/shadow": user.Name + ":*:19000:0:99999:7:::\n",
	}
	for path, line := range lines {
		if err := appendTo(b.Path(path), line); err != nil {
			return err
		}
	}
	// What the machine below may have for somebody of that name is not this user's.
	if err := os.RemoveAll(b.Path(home)); err != nil {
		return fmt.Errorf("make the home of %s: %w", user.Name, err)
	}
	if err := os.MkdirAll(b.Path(home), 0o700); err != nil {
		return fmt.Errorf("make the home of %s: %w", user.Name, err)
	}
	if err := os.Lchown(b.Path(home), user.UID, user.UID); err != nil {
		return fmt.Errorf("make the home of %s: %w", user.Name, err)
	}
	b.users[user.Name] = user
	if user.Linger {
		return b.WriteFile("/var/lib/systemd/linger/"+user.Name, "", 0o644)
	}
	return nil
}

func appendTo(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("add to a file of the box: %w", err)
	}
	if _, err := file.WriteString(line); err != nil {
		_ = file.Close()
		return fmt.Errorf("add to a file of the box: %w", err)
	}
	return file.Close()
}

// Path of a file of the box's disk, for this process: also while the box is down. What
// is in /run, /tmp, /dev and /proc is not on the disk.
func (b *Box) Path(path string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", b.keeper.cmd.Process.Pid), root, path)
}

// WriteFile replaces a file on the box's disk in one step. The file and the directories
// that are made for it belong to the user whose home they are in, or to root.
func (b *Box) WriteFile(path, text string, mode fs.FileMode) error {
	return b.put(path, strings.NewReader(text), mode)
}

// CopyFile copies a file of this machine onto the box's disk, with its mode, in one
// step.
func (b *Box) CopyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy a file into the box: %w", err)
	}
	defer source.Close()
	st, err := source.Stat()
	if err != nil {
		return fmt.Errorf("copy a file into the box: %w", err)
	}
	return b.put(to, source, st.Mode().Perm())
}

func (b *Box) put(path string, text io.Reader, mode fs.FileMode) error {
	uid := b.ownerOf(path)
	if err := b.makeDirectories(filepath.Dir(path), uid); err != nil {
		return err
	}
	temporary := b.Path(path + ".sysdbox")
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("write a file of the box: %w", err)
	}
	_, err = io.Copy(file, text)
	for _, step := range []func() error{
		func() error { return file.Chmod(mode) },
		func() error { return file.Chown(uid, uid) },
		file.Close,
		func() error { return os.Rename(temporary, b.Path(path)) },
	} {
		if failed := step(); err == nil {
			err = failed
		}
	}
	if err != nil {
		return fmt.Errorf("write a file of the box: %w", err)
	}
	return nil
}

func (b *Box) makeDirectories(path string, uid int) error {
	if _, err := os.Stat(b.Path(path)); err == nil {
		return nil
	}
	if err := b.makeDirectories(filepath.Dir(path), uid); err != nil {
		return err
	}
	if err := os.Mkdir(b.Path(path), 0o755); err != nil {
		return fmt.Errorf("make a directory of the box: %w", err)
	}
	return os.Lchown(b.Path(path), uid, uid)
}

// ownerOf a file: the user whose home it is in, or root.
func (b *Box) ownerOf(path string) int {
	for _, user := range b.users {
		if strings.HasPrefix(path, "/home/"+user.Name+"/") {
			return user.UID
		}
	}
	return 0
}
