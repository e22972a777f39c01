// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shown is what a class makes of one screen.
type shown struct {
	attention, failure, until string
	ready, working            bool
}

func look(t *testing.T, class *ClientClassSpec, screen string) shown {
	t.Helper()
	matches := func(pattern string) []string {
		if pattern == "" {
			return nil
		}
		compiled, err := CompilePattern(pattern)
		require.NoError(t, err)
		found := compiled.FindStringSubmatch(screen)
		if at := compiled.SubexpIndex(GroupUntil); found != nil && at >= 0 {
			return []string{found[0], found[at]}
		}
		return found
	}
	s := shown{ready: matches(class.Ready.Pattern) != nil, working: matches(class.Working.Pattern) != nil}
	for _, rule := range class.Attention {
		if matches(rule.Pattern) != nil {
			s.attention = rule.Reason
			break
		}
	}
	for _, rule := range class.Failures {
		if found := matches(rule.Pattern); found != nil {
			s.failure = rule.Reason
			if len(found) > 1 {
				s.until = found[1]
			}
			break
		}
	}
	return s
}

// screens are the real ones of testdata, as tmux captures them.
var screens = map[string]shown{
	"claude-virgin-onboarding": {},
	"claude-folder-trust":      {attention: ReasonTrustRequired},
	"claude-custom-api-key":    {attention: ReasonLoginRequired},
	"claude-permission-dialog": {attention: ReasonPermissionRequired},
	"claude-idle-fresh":        {},
	"claude-idle-after-turn":   {},
	"claude-idle-default-mode": {},
	"claude-after-hang":        {},
	"claude-after-permission":  {},
	"claude-working-hang":      {working: true},
	"claude-401-retrying":      {working: true},
	"claude-429-retrying":      {working: true},
	"claude-500-retrying":      {working: true},
	"claude-drop-retrying":     {working: true},
	"claude-not-logged-in":     {failure: ReasonAuthenticationFailed},
	"claude-401-end":           {failure: ReasonAuthenticationFailed},
	"claude-403-end":           {failure: ReasonAuthenticationFailed},
	"claude-429-end":           {failure: ReasonRateLimited},
	"claude-500-end":           {failure: ReasonModelUnavailable},
	"claude-529-end":           {failure: ReasonModelUnavailable},
	"claude-drop-end":          {failure: ReasonModelUnavailable},

	"codex-hooks-need-review": {attention: ReasonHookTrustRequired},
	"codex-idle-fresh":        {ready: true},
	"codex-idle-after-turn":   {ready: true},
	"codex-after-new":         {ready: true},
	"codex-tool":              {ready: true},
	"codex-tool-outside":      {ready: true},
	"codex-working":           {ready: true, working: true},
	"codex-hang":              {ready: true, working: true},
	"codex-reconnecting":      {ready: true, working: true},
	"codex-401":               {ready: true, failure: ReasonAuthenticationFailed},
	"codex-403":               {ready: true, failure: ReasonAuthenticationFailed},
	"codex-429":               {ready: true, failure: ReasonRateLimited},
	"codex-500":               {ready: true, failure: ReasonModelUnavailable},
	"codex-529":               {ready: true, failure: ReasonModelUnavailable},
	"codex-drop":              {ready: true, failure: ReasonModelUnavailable},
	"codex-drop-mid-answer":   {ready: true, failure: ReasonModelUnavailable},
	"codex-usage-limit":       {ready: true, failure: ReasonUsageLimited, until: "11:38 PM"},
}

func TestBuiltInClassesRecogniseTheScreensOfTheirClients(t *testing.T) {
	paths, err := filepath.Glob("testdata/screens/*.txt")
	require.NoError(t, err)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			want, expected := screens[name]
			require.True(t, expected, "the table says nothing of it")
			class, _, _ := strings.Cut(name, "-")
			screen, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, want, look(t, &ResolveClass(class, nil).Spec, string(screen)))
			assert.Equal(t, want, look(t, &ResolveClass(class, nil).Spec, strings.TrimSpace(string(screen))), "without the blank lines around it")
		})
	}
	assert.Len(t, paths, len(screens), "the table names a screen that is not there")
}
