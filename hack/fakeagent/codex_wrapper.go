// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// wrapperMain is the script of npm under node: the pane's process, which has one
// native child and ends as that does.
func wrapperMain(root string, args []string) {
	config := codexHome()
	cmd := exec.Command(filepath.Join(root, "lib/codex"), args[1:]...)
	cmd.Env = append(os.Environ(), codexHookMarkers(root)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	if err := cmd.Start(); err != nil {
		fatal(err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	if c, _ := loadControl(root, config); c.WrapperStays {
		select {}
	}
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) {
		fatal(err)
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		dieBy(status.Signal())
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// dieBy ends this process by a signal, for whoever waits for it to see.
func dieBy(s syscall.Signal) {
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s)
	select {}
}

func codexHome() string {
	if home := os.Getenv("CODEX_HOME"); home != "" {
		return home
	}
	return filepath.Join(os.Getenv("HOME"), ".codex")
}

// codexHookMarkers are what the wrapper adds: Codex, its tools and its hooks have
// them.
func codexHookMarkers(root string) []string {
	return []string{"CODEX_MANAGED_BY_NPM=1", "CODEX_MANAGED_PACKAGE_ROOT=" + root}
}
