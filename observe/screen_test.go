// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAScreenIsClosedUpWhereAPaneWasDead(t *testing.T) {
	const dead = "Pane is dead (status 1, Sun Nov 29 20:07:55 2026)"
	for name, c := range map[string]struct {
		lines, want      []string
		visible, visibly int
	}{
		"nothing":                         {},
		"no death":                        {[]string{"a", "", "", "b"}, []string{"a", "", "", "b"}, 3, 3},
		"one death":                       {[]string{"a", "", "", dead, "b"}, []string{"a", dead, "b"}, 4, 2},
		"two deaths":                      {[]string{"a", "", dead, "b", "", "", dead, "", "c"}, []string{"a", dead, "b", dead, "", "c"}, 7, 4},
		"a death on the screen":           {[]string{"a", "", "", dead}, []string{"a", dead}, 1, 1},
		"nothing was shown":               {[]string{"", "", dead}, []string{dead}, 3, 1},
		"a client that writes of a death": {[]string{"", "so: " + dead}, []string{"", "so: " + dead}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(c.lines)
			s := Screen{Lines: given, Visible: c.visible}.Closed()
			assert.Equal(t, append([]string{}, c.want...), s.Lines)
			assert.Equal(t, c.visibly, s.Visible)
			assert.Equal(t, c.lines, given, "what was given stays as it was")
		})
	}
}
