// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// A removal that cannot be finished says why, and keeps nobody else from starting.
func TestARecordThatCannotBeArchivedHoldsNoStartBack(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{MaxInFlight: 1})
	e.Run("gone", "kept")
	archive := filepath.Join(e.State, "archive")
	require.NoError(t, os.Remove(archive))
	require.NoError(t, os.WriteFile(archive, nil, 0o600))
	e.Delete("gone")
	e.WaitFor("gone", envtest.Because(spec.ReasonStateUnwritable))
	e.Apply(sleeper(e, "new"))
	e.WaitFor("new", envtest.Incarnation(1))
}

func TestAnArchiveThatWasTidiedAwayIsMadeAgain(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("gone", "kept")
	require.NoError(t, os.Remove(filepath.Join(e.State, "archive")))
	e.Delete("gone")
	e.WaitNoSession("gone")
}
