// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// prompt gives the order a prompt to begin with.
func (p *pane) prompt(text string, args ...string) {
	p.t.Helper()
	p.stored.Order.PromptFile, p.stored.Order.PromptArgs = filepath.Join(p.state, "1.prompt"), args
	require.NoError(p.t, os.WriteFile(p.stored.Order.PromptFile, []byte(text), 0o600))
}

func TestAClientBeginsWithItsPromptBehindItsArguments(t *testing.T) {
	p := newPane(t)
	p.environ = []string{"PATH=/bin", "HOME=/h", "LANG=C.UTF-8"}
	p.agent()
	p.stored.Order.Args = []string{"$(PROMPT)"}
	text := "say 'hi' $(HOME) $$ \"x\" ; \\\t日本"
	p.prompt(text, "--id=$(CONVERSATION_ID)", "-p", "<$(PROMPT)>", "$$(PROMPT)")
	assert.Equal(t, []string{"a", "$(PROMPT)", "$(PROMPT)", "--id=c-1", "-p", "<" + text + ">", "$(PROMPT)"}, p.words("a", "$(PROMPT)"))
}

// Without a class there are no variables but the prompt itself.
func TestASessionsOwnCommandBeginsWithItsPrompt(t *testing.T) {
	p := newPane(t)
	p.stored.Order.Args = []string{"/usr/bin/printf", `%s\n`}
	p.prompt("two\nlines", "$(PROMPT)", "$(HOME)")
	require.Equal(t, 0, p.run(), p.stderr.String())
	assert.Equal(t, "two\nlines\n$(HOME)\n", p.stdout.String())
}

func TestTheLongestPromptOfAnArgumentIsExecuted(t *testing.T) {
	p := newPane(t, "/usr/bin/printf", "%s")
	text := strings.Repeat("é", spec.MaxArgumentBytes/2)
	p.prompt(text, "$(PROMPT)")
	require.Equal(t, 0, p.run(), p.stderr.String())
	assert.Equal(t, text, p.stdout.String())
}

func TestAClientWhosePromptIsLostIsNotExecuted(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"removed":     os.Remove,
		"emptied":     func(file string) error { return os.Truncate(file, 0) },
		"too long":    func(file string) error { return os.WriteFile(file, make([]byte, spec.MaxArgumentBytes+1), 0o600) },
		"with keys":   func(file string) error { return os.WriteFile(file, []byte("secret\x1b"), 0o600) },
		"a directory": func(file string) error { _ = os.Remove(file); return os.Mkdir(file, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPane(t, "/bin/echo", "ran")
			p.prompt("secret", "$(PROMPT)")
			require.NoError(t, spoil(p.stored.Order.PromptFile))
			r := p.refused(spec.ReasonPromptLost)
			assert.NotContains(t, r.Message, "secret")
		})
	}
}
