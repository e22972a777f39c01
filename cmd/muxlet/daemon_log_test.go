// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALogThatNobodyReadsStopsNobody(t *testing.T) {
	reader, writer := io.Pipe()
	l := newPatientLog(writer, droppedText)
	for range 2 * logBacklog {
		n, err := io.WriteString(l, "line\n")
		require.NoError(t, err)
		require.Equal(t, 5, n)
	}
	assert.NotZero(t, l.dropped.Load())

	read := make(chan string)
	go func() {
		all, _ := io.ReadAll(reader)
		read <- string(all)
	}()
	l.close()
	require.NoError(t, writer.Close())
	text := <-read
	assert.Contains(t, text, "Dropped log lines that nobody read")
	assert.GreaterOrEqual(t, strings.Count(text, "line\n"), logBacklog)
}

func TestALogIsWrittenInOrderToItsEnd(t *testing.T) {
	var out bytes.Buffer
	l := newPatientLog(&out, droppedText)
	for _, line := range []string{"a\n", "b\n", "c\n"} {
		_, err := io.WriteString(l, line)
		require.NoError(t, err)
	}
	l.close()
	assert.Equal(t, "a\nb\nc\n", out.String())
}
