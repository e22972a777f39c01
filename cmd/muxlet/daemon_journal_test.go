// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entries collects what would be sent.
type entries struct{ sent []string }

func (e *entries) Write(entry []byte) (int, error) {
	e.sent = append(e.sent, string(entry))
	return len(entry), nil
}

func TestEachLineOfTheLogIsAnEntryWithItsPriorityAndFields(t *testing.T) {
	out := &entries{}
	level := &slog.LevelVar{}
	log := logr.FromSlogHandler(&journalHandler{out: out, level: level})
	log.Info("Recorded event", "session", "shop", "type", "Warning", "reason", "CrashLoopBackOff", "message", "died 3 times")
	log.Info("Recorded event", "session", "shop", "type", "Normal", "reason", "Started")
	log.Error(errors.New("no\nroom"), "Event was not written", "sessionUID", "u-1")
	log.V(1).Info("Decided", "session", "shop")
	level.Set(-1)
	log.V(1).WithValues("panePID", 7).Info("Decided", "requeueAfter", "1s", "reconcileID", "r")
	log.V(2).Info("Traced")
	log.Info("Started daemon")
	assert.Equal(t, []string{
		"MESSAGE=Recorded event: session=shop type=Warning reason=CrashLoopBackOff message=\"died 3 times\"\nPRIORITY=4\nSYSLOG_IDENTIFIER=muxlet\n" +
			"MUXLET_SESSION=shop\nMUXLET_TYPE=Warning\nMUXLET_REASON=CrashLoopBackOff\nMUXLET_MESSAGE=died 3 times\n",
		"MESSAGE=Recorded event: session=shop type=Normal reason=Started\nPRIORITY=6\nSYSLOG_IDENTIFIER=muxlet\nMUXLET_SESSION=shop\nMUXLET_TYPE=Normal\nMUXLET_REASON=Started\n",
		"MESSAGE=Event was not written: err=\"no\\nroom\" sessionUID=u-1\nPRIORITY=3\nSYSLOG_IDENTIFIER=muxlet\n" +
			"MUXLET_ERR\n\x07\x00\x00\x00\x00\x00\x00\x00no\nroom\nMUXLET_SESSION_UID=u-1\n",
		"MESSAGE=Decided: panePID=7 requeueAfter=1s reconcileID=r\nPRIORITY=7\nSYSLOG_IDENTIFIER=muxlet\n" +
			"MUXLET_PANE_PID=7\nMUXLET_REQUEUE_AFTER=1s\nMUXLET_RECONCILE_ID=r\n",
		"MESSAGE=Started daemon\nPRIORITY=6\nSYSLOG_IDENTIFIER=muxlet\n",
	}, out.sent)
}

func TestFieldsOfTheJournalAreNamedByTheKeysOfTheLog(t *testing.T) {
	for key, want := range map[string]string{
		"session": "MUXLET_SESSION", "sessionUID": "MUXLET_SESSION_UID", "incarnation": "MUXLET_INCARNATION", "panePID": "MUXLET_PANE_PID",
		"serverPID": "MUXLET_SERVER_PID", "tmuxSession": "MUXLET_TMUX_SESSION", "err": "MUXLET_ERR", "a.b-c": "MUXLET_A_B_C", "öl": "MUXLET__L",
		strings.Repeat("x", 100): "MUXLET_" + strings.Repeat("X", 57),
	} {
		assert.Equal(t, want, fieldName(key))
	}
}

func TestTheJournalIsKnownByItsStream(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	require.NoError(t, err)
	st, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	assert.True(t, isJournal(f, fmt.Sprintf("%d:%d", st.Dev, st.Ino)))
	for _, stream := range []string{"", "1:2", fmt.Sprintf("%d:%d", st.Dev, st.Ino+1)} {
		assert.False(t, isJournal(f, stream), stream)
	}
}

// The journal may be started again, and its socket may be gone for a while.
func TestWhatTheJournalDoesNotTakeGoesToItsStream(t *testing.T) {
	e := listen(t)
	var stream bytes.Buffer
	j, err := openJournal(e.path, &stream)
	require.NoError(t, err)
	defer func() { _ = j.conn.Close() }()
	write := func(text string) {
		_, err := j.Write(journalEntry(text, priorityError, nil))
		require.NoError(t, err)
	}
	write("first")
	assert.Equal(t, []string{"MESSAGE=first\nPRIORITY=3\nSYSLOG_IDENTIFIER=muxlet\n"}, e.heard())
	require.NoError(t, os.Rename(e.path, e.path+".away"))
	write("second")
	assert.Equal(t, "<3>second\n", stream.String())
	require.NoError(t, os.Rename(e.path+".away", e.path))
	write("third")
	assert.Len(t, e.heard(), 1)
	stream.Reset()
	write(strings.Repeat("x", 16<<20))
	assert.Len(t, stream.String(), len("<3>\n")+journaldLine)
	_, err = openJournal(e.path+".none", &stream)
	require.Error(t, err)
}

func TestLinesThatTheJournalDidNotTakeInTimeAreCounted(t *testing.T) {
	assert.Equal(t, "MESSAGE=Dropped log lines that nobody read: lines=3\nPRIORITY=4\nSYSLOG_IDENTIFIER=muxlet\nMUXLET_LINES=3\n", string(droppedEntry(3)))
}
