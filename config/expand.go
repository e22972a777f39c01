// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// env is the value of a variable; empty when it is unset.
func (l *loader) env(name string) string {
	value, _ := l.in.LookupEnv(name)
	return value
}

var errNoHome = errors.New("the home directory is not known: set HOME")

// xdg is a base directory of the XDG specification, which says that a relative
// one is to be ignored.
func (l *loader) xdg(variable, fallback string) (string, error) {
	if dir := l.env(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	if l.in.Home == "" {
		return "", errNoHome
	}
	return filepath.Join(l.in.Home, fallback), nil
}

// resolve makes a path of a flag or an environment variable absolute.
func (l *loader) resolve(source, path string) (string, error) {
	expanded, err := l.expand(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	if filepath.IsAbs(expanded) {
		return filepath.Clean(expanded), nil
	}
	if l.in.WorkingDir == "" {
		return "", fmt.Errorf("%s: %q is relative, and the working directory is not there any more: go to another one, or give the whole path", source, path)
	}
	return filepath.Join(l.in.WorkingDir, expanded), nil
}

// expand fills in a leading ~ and every $VAR and ${VAR}.
func (l *loader) expand(path string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if l.in.Home == "" {
			return "", errNoHome
		}
		path = l.in.Home + path[1:]
	}
	var missing []string
	expanded := os.Expand(path, func(name string) string {
		value := l.env(name)
		if value == "" {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("$%s is not set in %q", missing[0], path)
	}
	return expanded, nil
}
