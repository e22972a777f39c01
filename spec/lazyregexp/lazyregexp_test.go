// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package lazyregexp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnExpressionIsCompiledAtItsFirstUseAlone(t *testing.T) {
	broken := New("(")
	require.Panics(t, func() { broken.MatchString("") })

	r := New(`(\d+)(h|m)`)
	require.True(t, r.MatchString("in 12h"))
	require.Equal(t, []string{"12h", "12", "h"}, r.FindStringSubmatch("in 12h"))
	require.Equal(t, "in h", r.ReplaceAllString("in 12h", "$2"))
	first := r.Get()
	require.Same(t, first, r.Get())
}
