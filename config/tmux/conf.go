// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package tmux holds the configuration of muxlet's own tmux server. It writes
// nothing and is never the configuration of the person's own server.
package tmux

import _ "embed"

// Conf is the content of the file with which the server is started.
//
//go:embed muxlet.conf
var Conf []byte
