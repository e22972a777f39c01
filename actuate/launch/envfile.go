// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"

	"github.com/muxlet/muxlet/actuate/workspace"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/lazyregexp"
)

const (
	// maxEnvFile is the size, in bytes, up to which an env file is read.
	maxEnvFile = 1 << 20
	// maxVariable is Linux's MAX_ARG_STRLEN: NAME=value with the NUL behind it.
	maxVariable = 128 << 10
)

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// read returns the path and the content of a file that env or envFrom names. The
// path is expanded by what is in e; the content is nil when there is no such file
// and it is optional.
func (e *env) read(ref *spec.FileRef) (path string, content []byte, f *fault) {
	if ref == nil {
		return "", nil, invalidFile("", "no file is named")
	}
	path, err := workspace.Expand(ref.Path, e.lookup)
	if err != nil {
		return "", nil, invalidFile(ref.Path, err.Error())
	}
	content, err = readEnvFile(path)
	var refused *refusedFile
	switch {
	case err == nil:
		return path, content, nil
	case isMissing(err) && ref.Optional:
		return path, nil, nil
	case isMissing(err):
		return path, nil, &fault{reason: spec.ReasonEnvFileMissing, file: path, message: fmt.Sprintf(
			"The client was not executed: the env file %s does not exist; create it, or mark it optional.", path)}
	case errors.As(err, &refused):
		return path, nil, invalidFile(path, refused.why)
	}
	return path, nil, &fault{reason: spec.ReasonEnvFileUnreadable, file: path, message: fmt.Sprintf(
		"The client was not executed: the env file %s could not be read (%v); give access to it.", path, err)}
}

// isMissing: nothing is at the path. A part of it that is no directory is as good
// as one that is not there.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func invalidFile(path, why string) *fault {
	return &fault{reason: spec.ReasonEnvFileInvalid, file: path, message: fmt.Sprintf(
		"The client was not executed: the env file %s cannot be used (%s); mend it.", path, why)}
}

func invalidLine(path string, line int, why string) *fault {
	return &fault{reason: spec.ReasonEnvFileInvalid, file: path, message: fmt.Sprintf(
		"The client was not executed: %s:%d: %s; mend that line.", path, line, why)}
}

// refusedFile is why a file that can be read cannot be used.
type refusedFile struct{ why string }

// Error is error's.
func (r *refusedFile) Error() string { return r.why }

// readEnvFile reads a regular file; what could block for ever is not opened for
// reading. Its errors never hold content, and the result is never nil without
// an error.
func readEnvFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, &refusedFile{"it is not a regular file"}
	}
	content, err := io.ReadAll(io.LimitReader(file, maxEnvFile+1))
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case len(content) > maxEnvFile:
		return nil, &refusedFile{fmt.Sprintf("it has more than %d bytes", maxEnvFile)}
	case bytes.IndexByte(content, 0) >= 0:
		return nil, &refusedFile{"it has a NUL byte"}
	}
	return content, nil
}

// withoutPath drops the call and the path, which the sentence around it has.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// pair is one line of an env file.
type pair struct{ name, value string }

// parseEnvFile reads NAME=value lines as a person writes them who also sources
// the file in a shell: blank lines and lines that start with # are passed over,
// the word export before a name too; a value that is quoted as a whole loses its
// quotes. Any other value is taken as it stands, and nothing is expanded: what a
// shell would compute is not a value here. why tells what is wrong with a line,
// by its number and a name, never by what is in it: it may be a secret.
func parseEnvFile(content string) (pairs []pair, line int, why string) {
	content = strings.TrimPrefix(content, "\ufeff")
	for i, text := range strings.Split(content, "\n") {
		text = strings.TrimLeftFunc(strings.TrimSuffix(text, "\r"), unicode.IsSpace)
		if text == "" || text[0] == '#' {
			continue
		}
		p, why := parseEnvLine(text)
		if why != "" {
			return nil, i + 1, why
		}
		pairs = append(pairs, p)
	}
	return pairs, 0, ""
}

func parseEnvLine(text string) (p pair, why string) {
	if rest, ok := strings.CutPrefix(text, "export"); ok && strings.TrimLeft(rest, " \t") != rest {
		text = strings.TrimLeft(rest, " \t")
	}
	name, value, found := strings.Cut(text, "=")
	switch {
	case !found || !variableName.MatchString(name):
		return p, "it is not NAME=value"
	case spec.ReservedEnvName(name):
		return p, fmt.Sprintf("the variable %s is set by muxlet or tmux and cannot be chosen", name)
	}
	if value, why = unquote(value); why != "" {
		return p, why
	}
	return pair{name, value}, unfit(name, value)
}

// unquote removes the quotes around a value. Between double quotes a backslash
// keeps its meaning before the four characters for which a shell has it.
func unquote(value string) (text, why string) {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return value, ""
	}
	quote, rest := value[0], value[1:]
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			return b.String(), afterQuote(rest[i+1:])
		case c == '\\' && quote == '"' && i+1 < len(rest) && strings.IndexByte("\"\\$`", rest[i+1]) >= 0:
			i++
			b.WriteByte(rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "the quote at the beginning of its value is not closed; a value has one line"
}

// afterQuote: nothing but a comment may follow.
func afterQuote(rest string) (why string) {
	comment := strings.TrimLeft(rest, " \t")
	if comment == "" || comment != rest && comment[0] == '#' {
		return ""
	}
	return "text follows the closing quote of its value"
}

func unfit(name, value string) string {
	if len(name)+len("=")+len(value)+1 > maxVariable {
		return fmt.Sprintf("the variable %s has more than %d bytes", name, maxVariable)
	}
	return ""
}
