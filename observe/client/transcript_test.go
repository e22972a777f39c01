// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

const (
	conversationID = "11111111-1111-4111-8111-111111111111"
	userLine       = `{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"x"},"sessionId":"` + conversationID + `"}` + "\n"
	modeLine       = `{"type":"mode","mode":"normal","sessionId":"` + conversationID + `"}` + "\n"
	answerLine     = `{"isSidechain":false,"message":{"role":"assistant","content":[]},"type":"assistant"}` + "\n"
)

func claudeClass() *spec.ClientClassSpec {
	return &spec.ClientClassSpec{
		Reports: spec.ReportsClaude,
		Conversation: spec.ClassConversation{
			Identity:          spec.IdentityAssigned,
			Transcript:        "$(CONFIG_DIRECTORY)/projects/*/$(CONVERSATION_ID).jsonl",
			TranscriptPattern: `"type":"user"`,
		},
	}
}

// claudeRef is a conversation in a config directory of its own.
func claudeRef(t *testing.T) observe.ConversationRef {
	home := t.TempDir()
	return observe.ConversationRef{
		Class: claudeClass(), ID: conversationID, Session: "web", Directory: "/src/web",
		Home: home, ConfigDirectory: filepath.Join(home, ".claude"),
	}
}

func transcriptOf(ref observe.ConversationRef, project string) string {
	return filepath.Join(ref.ConfigDirectory, "projects", project, ref.ID+".jsonl")
}

func write(t *testing.T, name, content string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
}

func TestATranscriptIsJudgedByItsLines(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    observe.EvidenceState
	}{
		"empty":                         {"", observe.EvidenceUnusable},
		"all NUL":                       {strings.Repeat("\x00", 4096), observe.EvidenceUnusable},
		"garbage":                       {"\xff\xfe garbage \"type\":\"user\" \n", observe.EvidenceUnusable},
		"only metadata":                 {modeLine + modeLine, observe.EvidenceUnusable},
		"a turn":                        {modeLine + userLine + answerLine, observe.EvidenceResumable},
		"a turn and no newline":         {modeLine + strings.TrimSpace(userLine), observe.EvidenceResumable},
		"the last line cut":             {userLine + answerLine[:30], observe.EvidenceResumable},
		"NULs appended":                 {userLine + answerLine + strings.Repeat("\x00", 512), observe.EvidenceResumable},
		"NULs after the only turn":      {strings.TrimSpace(userLine) + strings.Repeat("\x00", 512), observe.EvidenceResumable},
		"the only turn cut":             {modeLine + userLine[:len(userLine)-20], observe.EvidenceUnusable},
		"the only turn cut, then glued": {modeLine + userLine[:len(userLine)-20] + answerLine, observe.EvidenceUnusable},
		"NULs in the only turn":         {userLine[:20] + "\x00\x00" + userLine[20:], observe.EvidenceUnusable},
		"a long line before the turn":   {`{"x":"` + strings.Repeat("y", 300<<10) + "\"}\n" + userLine, observe.EvidenceResumable},
		"a prompt that quotes a turn":   {`{"type":"last-prompt","lastPrompt":"{\"type\":\"user\"}"}` + "\n", observe.EvidenceUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			ref := claudeRef(t)
			write(t, transcriptOf(ref, "-src-web"), c.content)
			var eyes Eyes
			got := eyes.Evidence(ref)
			assert.Equal(t, c.want, got.State, got.Message)
			assert.Equal(t, transcriptOf(ref, "-src-web"), got.Path)
			assert.Equal(t, got, eyes.Evidence(ref), "a second look finds the same")
		})
	}
}

func TestARealTranscriptIsResumable(t *testing.T) {
	ref := claudeRef(t)
	content, err := os.ReadFile("testdata/claude-transcript.jsonl")
	require.NoError(t, err)
	write(t, transcriptOf(ref, "-src-web"), string(content))
	assert.Equal(t, observe.EvidenceResumable, new(Eyes).Evidence(ref).State)
}

