// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sysdbox

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
)

// Command runs a program in the box as a user: root, or one that the box was made with. It is
// no login: logind has no session for it, and it counts as nobody's. It has the user's
// XDG_RUNTIME_DIR and bus, which are there while the user's manager is. It ends when the
// context does, its children excepted.
func (b *Box) Command(ctx context.Context, user string, argv ...string) *exec.Cmd {
	u, home := User{Name: "root"}, "/root"
	if user != "root" {
		known, ok := b.users[user]
		if !ok {
			return &exec.Cmd{Path: user, Err: fmt.Errorf("the box has no user %s", user)}
		}
		u, home = known, "/home/"+user
	}
	id := strconv.Itoa(u.UID)
	runtime := "/run/user/" + id
	words := []string{
		"setpriv", "--reuid", id, "--regid", id, "--init-groups", "--pdeathsig", "KILL",
		"env", "-i", "-C", home, "HOME=" + home, "USER=" + user, "LOGNAME=" + user, "SHELL=/bin/bash", "LANG=C.UTF-8", "TERM=xterm-256color",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	if u.UID != 0 {
		words = append(words, "XDG_RUNTIME_DIR="+runtime, "DBUS_SESSION_BUS_ADDRESS=unix:path="+runtime+"/bus")
	}
	return b.enter(ctx, append(words, argv...)...)
}

// Login runs a program in a login of the user: logind has a session for it, and it ends
// with the program, which has the environment of the login shell.
func (b *Box) Login(ctx context.Context, user string, argv ...string) *exec.Cmd {
	words := []string{"setpriv", "--pdeathsig", "KILL", "runuser", "-l", user, "-s", "/bin/sh", "-c", `exec "$0" "$@"`, "--"}
	return b.enter(ctx, append(words, argv...)...)
}

// enter runs a program in the box's namespaces, in a cgroup of the box that its systemd
// does not know.
func (b *Box) enter(ctx context.Context, argv ...string) *exec.Cmd {
	if b.init == nil {
		return &exec.Cmd{Path: argv[0], Err: fmt.Errorf("the box is off")}
	}
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(b.PID()), "-a", "--"}, argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(b.exec.Fd())}
	return cmd
}
