// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// defaultPath is searched when an environment has no PATH, as execvp(3) does.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// LookPath finds the program of a command in the PATH of environment, or, when name has
// a slash, as seen from directory.
func LookPath(name, directory string, environment []string) (string, error) {
	from := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(directory, path)
	}
	if strings.Contains(name, "/") {
		return exec.LookPath(from(name))
	}
	search := defaultPath
	for _, pair := range environment {
		if value, isPath := strings.CutPrefix(pair, "PATH="); isPath {
			search = value
		}
	}
	for _, dir := range filepath.SplitList(search) {
		if found, err := exec.LookPath(filepath.Join(from(dir), name)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s is not in the client's PATH (%s)", name, search)
}
