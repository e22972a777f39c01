// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package config holds the daemon's own settings: what they are, what they are
// when nobody says anything, and where each value came from. A file that does
// not decode or validate is refused as a whole, with the place of each mistake.
// It reads the settings file and nothing else, it makes no directory, and it
// knows no environment but the one that it is given.
package config
