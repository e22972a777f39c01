// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"io"
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

// The keys run muxlet wherever it is: nothing in a path means anything to tmux or to a
// shell on the way, and the person who has pressed the key is named.
func TestKeysRunMuxletOnAnyPath(t *testing.T) {
	for name, prefix := range map[string]struct{ key, typed string }{
		"default": {"C-b", "\x02"}, "semicolon": {";", ";"}, "quote": {"'", "'"}, "hash": {"#", "#"}, "backslash": {`\`, `\`}, "tilde": {"~", "~"}, "brace": {"{", "{"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "mx")
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			odd := filepath.Join(dir, `a b'c"d#(touch x)#{pid} $HOME ${USER} é ~;`)
			require.NoError(t, os.Mkdir(odd, 0o700))
			binary, ran := filepath.Join(odd, "muxlet;"), filepath.Join(dir, "ran")
			require.NoError(t, os.WriteFile(binary, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" >"+ran+".new; mv "+ran+".new "+ran+"\n"), 0o700))
			conf := filepath.Join(dir, "c")
			require.NoError(t, os.WriteFile(conf, Render(Settings{Prefix: prefix.key, Command: []string{binary, "--state-dir", odd}}), 0o600))

			cmd := exec.Command("tmux", "-u", "-S", filepath.Join(dir, "s"), "-f", conf, "new-session", "-s", "a", "--", "sleep", "1000")
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "HOME=" + dir, "LANG=C.UTF-8"}
			terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
			require.NoError(t, err)
			// tmux throws away what was typed before it takes the terminal (tcflush).
			taken, shown := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(shown)
				if _, err := terminal.Read(make([]byte, 1)); err == nil {
					close(taken)
				}
				_, _ = io.Copy(io.Discard, terminal)
			}()
			tmux := func(args ...string) string {
				out, _ := exec.Command("tmux", append([]string{"-N", "-S", filepath.Join(dir, "s")}, args...)...).CombinedOutput()
				return strings.TrimSpace(string(out))
			}
			t.Cleanup(func() {
				tmux("kill-server")
				_ = cmd.Wait()
				_ = terminal.Close()
				<-shown
			})
			client := ""
			require.Eventually(t, func() bool {
				client = tmux("list-clients", "-F", "#{client_name}")
				return strings.HasPrefix(client, "/dev/")
			}, 20*time.Second, 10*time.Millisecond)
			select {
			case <-taken:
			case <-time.After(20 * time.Second):
				require.Fail(t, "tmux shows nothing")
			}
			// The picker is last: while its popup stands, keys are the popup's.
			for _, press := range []struct{ key, verb string }{{KeyNext, "next"}, {KeyPick, "pick"}} {
				// tmux takes keys within a millisecond of each other, or of the session's last
				// activity, for a paste, which presses no bound key (assume-paste-time).
				for _, typed := range []string{prefix.typed, press.key} {
					<-time.After(5 * time.Millisecond)
					_, err = terminal.WriteString(typed)
					require.NoError(t, err)
				}
				require.Eventually(t, func() bool { _, err := os.Stat(ran); return err == nil }, 20*time.Second, 10*time.Millisecond, press.verb)
				said, err := os.ReadFile(ran)
				require.NoError(t, err)
				assert.Equal(t, []string{"--state-dir", odd, press.verb, "--client", client, ""}, strings.Split(string(said), "\n"))
				require.NoError(t, os.Remove(ran))
			}
			assert.Equal(t, "0", tmux("display-message", "-p", "#{pane_in_mode}"))
			assert.NoFileExists(t, filepath.Join(dir, "x"))
		})
	}
}

func TestAPathThatTmuxWouldChangeGetsNoKeys(t *testing.T) {
	conf := string(Render(Settings{Prefix: "None", Command: []string{"/a\nkill-server"}}))
	assert.NotContains(t, conf, "bind-key")
	assert.NotContains(t, conf, "kill-server")
}
