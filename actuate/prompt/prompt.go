// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package prompt reads the file that holds the prompt of a turn. It gives the prompt
// whole or not at all, and never says anything of what is in it.
package prompt

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/muxlet/muxlet/spec"
)

// Read returns the prompt in the file at path, of at most limit bytes. A file with what
// no turn can have, such as nothing or a character that a terminal takes for a key, is
// damaged: it is an error that says so.
func Read(path string, limit int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open the file of the prompt: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return "", fmt.Errorf("read the file of the prompt: %w", err)
	}
	if int64(len(content)) > limit {
		return "", fmt.Errorf("read the file of the prompt: it is longer than %d bytes", limit)
	}
	clean, err := spec.CheckPrompt(string(content))
	if err == nil && clean != string(content) {
		err = errors.New("it ends with a newline")
	}
	if err != nil {
		return "", fmt.Errorf("read %s, which is damaged: %w", path, err)
	}
	return clean, nil
}
