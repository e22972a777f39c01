// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/prompt"
	"github.com/muxlet/muxlet/spec"
)

// utf8Locale sorts and speaks as the locale C does, and is there wherever the C
// library is.
const utf8Locale = "C.UTF-8"

// directories are those of the client's own environment, absolute; empty when the
// environment and the class do not tell.
type directories struct{ home, config string }

// directoriesOf finds where a client of a class, with the environment e, keeps what
// is its own. A relative path is one as seen from the workspace, where the client runs.
func directoriesOf(order actuate.Order, e *env) directories {
	var d directories
	if home, _ := e.lookup("HOME"); home != "" {
		d.home = absolute(order.Directory, filepath.Clean(home))
	}
	at := order.Class.ConfigDirectory
	path, _ := e.lookup(at.Env)
	if path == "" {
		known := true
		path = spec.Expand(at.Default, func(name string) (string, bool) {
			value, ok := d.variable(order, e, name)
			known = known && ok
			return value, ok
		})
		if !known {
			// What could not be expanded names no directory.
			return d
		}
	}
	if path != "" {
		d.config = absolute(order.Directory, filepath.Clean(path))
	}
	return d
}

// variable is what $(name) stands for in what a class says.
func (d directories) variable(order actuate.Order, e *env, name string) (value string, known bool) {
	if value, known = order.Class.Variables[name]; known {
		return value, true
	}
	switch {
	case name == spec.VarHome && d.home != "":
		return d.home, true
	case name == spec.VarConfigDirectory && d.config != "":
		return d.config, true
	case name == spec.VarWorkspace:
		return order.Directory, true
	}
	return e.lookup(name)
}

func (d directories) expand(order actuate.Order, e *env, text string) string {
	return spec.Expand(text, func(name string) (string, bool) { return d.variable(order, e, name) })
}

// addClass adds what the class of the client sets, in order, and what every client
// that draws on a terminal is to find.
func (e *env) addClass(order actuate.Order, dirs directories) *fault {
	for _, v := range order.Class.Env {
		v.Value = dirs.expand(order, e, v.Value)
		if fault := e.addVariable(v); fault != nil {
			return fault
		}
	}
	e.setUTF8()
	if _, set := e.lookup("COLORTERM"); !set {
		e.set("COLORTERM", "truecolor")
	}
	return nil
}

// setUTF8 makes characters UTF-8 where no locale in force says so: a client draws
// boxes with question marks otherwise. LC_ALL hides every other one, so that it has
// to change itself; without it the language and the order of sorting stay.
func (e *env) setUTF8() {
	mends := "LC_CTYPE"
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		value, _ := e.lookup(name)
		if value == "" {
			continue
		}
		if isUTF8(value) {
			return
		}
		if name == "LC_ALL" {
			mends = name
		}
		break
	}
	e.set(mends, utf8Locale)
}

func isUTF8(locale string) bool {
	name := strings.ToLower(strings.ReplaceAll(locale, "-", ""))
	return strings.Contains(name, "utf8")
}

// argv is what is executed. What a person wrote stands as it is, and so does what is in
// the prompt with which the client begins.
func argv(order actuate.Order, dirs directories, e *env) ([]string, *fault) {
	var words []string
	for _, word := range order.Command {
		if order.Class != nil {
			word = dirs.expand(order, e, word)
		}
		words = append(words, word)
	}
	words = append(words, order.Args...)
	if order.PromptFile == "" {
		return words, nil
	}
	text, err := prompt.Read(order.PromptFile, spec.MaxArgumentBytes)
	if err != nil {
		return nil, &fault{reason: spec.ReasonPromptLost, message: fmt.Sprintf(
			"The client was not executed: %v; send the turn again.", err)}
	}
	for _, word := range order.PromptArgs {
		words = append(words, spec.Expand(word, func(name string) (string, bool) {
			switch {
			case name == spec.VarPrompt:
				return text, true
			case order.Class != nil:
				return dirs.variable(order, e, name)
			}
			return "", false
		}))
	}
	return words, nil
}
