// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec"
)

// defaultPath is searched when the client has no PATH, as execvp(3) does.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// find returns the file of the program name: searched in the client's own PATH, or,
// when it has a slash, as seen from the workspace.
func find(workspace, name string, e *env) (string, *fault) {
	if strings.Contains(name, "/") {
		return findFile(workspace, name)
	}
	path, set := e.lookup("PATH")
	if !set {
		path = defaultPath
	}
	dirs := filepath.SplitList(path)
	blocked := ""
	for i, dir := range dirs {
		dirs[i] = absolute(workspace, dir)
		file := filepath.Join(dirs[i], name)
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if blocked == "" && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			blocked = fmt.Sprintf("%s: %v", file, err)
		}
	}
	return "", notFound(name, dirs, blocked)
}

func notFound(name string, dirs []string, blocked string) *fault {
	f := &fault{reason: spec.ReasonCommandNotFound, lookedFor: name, lookedIn: dirs}
	f.message = fmt.Sprintf("The program %s was not found in PATH (%s); install it, or give its path.", name, strings.Join(dirs, ":"))
	if blocked != "" {
		f.message = fmt.Sprintf("The program %s was found but cannot be executed (%s); mend that, or give another path.", name, blocked)
	}
	return f
}

func findFile(workspace, name string) (string, *fault) {
	file := absolute(workspace, name)
	err := executable(file)
	if err == nil {
		return file, nil
	}
	why := fmt.Sprintf("The program %s cannot be executed (%v); mend that, or give another path.", file, err)
	if errors.Is(err, fs.ErrNotExist) {
		why = fmt.Sprintf("The program %s does not exist; install it, or give another path.", file)
	}
	return "", &fault{
		reason: spec.ReasonCommandNotFound, message: why,
		lookedFor: name, lookedIn: []string{workspace},
	}
}

// absolute is path as seen from the workspace, the working directory.
func absolute(workspace, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(workspace, path)
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return withoutPath(err)
	case info.IsDir():
		return errors.New("it is a directory")
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case unix.Access(file, unix.X_OK) != nil:
		return errors.New("it is not executable")
	}
	return nil
}
