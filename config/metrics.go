// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EnvMetricsListen is the environment variable of metrics.listen.
const EnvMetricsListen = "MUXLET_METRICS_LISTEN"

// Metrics are how what the daemon counts is told. They are on the API's socket in any
// case, at /metrics.
type Metrics struct {
	// Listen is a loopback address, as host:port, on which /metrics, /healthz and /readyz are
	// served to every user of this host too: 127.0.0.1:9464, [::1]:9464 or localhost:9464.
	// They name no session and change nothing. Default: none.
	Listen string `json:"listen"`
}

func validateMetrics(m *Metrics, at *field.Path) field.ErrorList {
	if problem := loopbackProblem(m.Listen); problem != "" {
		return field.ErrorList{field.Invalid(at.Child("listen"), m.Listen, problem)}
	}
	return nil
}

// loopbackProblem says why an address cannot be listened on; empty when it can.
// Metrics are for whoever watches this host: nothing is ever served to others.
func loopbackProblem(address string) string {
	if address == "" {
		return ""
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("%q is no address: give a host and a port, such as 127.0.0.1:9464", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Sprintf("%q has no port from 1 to 65535: give one, such as 127.0.0.1:9464", address)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return ""
	}
	return fmt.Sprintf("%q is no loopback address: metrics are served to this host alone; use 127.0.0.1:%s, and forward it if another host is to read it", address, port)
}

// overrideMetrics takes the address from the flag and the environment.
func (l *loader) overrideMetrics() error {
	address, source := l.env(EnvMetricsListen), EnvMetricsListen
	switch {
	case l.in.MetricsListen != nil:
		address, source = *l.in.MetricsListen, "--metrics-listen"
		l.set("metrics.listen", OriginFlag)
	case address != "":
		l.set("metrics.listen", OriginEnvironment)
	default:
		return nil
	}
	l.e.Metrics.Listen = address
	if problem := loopbackProblem(address); problem != "" {
		return fmt.Errorf("%s: %s", source, problem)
	}
	return nil
}
