// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command boot boots a box with systemd (see package sysdbox) with a user alice (uid
// 2001), runs one command in it, and ends with the exit code of that. Nothing of the box
// is left afterwards. It needs root.
//
//	go run ./hack/sysdbox/boot [-linger] [-user root|alice] [-login] [-copy FROM:TO]… [-reboot] -- COMMAND [ARGUMENT…]
//
// A shell, and a script from outside:
//
//	go run ./hack/sysdbox/boot -linger -copy bin/muxlet:/usr/local/bin/muxlet -- bash
//	go run ./hack/sysdbox/boot -linger -copy bin/muxlet:/usr/local/bin/muxlet -- bash -s <script
//
// The command runs as alice with her XDG_RUNTIME_DIR and bus; without -linger her manager
// runs only while she is logged in, which -login does. With -reboot the command runs, the power
// is cut, and it runs again on the same disk, with BOOT=1 and BOOT=2 in its environment.
// The files of this machine are there, but for /tmp, /run and what else is mounted
// below its root: -copy brings such a file in.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/muxlet/muxlet/hack/sysdbox"
)

func main() {
	sysdbox.Main()
	err := run()
	var code *exec.ExitError
	if errors.As(err, &code) {
		os.Exit(max(code.ExitCode(), 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// pairs are the files to copy in.
type pairs []string

func (p *pairs) String() string { return strings.Join(*p, ",") }

func (p *pairs) Set(value string) error {
	if from, to, ok := strings.Cut(value, ":"); !ok || from == "" || !strings.HasPrefix(to, "/") {
		return errors.New("want FROM:/TO")
	}
	*p = append(*p, value)
	return nil
}

func run() error {
	var copies pairs
	linger := flag.Bool("linger", false, "alice's manager starts at boot")
	user := flag.String("user", "alice", "who runs the command: alice or root")
	login := flag.Bool("login", false, "the command runs in a login session")
	reboot := flag.Bool("reboot", false, "cut the power and run the command once more")
	flag.Var(&copies, "copy", "copy a file in, FROM:TO; may be repeated")
	flag.Parse()
	if flag.NArg() == 0 {
		return errors.New("name the command to run in the box, after --")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	box, err := sysdbox.New(sysdbox.User{Name: "alice", UID: 2001, Linger: *linger})
	if err != nil {
		return err
	}
	defer func() {
		if err := box.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "Warning:", err)
		}
	}()
	for _, pair := range copies {
		from, to, _ := strings.Cut(pair, ":")
		if err := box.CopyFile(from, to); err != nil {
			return err
		}
	}
	command := box.Command
	if *login {
		command = box.Login
	}
	boots := 1
	if *reboot {
		boots = 2
	}
	for n := 1; n <= boots; n++ {
		if err := boot(box); err != nil {
			return err
		}
		argv := append([]string{"env", fmt.Sprintf("BOOT=%d", n)}, flag.Args()...)
		cmd := command(ctx, *user, argv...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
		if err := box.PowerCut(); err != nil {
			return err
		}
	}
	return nil
}

func boot(box *sysdbox.Box) error {
	start := time.Now()
	if err := box.Boot(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "The box is up after %s, with boot id %s.\n", time.Since(start).Round(time.Millisecond), box.BootID())
	return nil
}
