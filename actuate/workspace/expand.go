// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// reference matches what Expand replaces: $$, $NAME and ${NAME}.
var reference = lazyregexp.New(`\$(\$|[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})`)

// Expand turns a path as a person writes it into an absolute, clean one: a
// leading ~ is lookup's HOME, $NAME and ${NAME} are lookup's values, $$ is a
// dollar sign; any other $ stands for itself. What a value contains is not
// expanded again. An unset or empty variable is an error that names it, as is a
// result that is not absolute.
func Expand(path string, lookup func(name string) (value string, set bool)) (string, error) {
	rest, tilde := path, path == "~" || strings.HasPrefix(path, "~/")
	home := ""
	if tilde {
		value, err := variable("HOME", lookup)
		if err != nil {
			return "", fmt.Errorf("expand %q: %w", path, err)
		}
		home, rest = value, path[len("~"):]
	}
	var unset error
	expanded := home + reference.Get().ReplaceAllStringFunc(rest, func(ref string) string {
		name := strings.Trim(ref, "${}")
		if name == "" {
			return "$"
		}
		value, err := variable(name, lookup)
		if err != nil && unset == nil {
			unset = err
		}
		return value
	})
	if unset != nil {
		return "", fmt.Errorf("expand %q: %w", path, unset)
	}
	if !filepath.IsAbs(expanded) {
		return "", fmt.Errorf("expand %q: the path is relative; start it with /, ~/ or a variable", path)
	}
	return filepath.Clean(expanded), nil
}

func variable(name string, lookup func(string) (string, bool)) (string, error) {
	if value, set := lookup(name); set && value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the variable %s is not set", name)
}
