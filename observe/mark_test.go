// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func exampleMark() Mark {
	return Mark{
		Instance: "5a1c7d2e-8f7b-4a39-9a55-0c6f1f6f3a10", UID: "0e0f7f1e-1111-4222-8333-444455556666",
		Attempt: "9b8a7c6d-1111-4222-8333-444455556666", Incarnation: 3,
		Process: Process{PID: 4711, Ticks: 123456},
	}
}

func TestMarkIsWrittenAsTheContractSays(t *testing.T) {
	require.Equal(t, "5a1c7d2e-8f7b-4a39-9a55-0c6f1f6f3a10/0e0f7f1e-1111-4222-8333-444455556666/3/"+
		"9b8a7c6d-1111-4222-8333-444455556666/4711/123456", exampleMark().String())
}

func TestMarkSurvivesItsText(t *testing.T) {
	m, err := ParseMark(exampleMark().String())
	require.NoError(t, err)
	require.Equal(t, exampleMark(), m)
}

func TestDoubtfulMarkIsNone(t *testing.T) {
	for name, text := range map[string]string{
		"empty":              "",
		"too few parts":      "i/u/1/a/2",
		"too many parts":     "i/u/1/a/2/3/4",
		"no instance":        "/u/1/a/2/3",
		"no uid":             "i//1/a/2/3",
		"no attempt":         "i/u/1//2/3",
		"incarnation 0":      "i/u/0/a/2/3",
		"negative pid":       "i/u/1/a/-2/3",
		"pid 0":              "i/u/1/a/0/3",
		"ticks unknown":      "i/u/1/a/2/0",
		"incarnation word":   "i/u/one/a/2/3",
		"pid word":           "i/u/1/a/two/3",
		"negative ticks":     "i/u/1/a/2/-3",
		"padded number":      "i/u/01/a/2/3",
		"signed number":      "i/u/+1/a/2/3",
		"space at the end":   "i/u/1/a/2/3 ",
		"newline at the end": "i/u/1/a/2/3\n",
		"pid too large":      "i/u/1/a/99999999999999999999/3",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseMark(text)
			require.Error(t, err)
		})
	}
}

func FuzzMarkIsParsedOnlyInItsOwnSpelling(f *testing.F) {
	f.Add(exampleMark().String())
	f.Add("i/u/1/a/2/3")
	f.Add(strings.Repeat("/", 5))
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := ParseMark(text); err == nil {
			require.Equal(t, text, m.String())
		}
	})
}

func TestAStepTellsOfItsTurnAlone(t *testing.T) {
	keys, pasted := KeysAfter(TurnStep("shop-1", 2), "shop-1")
	require.Equal(t, []any{2, true}, []any{keys, pasted})
	for _, step := range []string{"", "shop-1", "shop-1/", "shop-1/x", "shop-1/-1", TurnStep("shop-11", 1), TurnStep("shop", 1), "shop-1/1/1"} {
		_, pasted := KeysAfter(step, "shop-1")
		require.False(t, pasted, step)
	}
}
