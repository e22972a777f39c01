// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// Bulk verbs ask for many sessions at once, and these may be in one file.
func TestEditsOfOneFileAtOnceAreAllMade(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	const n = 12
	var documents []string
	for i := range n {
		s := sleeper(e, fmt.Sprintf("s%d", i))
		documents = append(documents, e.Document(s))
	}
	e.Write("all.yaml", strings.Join(documents, "---\n"))
	for i := range n {
		e.WaitFor(fmt.Sprintf("s%d", i), envtest.Running)
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if i%3 == 0 {
				errs[i] = e.Controller().Delete(t.Context(), fmt.Sprintf("s%d", i))
			} else {
				errs[i] = e.Controller().SetSuspend(t.Context(), fmt.Sprintf("s%d", i), true)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err, i)
	}
	data, err := os.ReadFile(filepath.Join(e.Manifests, "all.yaml"))
	require.NoError(t, err)
	assert.Equal(t, 8, strings.Count(string(data), "suspend: true"), "%s", data)
	assert.Equal(t, 8, strings.Count(string(data), "kind: Session"))
	for i := range n {
		if i%3 == 0 {
			e.WaitNoSession(fmt.Sprintf("s%d", i))
		} else {
			e.WaitFor(fmt.Sprintf("s%d", i), envtest.Shows(spec.StatusSuspended))
		}
	}
}

// A process that is being forked while a document is edited holds the new file open, as
// somebody who writes it would, until it executes its program: resume edits the document,
// and must not be refused by what stood there before.
func TestAResumeIsNotRefusedWhileTheFileOfItsEditIsHeldOpen(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Write("a.yaml", e.Document(sleeper(e, "a")))
	file := filepath.Join(e.Manifests, "a.yaml")
	held := 0
	for round := range 5 {
		e.WaitFor("a", envtest.Incarnation(int64(round+1)))
		require.NoError(t, e.Controller().SetSuspend(t.Context(), "a", true))
		e.WaitFor("a", envtest.Shows(spec.StatusSuspended))
		before, err := os.Stat(file)
		require.NoError(t, err)
		resumed, heldOpen := make(chan struct{}), make(chan bool)
		go func() { heldOpen <- holdsOpen(file, before, resumed) }()
		err = e.Controller().SetSuspend(t.Context(), "a", false)
		if err == nil {
			err = e.Controller().Resume(t.Context(), "a", false)
		}
		close(resumed)
		if server.ReasonOf(err) != server.ReasonAlreadyRunning {
			require.NoError(t, err)
		}
		if <-heldOpen {
			held++
		}
	}
	t.Logf("Of 5 files %d were held open", held)
}

// holdsOpen opens a file for writing as soon as it is another one than before, for a
// moment. It says whether it came to that before it was over.
func holdsOpen(file string, before os.FileInfo, over <-chan struct{}) bool {
	for {
		select {
		case <-over:
			return false
		default:
		}
		now, err := os.Stat(file)
		if err != nil || os.SameFile(before, now) {
			continue
		}
		if f, err := os.OpenFile(file, os.O_WRONLY, 0); err == nil {
			<-time.After(100 * time.Millisecond)
			return f.Close() == nil
		}
	}
}
