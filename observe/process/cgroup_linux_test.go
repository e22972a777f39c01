// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheControlGroupIsTheOneThatSystemdKnows(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"unified":                 {"0::/system.slice/a.service\n", "/system.slice/a.service"},
		"both":                    {"5:cpu:/x\n1:name=systemd:/system.slice/a.service\n0::/system.slice/a.service\n", "/system.slice/a.service"},
		"a container in a hybrid": {"1:name=systemd:/docker/1\n0::/user.slice/b.scope\n", "/user.slice/b.scope"},
		"legacy":                  {"5:cpu:/x\n1:name=systemd:/system.slice/a.service\n0::/\n", "/system.slice/a.service"},
		"nothing":                 {"0::/\n", "/"},
	} {
		assert.Equal(t, c.want, cgroupOf([]byte(c.content)), name)
	}
	own, err := Cgroup(os.Getpid())
	require.NoError(t, err)
	assert.NotEmpty(t, own)
	_, err = Cgroup(1 << 30)
	assert.Error(t, err)
}
