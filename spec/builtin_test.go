// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shown is what a class makes of one screen.
type shown struct {
	attention, failure, until string
	ready, working, notFound  bool
}

// compiledPatterns saves most of the time of these tests, which are not parallel.
var compiledPatterns = map[string]*regexp.Regexp{}

func look(t *testing.T, class *ClientClassSpec, screen string) shown {
	t.Helper()
	matches := func(pattern string) []string {
		if pattern == "" {
			return nil
		}
		compiled := compiledPatterns[pattern]
		if compiled == nil {
			var err error
			compiled, err = CompilePattern(pattern)
			require.NoError(t, err)
			compiledPatterns[pattern] = compiled
		}
		found := compiled.FindStringSubmatch(screen)
		if at := compiled.SubexpIndex(GroupUntil); found != nil && at >= 0 {
			return []string{found[0], found[at]}
		}
		return found
	}
	s := shown{ready: matches(class.Ready.Pattern) != nil, working: matches(class.Working.Pattern) != nil, notFound: matches(class.Conversation.NotFoundPattern) != nil}
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
	"claude-403-named":         {failure: ReasonAuthenticationFailed},
	"claude-working-named":     {working: true},
	"claude-429-end":           {failure: ReasonRateLimited},
	"claude-500-end":           {failure: ReasonModelUnavailable},
	"claude-529-end":           {failure: ReasonModelUnavailable},
	"claude-drop-end":          {failure: ReasonModelUnavailable},

	"claude-usage-limit":             {failure: ReasonUsageLimited, until: "11:41pm (UTC)"},
	"claude-usage-limit-week":        {attention: ReasonChoiceRequired, failure: ReasonUsageLimited, until: "Dec 3, 10:11pm (UTC)"},
	"claude-permission-dialog-auto":  {attention: ReasonPermissionRequired},
	"claude-auto-mode-check-missing": {attention: ReasonPermissionRequired},
	"claude-bypass-acceptance":       {attention: ReasonPermissionRequired},
	"claude-login-picker":            {attention: ReasonLoginRequired},
	"claude-resume-other-cwd":        {attention: ReasonTrustRequired},
	"claude-resume-picker":           {attention: ReasonChoiceRequired},
	"claude-resume-picker-list":      {attention: ReasonChoiceRequired},
	"claude-slash-resume":            {attention: ReasonChoiceRequired},
	"claude-after-clear":             {},
	"claude-after-exit":              {},
	"claude-already-in-use":          {},
	"claude-session-id-again":        {},
	"claude-resume-not-found":        {notFound: true},
	"claude-resume-never-prompted":   {notFound: true},

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
	"codex-no-key":            {ready: true, failure: ReasonAuthenticationFailed},
	"codex-usage-limit":       {ready: true, failure: ReasonUsageLimited, until: "11:38 PM"},

	"codex-usage-limit-days":    {ready: true, failure: ReasonUsageLimited, until: "Dec 3rd, 2026 10:12 PM"},
	"codex-usage-limit-notime":  {ready: true, failure: ReasonUsageLimited},
	"codex-idle-resumed":        {ready: true},
	"codex-tool-running":        {ready: true, working: true},
	"codex-folder-access":       {attention: ReasonTrustRequired},
	"codex-sign-in":             {attention: ReasonLoginRequired},
	"codex-update-available":    {attention: ReasonUpdateOffered},
	"codex-permission-dialog":   {attention: ReasonPermissionRequired},
	"codex-resume-cwd-menu":     {attention: ReasonChoiceRequired},
	"codex-slash-resume":        {attention: ReasonChoiceRequired},
	"codex-open-in-another-app": {attention: ReasonConversationInUse},
	"codex-resume-nonsense":     {notFound: true},
	"codex-resume-deleted":      {notFound: true},
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

// What a conversation says about such things is no such thing: below it are the
// composer and the status line.
func TestWhatAConversationQuotesIsNotTakenForTheClientsOwnWords(t *testing.T) {
	for class, around := range map[string]struct {
		idle, entry, lead string
		ready             bool
	}{
		ClassClaude: {idle: "claude-idle-after-turn", entry: "● hello 1", lead: "  "},
		ClassCodex:  {idle: "codex-idle-after-turn", entry: "• hello 2", lead: "  ", ready: true},
	} {
		idle, err := os.ReadFile("testdata/screens/" + around.idle + ".txt")
		require.NoError(t, err)
		require.Contains(t, string(idle), around.entry)
		for name, want := range screens {
			own, _, _ := strings.Cut(name, "-")
			if own != class || want == (shown{ready: around.ready}) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				quoted, err := os.ReadFile("testdata/screens/" + name + ".txt")
				require.NoError(t, err)
				var lines []string
				for line := range strings.Lines(string(quoted)) {
					lines = append(lines, around.lead+line)
				}
				screen := strings.Replace(string(idle), around.entry, around.entry+"\n\n"+strings.Join(lines, ""), 1)
				assert.Equal(t, shown{ready: around.ready}, look(t, &ResolveClass(class, nil).Spec, screen))
			})
		}
	}
}

// A person sees as much of it on a terminal of another width.
func TestScreensAreRecognisedOnOtherTerminals(t *testing.T) {
	for name, want := range screens {
		class, _, _ := strings.Cut(name, "-")
		screen, err := os.ReadFile("testdata/screens/" + name + ".txt")
		require.NoError(t, err)
		narrow := strings.ReplaceAll(string(screen), strings.Repeat("─", 200), strings.Repeat("─", 40))
		assert.Equal(t, want, look(t, &ResolveClass(class, nil).Spec, narrow), name)
		below := string(screen) + strings.Repeat("\n", 30)
		assert.Equal(t, want, look(t, &ResolveClass(class, nil).Spec, below), "%s above blank lines", name)
	}
}