func TestOnlyAProvenAbsenceIsAbsent(t *testing.T) {
	loop := func(t *testing.T, name string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.Symlink(name, name))
	}
	for name, c := range map[string]struct {
		arrange func(t *testing.T, ref *observe.ConversationRef)
		want    observe.EvidenceState
	}{
		"no config directory": {func(*testing.T, *observe.ConversationRef) {}, observe.EvidenceAbsent},
		"no config directory any more": {func(_ *testing.T, ref *observe.ConversationRef) {
			ref.Ran = true
		}, observe.EvidenceUnknown},
		"a config directory that is not mounted": {func(t *testing.T, ref *observe.ConversationRef) {
			ref.Ran = true
			require.NoError(t, os.MkdirAll(ref.ConfigDirectory, 0o755))
		}, observe.EvidenceUnknown},
		"no transcript in the one that it had": {func(t *testing.T, ref *observe.ConversationRef) {
			ref.Ran = true
			write(t, filepath.Join(ref.ConfigDirectory, "projects", "-src-web", "other.jsonl"), userLine)
		}, observe.EvidenceAbsent},
		"no transcript": {func(t *testing.T, ref *observe.ConversationRef) {
			write(t, filepath.Join(ref.ConfigDirectory, "projects", "-src-web", "other.jsonl"), userLine)
		}, observe.EvidenceAbsent},
		"a file where a project would be": {func(t *testing.T, ref *observe.ConversationRef) {
			write(t, filepath.Join(ref.ConfigDirectory, "projects", "notes"), "")
		}, observe.EvidenceAbsent},
		"a directory that cannot be read": {func(t *testing.T, ref *observe.ConversationRef) {
			loop(t, filepath.Join(ref.ConfigDirectory, "projects"))
		}, observe.EvidenceUnknown},
		"one project that cannot be read": {func(t *testing.T, ref *observe.ConversationRef) {
			loop(t, filepath.Join(ref.ConfigDirectory, "projects", "a"))
			write(t, filepath.Join(ref.ConfigDirectory, "projects", "-src-web", "other.jsonl"), userLine)
		}, observe.EvidenceUnknown},
		"a transcript that cannot be read": {func(t *testing.T, ref *observe.ConversationRef) {
			loop(t, transcriptOf(*ref, "-src-web"))
		}, observe.EvidenceUnknown},
		"a pipe in its place": {func(t *testing.T, ref *observe.ConversationRef) {
			write(t, filepath.Join(ref.ConfigDirectory, "projects", "-src-web", "x"), "")
			require.NoError(t, syscall.Mkfifo(transcriptOf(*ref, "-src-web"), 0o600))
		}, observe.EvidenceUnknown},
		"an unusable one beside one that cannot be read": {func(t *testing.T, ref *observe.ConversationRef) {
			write(t, transcriptOf(*ref, "a"), modeLine)
			loop(t, transcriptOf(*ref, "b"))
		}, observe.EvidenceUnknown},
		"several, and one of them proves": {func(t *testing.T, ref *observe.ConversationRef) {
			loop(t, transcriptOf(*ref, "a"))
			write(t, transcriptOf(*ref, "b"), modeLine)
			write(t, transcriptOf(*ref, "c"), userLine)
		}, observe.EvidenceResumable},
		"an unknown config directory": {func(_ *testing.T, ref *observe.ConversationRef) {
			ref.ConfigDirectory = ""
		}, observe.EvidenceUnknown},
		"a relative config directory": {func(_ *testing.T, ref *observe.ConversationRef) {
			ref.ConfigDirectory = ".claude"
		}, observe.EvidenceUnknown},
		"a home that is not mounted": {func(t *testing.T, ref *observe.ConversationRef) {
			require.NoError(t, os.RemoveAll(ref.Home))
		}, observe.EvidenceUnknown},
		"no id": {func(_ *testing.T, ref *observe.ConversationRef) { ref.ID = "" }, observe.EvidenceUnknown},
		"no class": {func(_ *testing.T, ref *observe.ConversationRef) {
			ref.Class = nil
		}, observe.EvidenceUnknown},
		"a pattern that is none": {func(t *testing.T, ref *observe.ConversationRef) {
			write(t, transcriptOf(*ref, "-src-web"), userLine)
			ref.Class.Conversation.TranscriptPattern = "("
		}, observe.EvidenceUnknown},
		"a class without a transcript": {func(_ *testing.T, ref *observe.ConversationRef) {
			ref.Class = &spec.ClientClassSpec{}
		}, observe.EvidenceResumable},
		"any content, without a pattern": {func(t *testing.T, ref *observe.ConversationRef) {
			ref.Class.Conversation = spec.ClassConversation{Transcript: "$(HOME)/chats/$(CONVERSATION_ID).json"}
			write(t, filepath.Join(ref.Home, "chats", ref.ID+".json"), "{\n  \"turns\": []\n}")
		}, observe.EvidenceResumable},
		"NULs, without a pattern": {func(t *testing.T, ref *observe.ConversationRef) {
			ref.Class.Conversation.TranscriptPattern = ""
			write(t, transcriptOf(*ref, "-src-web"), "\x00\x00\n\x00")
		}, observe.EvidenceUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			ref := claudeRef(t)
			c.arrange(t, &ref)
			got := new(Eyes).Evidence(ref)
			assert.Equal(t, c.want, got.State, got.Message)
			assert.NotEmpty(t, got.Message)
		})
	}
}

