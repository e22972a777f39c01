// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
)

// foreseen is what would become of the session if its document were that one.
func foreseen(e *envtest.Env, s *spec.Session) spec.Effect {
	path := filepath.Join(e.Manifests, s.Name+".yaml")
	result, err := e.Controller().Diff(e.Context(), server.DiffRequest{Files: []server.DiffFile{{Path: path, Content: []byte(e.Document(s))}}})
	require.NoError(e, err)
	if len(result.Sessions) == 0 {
		return spec.Effect{}
	}
	return result.Sessions[0].Effect
}

// What is asked in advance changes nothing: not the sessions, not what is on disk, not
// what happens at the same time.
func TestToForeseeAnEditChangesNothing(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	record, client := e.Record("a"), e.Client("a")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				assert.Equal(t, spec.EffectRestartsNow, foreseen(e, edited(e, "a", spec.UpdateWhenIdle)).Kind)
				assert.Equal(t, spec.EffectAtNextRestart, foreseen(e, edited(e, "a", spec.UpdateOnRestart)).Kind)
				assert.Equal(t, spec.EffectStarted, foreseen(e, e.Fake("new", envtest.Script{})).Kind)
				assert.Empty(t, foreseen(e, e.Fake("a", envtest.Script{})).Kind, "no difference")
			}
		})
	}
	e.Apply(edited(e, "b", spec.UpdateRecreate))
	e.WaitFor("b", envtest.Incarnation(2))
	all.Wait()
	assert.True(t, client.Runs())
	assert.Len(t, e.Launches("a"), 1)
	assert.Equal(t, record, e.Record("a"))
	assert.Equal(t, 2, e.Records())
	_, known := e.Session("new")
	assert.False(t, known)
}

func TestToForeseeAFileThatIsNotReadIsRefused(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	_, err := e.Controller().Diff(t.Context(), server.DiffRequest{Files: []server.DiffFile{{Path: "/elsewhere/a.yaml"}}})
	assert.Equal(t, server.ReasonInvalid, server.ReasonOf(err))
	assert.ErrorContains(t, err, "/elsewhere/a.yaml is not read as a manifest")
}
