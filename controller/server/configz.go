// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
)

const configPath = "/configz"

// ConfigSource is a Backend that tells the settings that the daemon runs with.
type ConfigSource interface {
	// Config is what the daemon runs with now.
	Config() RunningConfig
}

// RunningConfig is what a daemon runs with, which the settings file need not say
// any more.
type RunningConfig struct {
	// File that was read; empty when there is none.
	File string `json:"file,omitempty"`
	// Settings in the order of the file.
	Settings []RunningSetting `json:"settings"`
	// Problems are why the file as it is now is not in use, one line each, starting
	// with file:line:column; none when it is.
	Problems []string `json:"problems,omitempty"`
}

// RunningSetting is one setting.
type RunningSetting struct {
	// Name is its path, such as backOff.initial.
	Name string `json:"name"`
	// Value as a person writes it.
	Value string `json:"value"`
	// Origin is default, file, environment or flag.
	Origin string `json:"origin"`
}

func (a api) config(call) (any, error) {
	source, ok := a.backend.(ConfigSource)
	if !ok {
		return nil, NewError(ReasonNotFound, "", "this daemon does not tell its settings")
	}
	return source.Config(), nil
}

// Config is what the daemon runs with.
func (c *Client) Config(ctx context.Context) (RunningConfig, error) {
	var config RunningConfig
	err := c.call(ctx, http.MethodGet, configPath, nil, &config)
	return config, err
}