func TestAnIDWithTheCharactersOfAGlobMatchesItsOwnFileOnly(t *testing.T) {
	for _, id := range []string{"*", "?*", "[0-9]*", `\*`, "a{b}"} {
		ref := claudeRef(t)
		ref.ConfigDirectory = filepath.Join(ref.Home, "config [1]*")
		write(t, transcriptOf(ref, "-src-web"), userLine)
		ref.ID = id
		assert.Equal(t, observe.EvidenceAbsent, new(Eyes).Evidence(ref).State, id)
		write(t, transcriptOf(ref, "-src-web"), userLine)
		got := new(Eyes).Evidence(ref)
		assert.Equal(t, observe.EvidenceResumable, got.State, id)
		assert.Equal(t, transcriptOf(ref, "-src-web"), got.Path)
	}
}

func TestWhatATranscriptHasProvenIsLookedAtAgain(t *testing.T) {
	ref := claudeRef(t)
	name := transcriptOf(ref, "-src-web")
	var eyes Eyes
	state := func() observe.EvidenceState { return eyes.Evidence(ref).State }

	write(t, name, modeLine+userLine)
	assert.Equal(t, observe.EvidenceResumable, state())
	require.NoError(t, os.Truncate(name, 0))
	assert.Equal(t, observe.EvidenceUnusable, state(), "emptied, and still the same file")
	write(t, name, strings.Repeat("\x00", len(modeLine+userLine)))
	assert.Equal(t, observe.EvidenceUnusable, state(), "as long as before")
	write(t, name, userLine)
	assert.Equal(t, observe.EvidenceResumable, state())
	require.NoError(t, os.Remove(name))
	assert.Equal(t, observe.EvidenceAbsent, state())
	write(t, transcriptOf(ref, "-elsewhere"), userLine)
	assert.Equal(t, observe.EvidenceResumable, state())
}

func TestAFileWithoutATurnIsReadAgainOnceItHasChanged(t *testing.T) {
	ref := claudeRef(t)
	name := transcriptOf(ref, "-src-web")
	write(t, name, modeLine)
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(name, past, past))
	counted := &countingDisk{}
	eyes := Eyes{disk: counted}
	assert.Equal(t, observe.EvidenceUnusable, eyes.Evidence(ref).State)
	first := counted.bytes()
	assert.Positive(t, first)
	assert.Equal(t, observe.EvidenceUnusable, eyes.Evidence(ref).State)
	assert.Equal(t, first, counted.bytes(), "it is as it was, and is not read again")
	write(t, name, modeLine+userLine)
	assert.Equal(t, observe.EvidenceResumable, eyes.Evidence(ref).State)
}

