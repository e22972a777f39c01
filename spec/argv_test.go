// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// B11: what only begins a conversation is in no resume.
func TestAResumeHasNothingThatIsForAFreshStartAlone(t *testing.T) {
	agent := &ClientClassSpec{
		Start:  ClassCommand{Command: []string{"agent", "--id", "$(CONVERSATION_ID)"}},
		Resume: ClassCommand{Command: []string{"agent", "--resume", "$(CONVERSATION_ID)"}},
	}
	session := &SessionSpec{Client: ClientSpec{StartArgs: []string{"--new"}, Args: []string{"--model", "$(opus)"}}}
	own := &SessionSpec{Client: ClientSpec{Command: []string{"npm", "$(run)"}, StartArgs: []string{"--new"}, Args: []string{"dev"}}}
	wrapper := &ClientClassSpec{Resume: agent.Resume}
	for name, c := range map[string]struct {
		class         *ClientClassSpec
		session       *SessionSpec
		resume        bool
		command, args []string
	}{
		"a fresh start":                         {agent, session, false, []string{"agent", "--id", "$(CONVERSATION_ID)"}, []string{"--new", "--model", "$(opus)"}},
		"a resume":                              {agent, session, true, []string{"agent", "--resume", "$(CONVERSATION_ID)"}, []string{"--model", "$(opus)"}},
		"the session's own command":             {&ClientClassSpec{}, own, false, nil, []string{"npm", "$(run)", "--new", "dev"}},
		"no class":                              {nil, own, false, nil, []string{"npm", "$(run)", "--new", "dev"}},
		"its own command again":                 {&ClientClassSpec{}, own, true, nil, []string{"npm", "$(run)", "dev"}},
		"its own command, resumed by the class": {wrapper, own, true, []string{"agent", "--resume", "$(CONVERSATION_ID)"}, []string{"dev"}},
	} {
		t.Run(name, func(t *testing.T) {
			// Twice: nothing of the first attempt gets into the second.
			for range 2 {
				command, args := Argv(c.class, c.session, c.resume)
				assert.Equal(t, c.command, command)
				assert.Equal(t, c.args, args)
				for i := range command {
					command[i] = "changed"
				}
				for i := range args {
					args[i] = "changed"
				}
			}
		})
	}
}
