// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// damage overwrites both generations of every record.
func damage(e *envtest.Env, text func(old string) string) {
	e.Helper()
	records, err := filepath.Glob(filepath.Join(e.State, "records", "*"))
	require.NoError(e, err)
	require.NotEmpty(e, records)
	for _, file := range records {
		old, err := os.ReadFile(file)
		require.NoError(e, err)
		require.NoError(e, os.WriteFile(file, []byte(text(string(old))), 0o600))
	}
}

func quarantined(e *envtest.Env) int {
	e.Helper()
	files, err := filepath.Glob(filepath.Join(e.State, "quarantine", "*"))
	require.NoError(e, err)
	return len(files)
}

// The session itself says what became of its record, however little is left of
// that.
func TestADamagedRecordIsToldByItsSession(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]func(string) string{
		"that tells its name":                 func(old string) string { return strings.Replace(old, `"generation":1`, `"generation":7`, 1) },
		"that is cut off":                     func(old string) string { return old[:len(old)/2] },
		"that is all zeros":                   func(old string) string { return strings.Repeat("\x00", len(old)) },
		"that is empty, as after a power cut": func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := envtest.Start(t, envtest.Config{})
			e.Run("a")
			client, uid := e.Client("a"), e.Record("a").UID
			e.Drop()
			damage(e, text)
			e.Boot()
			e.WaitFor("a", envtest.Running)
			assert.Equal(t, client.Process, e.Client("a").Process)
			assert.Equal(t, uid, e.Record("a").UID)
			events := e.Events("a", spec.ReasonRecordQuarantined)
			require.Len(t, events, 1)
			assert.Contains(t, events[0].Message, "quarantine/"+uid+".json")
			assert.Equal(t, 2, quarantined(e), "both generations are kept for a person to look at")
			assert.Len(t, e.Launches("a"), 1)
		})
	}
}

// Class exec has no conversation that could be lost: it begins anew by itself.
func TestASessionWithoutItsRecordAndItsClientBeginsAnew(t *testing.T) {
	t.Parallel()
	e := envtest.Start(t, envtest.Config{})
	e.Run("a", "b")
	uid := e.Record("a").UID
	e.Drop()
	e.Kill(e.Client("a").Process)
	e.Kill(e.Client("b").Process)
	e.KillServer()
	damage(e, func(string) string { return "{" })
	e.Boot()
	for _, name := range []string{"a", "b"} {
		s := e.WaitFor(name, envtest.Incarnation(1))
		assert.NotEqual(t, uid, string(s.UID))
		events := e.Events(name, spec.ReasonRecordQuarantined)
		require.Len(t, events, 1)
		assert.Contains(t, events[0].Message, "begin anew")
		e.Client(name)
	}
	assert.GreaterOrEqual(t, quarantined(e), 2)
	e.Restart()
	e.WaitFor("a", envtest.Running)
	assert.Len(t, e.Events("a", spec.ReasonRecordQuarantined), 1, "that is over then")
}
