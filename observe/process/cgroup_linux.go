// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Cgroup is the path of the control group by which systemd knows a process: that of the
// unified hierarchy, which it keeps in step with its own where it has both; its own where a
// process has no place in the other (cgroups(7), /proc/PID/cgroup).
func Cgroup(pid int) (string, error) {
	content, err := os.ReadFile(procPath(pid, "cgroup"))
	if err != nil {
		return "", fmt.Errorf("read control group: %w", err)
	}
	return cgroupOf(content), nil
}

func cgroupOf(content []byte) string {
	unified, own := "", ""
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if path, ok := strings.CutPrefix(lines.Text(), "0::"); ok {
			unified = path
		}
		if _, path, ok := strings.Cut(lines.Text(), ":name=systemd:"); ok {
			own = path
		}
	}
	if unified == "" || unified == "/" && own != "" {
		return own
	}
	return unified
}
