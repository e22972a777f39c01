// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheBusIsWhereTheEnvironmentOrALoginHasIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b")
	require.NoError(t, os.Mkdir(dir, 0o700))
	socket := filepath.Join(dir, "bus")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer listener.Close()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	env := func(pairs ...string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			return "", false
		}
	}
	nobody := User{4_000_000, "nobody"}
	lingering := t.TempDir()
	for name, c := range map[string]struct {
		lookup       func(string) (string, bool)
		path, reason string
	}{
		"runtime directory":     {env("XDG_RUNTIME_DIR", dir), socket, ""},
		"address":               {env("DBUS_SESSION_BUS_ADDRESS", "unix:path="+socket+",guid=0", "XDG_RUNTIME_DIR", "/other"), socket, ""},
		"an address goes first": {env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/none", "XDG_RUNTIME_DIR", dir), "", "there is no bus of this user at /none"},
		"no bus":                {env("XDG_RUNTIME_DIR", "/other"), "", "there is no bus of this user at /other/bus"},
		"no socket":             {env("DBUS_SESSION_BUS_ADDRESS", "unix:path="+file), "", file + " is no socket"},
		"another machine":       {env("DBUS_SESSION_BUS_ADDRESS", "tcp:host=a,port=1"), "", "the bus that DBUS_SESSION_BUS_ADDRESS names is not on this machine"},
		"nobody lingers":        {env(), "", "XDG_RUNTIME_DIR is not set, and the manager of this user does not outlive a logout (loginctl enable-linger)"},
	} {
		t.Run(name, func(t *testing.T) {
			address, why := addressOf(c.lookup, nobody, lingering)
			assert.Equal(t, c.reason, why)
			assert.Equal(t, c.path, SocketOf(address))
		})
	}
	require.NoError(t, os.WriteFile(filepath.Join(lingering, "nobody"), nil, 0o600))
	_, why := addressOf(env(), nobody, lingering)
	assert.Equal(t, "there is no bus of this user at /run/user/4000000/bus", why, "it would be there")
	address, why := Address(env("DBUS_SESSION_BUS_ADDRESS", "unix:abstract=/tmp/dbus-x"), nobody)
	assert.Empty(t, why, "what is in no directory is found out when it is used")
	assert.NotEmpty(t, address)
}
