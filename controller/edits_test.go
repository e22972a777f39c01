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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
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
