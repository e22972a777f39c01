// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muxlet/muxlet/spec/lazyregexp"
)

// What the kernel takes, with room for the environment that a shell's profile
// makes. Both are bytes.
const (
	// maxWordBytes is Linux's MAX_ARG_STRLEN: one word of argv, or NAME=value,
	// with the NUL behind it.
	maxWordBytes = 128 << 10
	// maxArgvBytes bounds argv and the environment together.
	maxArgvBytes = 1 << 20
)

func validateClient(c *ClientSpec, path *field.Path) field.ErrorList {
	errs := validateCommand(c, path)
	errs = append(errs, oneOf(path.Child("shellMode"), c.ShellMode, ShellInteractive, ShellLogin, ShellNone)...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	for i, source := range c.EnvFrom {
		errs = append(errs, validateFileRef(source.FileRef, path.Child("envFrom").Index(i).Child("fileRef"))...)
	}
	if total := launchBytes(c); total > maxArgvBytes {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("command, args and env have %d bytes in all; the system takes at most %d: put the text into a file", total, maxArgvBytes)))
	}
	return errs
}

func validateCommand(c *ClientSpec, path *field.Path) field.ErrorList {
	errs := validateArgv(c.Command, path.Child("command"))
	errs = append(errs, validateWords(c.Args, path.Child("args"))...)
	return append(errs, validateWords(c.StartArgs, path.Child("startArgs"))...)
}

// validateArgv checks a program and its arguments, if there are any.
func validateArgv(command []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(command) > 0 && command[0] == "" {
		errs = append(errs, field.Invalid(path.Index(0), "", "the program's name is empty"))
	}
	return append(errs, validateWords(command, path)...)
}

func validateWords(words []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, word := range words {
		if message := unfit(word); message != "" {
			errs = append(errs, field.Invalid(path.Index(i), field.OmitValueType{}, message))
		}
	}
	return errs
}

// unfit says why the kernel would not take a word; empty when it would.
func unfit(word string) string {
	switch {
	case strings.ContainsRune(word, 0):
		return "a word cannot have a NUL byte"
	case len(word) >= maxWordBytes:
		return fmt.Sprintf("the word has %d bytes; the system takes less than %d: put the text into a file", len(word), maxWordBytes)
	}
	return ""
}

func launchBytes(c *ClientSpec) int {
	return bytesOf(c.Env, c.Command, c.Args, c.StartArgs)
}

// bytesOf counts what the kernel is given, each word with the NUL behind it.
func bytesOf(env []EnvVar, argv ...[]string) int {
	total := 0
	for _, words := range argv {
		for _, word := range words {
			total += len(word) + 1
		}
	}
	for _, e := range env {
		total += len(e.Name) + len("=") + len(e.Value) + 1
	}
	return total
}

var (
	identifier    = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	notIdentifier = lazyregexp.New(`[^A-Za-z0-9_]+`)
)

func validateEnv(env []EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	first := map[string]int{}
	for i, e := range env {
		at := path.Index(i)
		errs = append(errs, validateEnvName(e.Name, at.Child("name"))...)
		if j, again := first[e.Name]; again && e.Name != "" {
			errs = append(errs, field.Duplicate(at.Child("name"), e.Name))
			errs[len(errs)-1].Detail = fmt.Sprintf("%q is set twice; the first is %s", e.Name, path.Index(j))
		} else {
			first[e.Name] = i
		}
		errs = append(errs, validateEnvValue(e, at)...)
	}
	return errs
}

func validateEnvName(name string, at *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, "the variable needs a name")}
	case !identifier.MatchString(name):
		detail := fmt.Sprintf("%q cannot be the name of a variable: use letters, digits and _, no digit first", name)
		return field.ErrorList{field.Invalid(at, name, suggest(detail, nearestIdentifier(name)))}
	case ReservedEnvName(name):
		return field.ErrorList{field.Invalid(at, name, fmt.Sprintf("%q is set by muxlet or tmux and cannot be chosen", name))}
	}
	return nil
}

// ReservedEnvName says whether a variable is set by muxlet or tmux, and is nobody
// else's to choose: the client's identity hangs on it.
func ReservedEnvName(name string) bool {
	return strings.HasPrefix(name, "MUXLET_") || name == "TMUX" || name == "TMUX_PANE"
}

// nearestIdentifier turns a text into a variable's name; empty when it cannot.
func nearestIdentifier(name string) string {
	name = strings.Trim(notIdentifier.ReplaceAllString(name, "_"), "_")
	if !identifier.MatchString(name) {
		return ""
	}
	return name
}

// validateEnvValue never repeats the value: it may be a secret.
func validateEnvValue(e EnvVar, at *field.Path) field.ErrorList {
	if e.ValueFrom != nil {
		if e.Value != "" {
			return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "value and valueFrom are both given; keep one of them")}
		}
		return validateFileRef(e.ValueFrom.FileRef, at.Child("valueFrom", "fileRef"))
	}
	if message := unfit(e.Name + "=" + e.Value); message != "" {
		return field.ErrorList{field.Invalid(at.Child("value"), field.OmitValueType{}, message)}
	}
	return nil
}

func validateFileRef(ref *FileRef, at *field.Path) field.ErrorList {
	switch {
	case ref == nil:
		return field.ErrorList{field.Required(at, "it names the file, such as {path: ~/.config/keys/api}")}
	case ref.Path == "":
		return field.ErrorList{field.Required(at.Child("path"), "it names the file, such as ~/.config/keys/api")}
	}
	return validatePath(at.Child("path"), ref.Path)
}
