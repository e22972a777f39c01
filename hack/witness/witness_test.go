// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test binary is the client as well.
func TestMain(m *testing.M) {
	if os.Getenv("MUXLET_CLIENT") == "the mark" {
		main()
	}
	os.Exit(m.Run())
}

// terminal is one in which a witness runs.
type terminal struct {
	*testing.T
	cmd *exec.Cmd
	tty *os.File
	log string
}

func open(t *testing.T) *terminal {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	w := &terminal{T: t, log: filepath.Join(t.TempDir(), "log")}
	w.cmd = exec.Command(self, w.log, "1ms")
	w.cmd.Env = append(os.Environ(), "MUXLET_SESSION=shop", "MUXLET_CLIENT=the mark")
	w.tty, err = pty.Start(w.cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		_ = w.tty.Close()
	})
	w.shows("* took 0\r\n\r\n> ")
	return w
}

// shows reads until the screen has had the text.
func (w *terminal) shows(text string) {
	w.Helper()
	require.NoError(w, w.tty.SetReadDeadline(time.Now().Add(20*time.Second)))
	seen, buffer := "", make([]byte, 4096)
	for !strings.Contains(seen, text) {
		n, err := w.tty.Read(buffer)
		require.NoError(w, err, "%q", seen)
		seen += string(buffer[:n])
	}
}

func (w *terminal) types(keys string) {
	w.Helper()
	_, err := w.tty.WriteString(keys)
	require.NoError(w, err)
}

// entries of the log: event and text.
func (w *terminal) entries() (out [][2]string) {
	w.Helper()
	data, err := os.ReadFile(w.log)
	require.NoError(w, err)
	for line := range strings.Lines(string(data)) {
		var e entry
		require.NoError(w, json.Unmarshal([]byte(line), &e))
		assert.Equal(w, entry{At: e.At, Event: e.Event, Pid: w.cmd.Process.Pid, Session: "shop", Mark: "the mark", Text: e.Text}, e)
		out = append(out, [2]string{e.Event, e.Text})
	}
	return out
}

func TestAPasteAndItsSubmissionAreWrittenDown(t *testing.T) {
	w := open(t)
	w.types(pasteBegins + "one\rtwo; 'three' 🛒")
	w.types("\x1b[201")
	w.types("~")
	w.shows("> one\r\n  two; 'three' 🛒")
	w.types("!")
	w.shows("🛒!")
	require.Equal(t, [][2]string{{"start", ""}, {"ready", ""}, {"paste", "one\rtwo; 'three' 🛒"}}, w.entries())
	w.types("\r")
	w.shows("* took 1\r\n\r\n> ")
	require.Equal(t, [2]string{"prompt", "one\ntwo; 'three' 🛒!"}, w.entries()[3])
	w.types("\rb\r")
	w.shows("* took 2")
	require.Len(t, w.entries(), 5, "nothing is no prompt")
}

// What the screen shows was written down, whatever comes next.
func TestWhatIsShownAsTakenIsWrittenDownAlready(t *testing.T) {
	w := open(t)
	w.types(pasteBegins + "one" + pasteEnds + "\r")
	w.shows("* took 1")
	require.NoError(t, w.cmd.Process.Kill())
	_ = w.cmd.Wait()
	require.Equal(t, [2]string{"prompt", "one"}, w.entries()[3])
}

func TestAWitnessEndsWithItsTerminal(t *testing.T) {
	w := open(t)
	require.NoError(t, w.tty.Close())
	require.Error(t, w.cmd.Wait())
}
