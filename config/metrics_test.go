// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheAddressOfMetricsIsToldByFileEnvironmentAndFlag(t *testing.T) {
	env := map[string]string{}
	in := inputs(t, env)
	listens := func() (string, string) {
		e, err := Load(in)
		require.NoError(t, err)
		return e.Metrics.Listen, e.Origin["metrics.listen"]
	}
	address, origin := listens()
	assert.Empty(t, address, "nobody is served who did not ask")
	assert.Equal(t, OriginDefault, origin)

	settings(t, in, header+"metrics: {listen: 'localhost:9464'}\n")
	address, origin = listens()
	assert.Equal(t, "localhost:9464", address)
	assert.Equal(t, OriginFile, origin)

	env[EnvMetricsListen] = "[::1]:9465"
	address, origin = listens()
	assert.Equal(t, "[::1]:9465", address)
	assert.Equal(t, OriginEnvironment, origin)

	in.MetricsListen = given("127.0.0.7:9466")
	address, origin = listens()
	assert.Equal(t, "127.0.0.7:9466", address)
	assert.Equal(t, OriginFlag, origin)

	in.MetricsListen = given("")
	address, _ = listens()
	assert.Empty(t, address, "an empty flag turns it off")
}

// What counts sessions is not for other hosts, and a daemon has no way to know whom it serves.
func TestMetricsAreServedOnLoopbackAddressesOnly(t *testing.T) {
	env := map[string]string{}
	in := inputs(t, env)
	for _, address := range []string{":9464", "0.0.0.0:9464", "[::]:9464", "192.168.1.7:9464", "example.com:9464", "localhost.example.com:9464"} {
		in.MetricsListen = given(address)
		_, err := Load(in)
		require.EqualError(t, err, `--metrics-listen: "`+address+`" is no loopback address: metrics are served to this host alone; use 127.0.0.1:9464, and forward it if another host is to read it`)
	}
	for _, address := range []string{"127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:http", "127.0.0.1:"} {
		in.MetricsListen = given(address)
		_, err := Load(in)
		require.ErrorContains(t, err, `--metrics-listen: "`+address+`" has no port from 1 to 65535`)
	}
	in.MetricsListen = nil
	env[EnvMetricsListen] = "9464"
	_, err := Load(in)
	require.EqualError(t, err, `MUXLET_METRICS_LISTEN: "9464" is no address: give a host and a port, such as 127.0.0.1:9464`)
	delete(env, EnvMetricsListen)
	path := settings(t, in, header+"metrics:\n  listen: 10.0.0.1:80\n")
	_, err = Load(in)
	assert.ErrorContains(t, err, path+`:4:11: metrics.listen: "10.0.0.1:80" is no loopback address`)
}
