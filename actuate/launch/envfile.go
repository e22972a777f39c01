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
	"regexp"
	"strings"
	"syscall"
	"unicode"

	"github.com/muxlet/muxlet/actuate/workspace"
	"github.com/muxlet/muxlet/spec"
)

const (
	// maxEnvFile is the size, in bytes, up to which an env file is read.
	maxEnvFile = 1 << 20
	// maxVariable is Linux's MAX_ARG_STRLEN: NAME=value with the NUL behind it.
	maxVariable = 128 << 10
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

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
	switch {
	case err == nil:
		return path, content, nil
	case errors.Is(err, fs.ErrNotExist) && ref.Optional:
		return path, nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return path, nil, &fault{reason: spec.ReasonEnvFileMissing, file: path, message: fmt.Sprintf(
			"The client was not executed: the env file %s does not exist; create it, or mark it optional.", path)}
	}
	return path, nil, invalidFile(path, err.Error())
}

func invalidFile(path, why string) *fault {
	return &fault{reason: spec.ReasonEnvFileInvalid, file: path, message: fmt.Sprintf(
		"The client was not executed: the env file %s cannot be used (%s); mend it.", path, why)}
}

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
		return nil, errors.New("it is not a regular file")
	}
	content, err := io.ReadAll(io.LimitReader(file, maxEnvFile+1))
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case len(content) > maxEnvFile:
		return nil, fmt.Errorf("it has more than %d bytes", maxEnvFile)
	case bytes.IndexByte(content, 0) >= 0:
		return nil, errors.New("it has a NUL byte")
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

// parseEnvFile reads NAME=value lines as kubectl does: blank lines and lines that
// start with # are passed over, space before a name is dropped, the value is
// taken as it stands. why tells, by line number alone, what is wrong.
func parseEnvFile(content string) (pairs [][2]string, why string) {
	content = strings.TrimPrefix(content, "\ufeff")
	for i, line := range strings.Split(content, "\n") {
		line = strings.TrimLeftFunc(strings.TrimSuffix(line, "\r"), unicode.IsSpace)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if !found || !variableName.MatchString(name) {
			return nil, fmt.Sprintf("line %d is not NAME=value", i+1)
		}
		if why := unfit(name, value); why != "" {
			return nil, fmt.Sprintf("line %d: %s", i+1, why)
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs, ""
}

func unfit(name, value string) string {
	if len(name)+len("=")+len(value)+1 > maxVariable {
		return fmt.Sprintf("the variable %s has more than %d bytes", name, maxVariable)
	}
	return ""
}
