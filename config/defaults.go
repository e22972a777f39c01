// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

// Defaults are the settings that depend on no environment, for what documents them. The
// directories, which do, are empty.
func Defaults() MuxletConfiguration { return defaults() }
