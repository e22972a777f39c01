// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheUnitOfAProcessIsReadFromItsControlGroup(t *testing.T) {
	for path, want := range map[string]Unit{
		"/user.slice/user-2001.slice/user@2001.service/muxlet.slice/muxlet.service":    {Name: "muxlet.service", User: true},
		"/user.slice/user-1.slice/user@1.service/app.slice/app-term.slice/vte-1.scope": {Name: "vte-1.scope", User: true},
		"/user.slice/user-2001.slice/user@2001.service/init.scope":                     {Name: "init.scope", User: true},
		"/user.slice/user-2001.slice/user@2001.service":                                {Name: "user@2001.service"},
		"/user.slice/user-0.slice/session-3.scope":                                     {Name: "session-3.scope"},
		"/system.slice/system-muxlet.slice/muxlet@alice.service":                       {Name: "muxlet@alice.service"},
		"/muxlet.slice/muxlet@alice.service/inner":                                     {Name: "muxlet@alice.service"},
		"/docker/0123": {Name: "docker"},
		"/":            {},
		"":             {},
	} {
		assert.Equal(t, want, UnitOf(path), path)
	}
	assert.True(t, UnitOf("/muxlet.slice/muxlet@alice.service").Service())
	assert.False(t, UnitOf("/user.slice/user-0.slice/session-3.scope").Service())
}
