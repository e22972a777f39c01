// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// That it loads, and what it does, is tested on a real tmux in actuate/tmux.
func TestTheConfigurationSetsOptionsAndRunsNothing(t *testing.T) {
	options := 0
	for line := range strings.Lines(string(Conf)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "", "#":
		case "set-option", "set-environment":
			options++
			assert.NotContains(t, line, "#(")
		default:
			t.Errorf("unexpected command: %s", line)
		}
	}
	assert.Greater(t, options, 15)
}
