// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package sysdbox boots a real systemd in namespaces, for tests: a machine of its own
// with users, a journal and logind, whose power can be cut. It needs root, systemd and
// cgroup2, and no more.
//
// A box has a disk: the machine's own root below, and a layer in memory above it that
// takes every write. The disk outlives boots, each of which has a boot id of its own.
//
// It never writes to the machine's own files, /proc/sys or /sys, and never speaks to
// its systemd. What it leaves there while it lives is one directory of cgroup2, named
// sysdbox-*. When the process that made a box dies, the box's processes and its disk are gone with
// it; the empty directory stays until the next box is made.
//
// Its processes are runs of the program that uses it, so main or TestMain starts with
//
//	sysdbox.Main()
//
// To try something by hand there is the command [boot]:
//
//	go run ./hack/sysdbox/boot -linger -copy bin/muxlet:/usr/local/bin/muxlet -- bash
//
// [boot]: https://pkg.go.dev/github.com/muxlet/muxlet/hack/sysdbox/boot
package sysdbox
