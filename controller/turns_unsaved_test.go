// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"os"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller"
	"github.com/muxlet/muxlet/controller/turn"
)

// unsaved keeps turns until it is told to save none any more.
type unsaved struct {
	controller.Turns
	refuses atomic.Bool
	// slow is called after each save, and that takes as long.
	slow func()
}

func (f *unsaved) refuse(yes bool) { f.refuses.Store(yes) }

// Update is Turns'.
func (f *unsaved) Update(next turn.Turn) (turn.Turn, error) {
	if f.refuses.Load() {
		return turn.Turn{}, errors.New("no room")
	}
	if f.slow != nil {
		defer f.slow()
	}
	return f.Turns.Update(next)
}

// read is the content of a file; empty while it is not there.
func (c chats) read(path string) string {
	c.Helper()
	data, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(c, err)
	}
	return string(data)
}
