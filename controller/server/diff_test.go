// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

func TestADiffTakesWholeFilesAndGivesEffects(t *testing.T) {
	f := newFake("a")
	c := NewClient(serve(t, Handler(f)))
	defer c.Close()
	result, err := c.Diff(t.Context(), DiffRequest{Files: []DiffFile{{Path: "/m/a.yaml", Content: []byte("a\xffb")}}})
	require.NoError(t, err)
	require.Len(t, result.Sessions, 1)
	assert.Equal(t, spec.EffectStarted, result.Sessions[0].Effect.Kind)
	assert.Equal(t, "/m/a.yaml", result.Sessions[0].File)
	assert.Equal(t, []string{"Diff1"}, f.calls())
	big := bytes.Repeat([]byte("x"), 4*maxBodyBytes)
	_, err = c.Diff(t.Context(), DiffRequest{Files: []DiffFile{{Path: "/m/a.yaml", Content: big}}})
	require.NoError(t, err, "more than other requests may send")
}

func TestADiffThatIsNoneIsRefused(t *testing.T) {
	answer := ask(t, newFake("a"), http.MethodPost, diffPath)
	assert.Equal(t, http.StatusBadRequest, answer.Code)
	assert.Contains(t, answer.Body.String(), "the request cannot be decoded")
}
