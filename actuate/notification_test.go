// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"

	"github.com/muxlet/muxlet/spec"
)

func TestANotificationTellsItsCommandByTheEnvironment(t *testing.T) {
	n := Notification{
		Event: spec.NotifyInputRequired, Sessions: []string{"shop", "api"}, Reason: "PermissionRequired", Message: "it asks",
		Since: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)), Directory: "/src/a b", Labels: map[string]string{"b": "2", "a": "1"}, Turn: "shop-7",
	}
	assert.Equal(t, []string{
		"MUXLET_EVENT=InputRequired", "MUXLET_SESSION=shop", "MUXLET_SESSIONS=shop api", "MUXLET_COUNT=2", "MUXLET_REASON=PermissionRequired",
		"MUXLET_MESSAGE=2 sessions wait for you: shop, api", "MUXLET_SINCE=2026-01-02T02:04:05Z", "MUXLET_DIRECTORY=/src/a b",
		"MUXLET_LABELS=a=1,b=2", "MUXLET_TURN=shop-7", "MUXLET_ATTACH=muxlet attach shop",
	}, n.Environ())
	n.Test = true
	assert.Contains(t, n.Environ(), "MUXLET_TEST=true")
}

// A command is started however many sessions there are.
func TestWhatACommandIsToldIsBounded(t *testing.T) {
	n := Notification{Event: spec.NotifyStalled, Labels: map[string]string{}}
	for i := range 10000 {
		n.Sessions = append(n.Sessions, strings.Repeat("s", 63))
		n.Labels[fmt.Sprint(i)] = "value"
	}
	for _, pair := range n.Environ() {
		assert.Less(t, len(pair), 128<<10)
	}
	assert.Contains(t, n.Environ(), "MUXLET_COUNT=10000")
}

func TestTheTextOfANotification(t *testing.T) {
	for want, n := range map[string]Notification{
		"a waits for you (PermissionRequired): it asks whether it may do something": {Event: spec.NotifyInputRequired, Sessions: []string{"a"}, Reason: "PermissionRequired", Message: "it asks whether it may\ndo something"},
		"a is stuck (WorkspaceMissing)":                                             {Event: spec.NotifyStalled, Sessions: []string{"a"}, Reason: "WorkspaceMissing"},
		"a has ended its turn":                                                      {Event: spec.NotifyTurnCompleted, Sessions: []string{"a"}, Reason: spec.ReasonCompleted, Message: "work has ended"},
		"a has ended its turn (UsageLimited)":                                       {Event: spec.NotifyTurnCompleted, Sessions: []string{"a"}, Reason: "UsageLimited"},
		"6 sessions have ended their turns: a, b, c, d, e and 1 more":               {Event: spec.NotifyTurnCompleted, Sessions: []string{"a", "b", "c", "d", "e", "f"}},
		"2 sessions are stuck: a, b":                                                {Event: spec.NotifyStalled, Sessions: []string{"a", "b"}},
	} {
		assert.Equal(t, want, n.Text())
	}
}

// Whatever a text holds, a terminal is told nothing by it but the text.
func FuzzPlainTextTellsATerminalNothing(f *testing.F) {
	for _, s := range []string{"a", "\x1b]9;x\a", "a\nb", "\u009b31m", "a\u202eb", "\xff\x9b", "é\u0301", strings.Repeat("語", 500), "\u2028", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		plain := Plain(s, 20)
		assert.LessOrEqual(t, len([]rune(plain)), 20)
		for _, r := range plain {
			assert.False(t, unicode.IsControl(r), "%q", plain)
			assert.False(t, unicode.Is(unicode.Cf, r), "%q", plain)
		}
		assert.Equal(t, plain, Plain(plain, 20))
	})
}
