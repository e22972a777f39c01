// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

func codexRef(t *testing.T) observe.ConversationRef {
	home := t.TempDir()
	return observe.ConversationRef{
		Class: &spec.ClientClassSpec{
			Reports: spec.ReportsCodex,
			Conversation: spec.ClassConversation{
				Identity: spec.IdentityReported, Transcript: "$(CONFIG_DIRECTORY)/sessions/*/*/*/rollout-*-$(CONVERSATION_ID).jsonl",
				TranscriptPattern: `"type":"session_meta"`,
			},
		},
		ID: threadID, Home: home, ConfigDirectory: filepath.Join(home, ".codex"),
	}
}

func lockOf(t *testing.T, ref observe.ConversationRef, thread string) string {
	name := filepath.Join(locksOf(ref), thread+lockSuffix)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	return name
}

func rolloutOf(ref observe.ConversationRef, thread string) string {
	return filepath.Join(ref.ConfigDirectory, "sessions/2026/11/29/rollout-2026-11-29T21-38-02-"+thread+".jsonl")
}

// keepOpen has the file open until the test ends.
func keepOpen(t *testing.T, name string, lock bool) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	if lock {
		require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	}
}

func program(t *testing.T) string {
	name, err := os.Executable()
	require.NoError(t, err)
	return name
}

func TestTheLockTellsWhoHasTheConversation(t *testing.T) {
	ref := codexRef(t)
	holder := func() int { return new(Eyes).Evidence(ref).Holder }
	assert.Zero(t, holder(), "there is no lock file")
	name := lockOf(t, ref, ref.ID)
	write(t, name, "")
	assert.Zero(t, holder(), "the file was left behind")
	keepOpen(t, name, false)
	assert.Zero(t, holder(), "it is open and not locked")
	p := spawn(t, holdEnv+"="+name, program(t))
	assert.Equal(t, p.PID, holder())
	other := ref
	other.ID = "another"
	assert.Zero(t, new(Eyes).Evidence(other).Holder)
}

func TestARolloutIsTheEvidenceOfAConversation(t *testing.T) {
	ref := codexRef(t)
	state := func() observe.EvidenceState { return new(Eyes).Evidence(ref).State }
	assert.Equal(t, observe.EvidenceAbsent, state())
	write(t, rolloutOf(ref, ref.ID), testdata(t, "codex-rollout.jsonl"))
	assert.Equal(t, observe.EvidenceResumable, state())
	require.NoError(t, os.Truncate(rolloutOf(ref, ref.ID), 0))
	assert.Equal(t, observe.EvidenceUnusable, state())
	write(t, rolloutOf(ref, ref.ID), strings.Repeat("\x00", 30000))
	assert.Equal(t, observe.EvidenceUnusable, state())
}

func TestTheLocksAndTheRolloutTellOfACodex(t *testing.T) {
	ref := codexRef(t)
	me := self(t)
	files := func(client observe.Process) observe.Files { return new(Eyes).Files(ref, client) }
	nothing := observe.Files{Activity: spec.ActivityUnknown}
	assert.Equal(t, nothing, files(me))

	keepOpen(t, lockOf(t, ref, threadID), true)
	assert.Equal(t, observe.Files{Conversation: threadID, Activity: spec.ActivityUnknown}, files(me), "before the first turn")
	assert.Equal(t, threadID, files(parent(t)).Conversation, "of the wrapper, too")

	write(t, rolloutOf(ref, threadID), testdata(t, "codex-rollout.jsonl"))
	keepOpen(t, rolloutOf(ref, threadID), false)
	done := time.Date(2026, 11, 29, 21, 38, 6, 377e6, time.UTC).Local()
	idle := observe.Files{Conversation: threadID, Activity: spec.ActivityIdle, ActivityAt: done, TurnAt: done}
	assert.Equal(t, idle, files(me))

	// /new: the lock of the old thread stays.
	const fresh = "01a2293f-0000-7000-8000-000000000000"
	keepOpen(t, lockOf(t, ref, fresh), true)
	assert.Equal(t, idle, files(me), "no turn yet")
	write(t, rolloutOf(ref, fresh), lines(t)[0]+started(done.Add(time.Minute)))
	keepOpen(t, rolloutOf(ref, fresh), false)
	assert.Equal(t, observe.Files{Conversation: fresh, Activity: spec.ActivityWorking, ActivityAt: done.Add(time.Minute)}, files(me))
}

func TestALinkToTheConfigDirectoryIsFollowed(t *testing.T) {
	ref := codexRef(t)
	keepOpen(t, lockOf(t, ref, threadID), true)
	link := filepath.Join(ref.Home, "link")
	require.NoError(t, os.Symlink(ref.ConfigDirectory, link))
	ref.ConfigDirectory = link
	assert.Equal(t, threadID, new(Eyes).Files(ref, self(t)).Conversation)
}

func TestANestedCodexIsNotTheClients(t *testing.T) {
	ref := codexRef(t)
	spawn(t, holdEnv+"="+lockOf(t, ref, "nested"), program(t))
	assert.Empty(t, new(Eyes).Files(ref, self(t)).Conversation, "a child that is the same program")
	assert.Empty(t, new(Eyes).Files(ref, parent(t)).Conversation, "a grandchild")
	elsewhere := codexRef(t)
	keepOpen(t, lockOf(t, elsewhere, "elsewhere"), true)
	assert.Empty(t, new(Eyes).Files(ref, self(t)).Conversation, "a lock in another config directory")
}

func TestTheLinesOfProcLocksAreReadAsTheKernelWritesThem(t *testing.T) {
	for line, want := range map[string]flockHeld{
		"1: FLOCK  ADVISORY  WRITE 23532 fe:00:10018829 0 EOF":    {23532, 10018829},
		"1: -> FLOCK  ADVISORY  WRITE 23533 fe:00:10018829 0 EOF": {},
		"3: POSIX  ADVISORY  READ 23532 fe:00:10019171 128 128":   {},
		"4: FLOCK  ADVISORY  WRITE -1 fe:00:10018829 0 EOF":       {},
		"5: FLOCK  ADVISORY  WRITE 12 <none>:0 0 EOF":             {},
		"6: FLOCK  ADVISORY  WRITE 12 fe:00:x 0 EOF":              {},
		"7: OFDLCK ADVISORY  WRITE -1 00:06:1028 0 EOF":           {},
		"": {},
	} {
		got, ok := parseLock(line)
		if want == (flockHeld{}) {
			assert.False(t, ok, line)
			continue
		}
		assert.True(t, ok, line)
		assert.Equal(t, want, got, line)
	}
}
