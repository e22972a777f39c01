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

// Cgroup is the path of the control group by which systemd knows a process: that of its own
// hierarchy where there is one, else that of the unified one (cgroups(7), /proc/PID/cgroup).
func Cgroup(pid int) (string, error) {
	content, err := os.ReadFile(procPath(pid, "cgroup"))
	if err != nil {
		return "", fmt.Errorf("read control group: %w", err)
	}
	unified := ""
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if path, ok := strings.CutPrefix(lines.Text(), "0::"); ok {
			unified = path
		}
		if _, path, ok := strings.Cut(lines.Text(), ":name=systemd:"); ok {
			return path, nil
		}
	}
	return unified, nil
}