// Of a transcript of 100 MB no more is read than it takes.
func TestALargeTranscriptIsNotReadWhole(t *testing.T) {
	ref := claudeRef(t)
	name := transcriptOf(ref, "-src-web")
	write(t, name, modeLine+userLine)
	require.NoError(t, os.Truncate(name, 100<<20))
	counted := &countingDisk{}
	eyes := Eyes{disk: counted}
	assert.Equal(t, observe.EvidenceResumable, eyes.Evidence(ref).State)
	assert.Less(t, counted.bytes(), 1<<20)
	before := counted.bytes()
	assert.Equal(t, observe.EvidenceResumable, eyes.Evidence(ref).State)
	assert.Equal(t, len(userLine), counted.bytes()-before, "the line that has proven it")
}

func TestALineThatIsTooLongToJudgeProvesNothing(t *testing.T) {
	never := func([]byte) bool { return false }
	_, length, err := findLine(bytes.NewReader(bytes.Repeat([]byte("y"), maxLine+1)), never)
	assert.Zero(t, length)
	require.ErrorIs(t, err, errLongLine)
	_, length, err = findLine(bytes.NewReader(make([]byte, maxLine+(1<<20))), never)
	assert.Zero(t, length)
	require.NoError(t, err, "NULs are nothing, however many")
}

func TestADeadMountDoesNotHoldTheCaller(t *testing.T) {
	ref := claudeRef(t)
	write(t, transcriptOf(ref, "-src-web"), userLine)
	mount := &deadMount{dir: filepath.Join(ref.ConfigDirectory, "projects"), back: make(chan struct{})}
	eyes := Eyes{disk: mount, Patience: 20 * time.Millisecond}
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			got := eyes.Evidence(ref)
			assert.Equal(t, observe.EvidenceUnknown, got.State)
			assert.NotEmpty(t, got.Message)
		})
	}
	callers.Wait()
	assert.Equal(t, observe.EvidenceUnknown, eyes.Evidence(ref).State)
	require.Eventually(t, func() bool { return mount.waiting() == 1 }, time.Minute, time.Millisecond)
	for _, id := range []string{"b", "c", "d", "e", "f", "g"} {
		other := ref
		other.ID = id
		assert.Equal(t, observe.EvidenceUnknown, eyes.Evidence(other).State)
	}
	require.Eventually(t, func() bool { return mount.waiting() == maxStuck }, time.Minute, time.Millisecond)

	healthy := claudeRef(t)
	write(t, transcriptOf(healthy, "-src-web"), userLine)
	eyes.Patience = time.Minute
	assert.Equal(t, observe.EvidenceResumable, eyes.Evidence(healthy).State, "other places are looked at")
	close(mount.back)
	require.Eventually(t, func() bool { return eyes.Evidence(ref).State == observe.EvidenceResumable }, time.Minute, time.Millisecond)
	assert.LessOrEqual(t, mount.waiting(), maxStuck+1, "one look for a question, and few for a place, while it did not answer")
}

// countingDisk counts what is read of files.
type countingDisk struct {
	system
	mu   sync.Mutex
	read int
}

func (d *countingDisk) bytes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read
}

func (d *countingDisk) Open(name string) (file, error) {
	f, err := d.system.Open(name)
	return countingFile{f, d}, err
}

type countingFile struct {
	file
	disk *countingDisk
}

func (f countingFile) note(n int) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.read += n
}

func (f countingFile) Read(into []byte) (int, error) {
	n, err := f.file.Read(into)
	f.note(n)
	return n, err
}

func (f countingFile) ReadAt(into []byte, at int64) (int, error) {
	n, err := f.file.ReadAt(into, at)
	f.note(n)
	return n, err
}

// deadMount does not answer for one directory until it is back.
type deadMount struct {
	system
	dir  string
	back chan struct{}
	mu   sync.Mutex
	held int
}

func (d *deadMount) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

func (d *deadMount) Names(dir string) ([]string, error) {
	if dir == d.dir {
		d.mu.Lock()
		d.held++
		d.mu.Unlock()
		<-d.back
	}
	return d.system.Names(dir)
}
