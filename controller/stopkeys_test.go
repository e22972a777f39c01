// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// A class that names keys ends its client by them, also under the eyes of a person who
// scrolls in its pane; a client that does not mind them gets the signals.
func TestAClientIsEndedByTheKeysOfItsClass(t *testing.T) {
	e := envtest.Start(t, envtest.Config{})
	e.Write("keyed.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: ClientClass\nmetadata: {name: keyed}\nspec:\n  stop: {keys: [q, Enter]}\n")
	dir := filepath.Join(e.Dir, "keyed")
	require.NoError(t, os.Mkdir(dir, 0o700))
	reads := func(name, then string) *spec.Session {
		s := e.Fake(name, envtest.Script{})
		s.Spec.ClientClassName = "keyed"
		path := filepath.Join(dir, name)
		s.Spec.Client.Command = []string{"sh", "-c", fmt.Sprintf(`stty raw -echo; : >%s.up; head -c 2 >%s.typed; exec %s`, path, path, then)}
		s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](30)
		return s
	}
	polite, deaf := reads("polite", "true"), reads("deaf", "sleep 1000")
	deaf.Spec.TerminationGracePeriodSeconds = ptr.To[int32](4)
	for _, s := range []*spec.Session{polite, deaf} {
		e.Apply(s)
		e.WaitFor(s.Name, envtest.Incarnation(1))
		e.Eventually(s.Name+" reads its keys", func() bool { _, err := os.Stat(filepath.Join(dir, s.Name+".up")); return err == nil })
		s.Spec.Suspend = true
	}
	e.Tmux("copy-mode", "-t", e.Record("polite").Client.Pane)
	e.Apply(polite)
	end := e.WaitFor("polite", envtest.Shows(spec.StatusSuspended)).Status.Client.LastTermination
	require.NotNil(t, end)
	assert.Equal(t, ptr.To[int32](0), end.ExitCode)
	assert.Len(t, e.Actions(actuate.ActionKeys), 1)
	assert.Empty(t, e.Actions(actuate.ActionSignal))

	e.Apply(deaf)
	end = e.WaitFor("deaf", envtest.Shows(spec.StatusSuspended)).Status.Client.LastTermination
	require.NotNil(t, end)
	assert.Equal(t, "SIGTERM", end.Signal)
	for _, name := range []string{"polite", "deaf"} {
		typed, err := os.ReadFile(filepath.Join(dir, name+".typed"))
		require.NoError(t, err)
		assert.Equal(t, "q\r", string(typed), "typed once")
	}
}
