// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && !e2eagents

package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// -readme writes into the README what the commands print now, where that is not what
// the README shows.
var writeReadme = flag.Bool("readme", false, "write what the commands of README.md print into it")

// shell is a bash that runs one command line after the other.
type shell struct {
	w *World
	// home is how the README calls the world's home directory, and the other way round.
	replaced [][2]string
	in       io.WriteCloser
	answers  *bufio.Scanner
	dir      string
}

// open a shell in a directory of the world.
func (w *World) shell(directory string, replaced ...[2]string) *shell {
	w.Helper()
	s := &shell{w: w, dir: filepath.Join(w.dir, "shell"), replaced: replaced}
	require.NoError(w, os.MkdirAll(s.dir, 0o700))
	require.NoError(w, unix.Mkfifo(filepath.Join(s.dir, "keyboard"), 0o600))
	// attach and the like need a terminal: they get one, and are left again.
	w.write(filepath.Join(s.dir, "rc"), fmt.Sprintf(`
cd %[1]q || exit
socket() { printf '%%s' "${MUXLET_RUNTIME_DIR:-$XDG_RUNTIME_DIR/muxlet}/tmux.sock"; }
muxlet() {
    case " $* " in
    " attach "*|" next "*|*" --attach "*)
        script -qefc "$(printf '%%q ' command muxlet "$@" | sed 's/^command //')" /dev/null <>%[2]q >/dev/null 2>&1 &
        until [ -n "$(tmux -S "$(socket)" list-clients 2>/dev/null)" ] || ! kill -0 $! 2>/dev/null; do command sleep 0.05; done
        tmux -S "$(socket)" detach-client -a 2>/dev/null; tmux -S "$(socket)" list-clients -F '#{client_name}' | while read -r c; do tmux -S "$(socket)" detach-client -t "$c"; done
        wait $! ;;
    *" pick "*)
        : >%[5]q
        script -qefc "muxlet pick" %[5]q <>%[2]q >/dev/null 2>&1 &
        until grep -q checkout-bug %[5]q || ! kill -0 $! 2>/dev/null; do command sleep 0.05; done
        printf '\033' >%[2]q
        wait $! ;;
    *" -w "*) timeout 2 muxlet "$@" || true ;;
    *) command muxlet "$@" ;;
    esac
}
while read -r _; do
    . %[3]q </dev/null >%[4]q 2>&1
    echo $?
done
`, directory, s.dir+"/keyboard", s.dir+"/command", s.dir+"/output", s.dir+"/screen"))
	cmd := exec.Command("bash", "--noprofile", "--norc", filepath.Join(s.dir, "rc"))
	cmd.Dir = w.home
	cmd.Env = slices.Concat(w.env, []string{"USER=me", "MUXLET_E2E_WORLD=" + w.dir + "/"})
	in, err := cmd.StdinPipe()
	require.NoError(w, err)
	out, err := cmd.StdoutPipe()
	require.NoError(w, err)
	require.NoError(w, cmd.Start())
	s.in, s.answers = in, bufio.NewScanner(out)
	w.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return s
}

// run one command line; output as the README would show it.
func (s *shell) run(command string) (output string, code int) {
	s.w.Helper()
	for _, r := range s.replaced {
		command = strings.ReplaceAll(command, r[1], r[0])
	}
	s.w.write(filepath.Join(s.dir, "command"), command+"\n")
	_, err := io.WriteString(s.in, "\n")
	require.NoError(s.w, err)
	require.True(s.w, s.answers.Scan(), "the shell has ended at: %s", command)
	code, err = strconv.Atoi(s.answers.Text())
	require.NoError(s.w, err)
	output = s.w.read(filepath.Join(s.dir, "output"))
	for _, r := range s.replaced {
		output = strings.ReplaceAll(output, r[0], r[1])
	}
	return output, code
}

// onlyLooks are the commands that may be repeated until they show what comes of the ones
// before.
var onlyLooks = regexp.MustCompile(`^(muxlet( get| describe| events| logs| top| diff| validate| apply .*--dry-run| explain| doctor| version| config|$)|cat |ls |tmux )`)

// replay a story and compare what it shows; with -readme, give what is to be shown.
func (s *shell) replay(told story) (corrected map[int][]string) {
	s.w.Helper()
	corrected = map[int][]string{}
	for _, step := range told {
		output, code := s.run(step.command)
		if strings.Contains(step.command, "muxlet daemon") {
			s.w.waitFor("the daemon answers before a person has typed the next line", func() bool {
				seen, _ := s.run("muxlet version")
				return strings.Contains(seen, "\ndaemon ")
			})
		}
		if onlyLooks.MatchString(step.command) && len(step.shown) > 0 && !showsAll(step.shown, screenLines(output)) {
			limit := patience
			if *writeReadme {
				limit = patience / 6
			}
			for end := time.Now().Add(limit); time.Now().Before(end) && !showsAll(step.shown, screenLines(output)); {
				output, code = s.run(step.command)
			}
		}
		if !assert.NotContains(s.w, []int{2, 126, 127}, code, "README.md:%d: %s\n%s", step.line+1, step.command, output) {
			s.w.FailNow()
		}
		if len(step.shown) == 0 || showsAll(step.shown, screenLines(output)) {
			continue
		}
		if *writeReadme {
			corrected[step.line] = screenLines(output)
			continue
		}
		require.Fail(s.w, "The README shows something else", "README.md:%d: $ %s\nshown:\n%s\nprinted:\n%s", step.line+1, step.command,
			strings.Join(step.shown, "\n"), output)
	}
	return corrected
}

// storyTellers make the world of a story and its shell.
var storyTellers = map[string]func(t *testing.T) *shell{
	"agents": agentsShell,
	"tour":   tourShell,
}

func TestTheReadmeShowsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readmeFile)
	require.NoError(t, err)
	stories, _ := readmeStories(string(text))
	var together sync.Mutex
	all := map[int][]string{}
	// The outer test is over when all stories are.
	t.Run("stories", func(t *testing.T) {
		for name, open := range storyTellers {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				screens := open(t).replay(stories[name])
				together.Lock()
				defer together.Unlock()
				maps.Copy(all, screens)
			})
		}
	})
	if *writeReadme && len(all) > 0 {
		require.NoError(t, os.WriteFile(readmeFile, []byte(withScreens(string(text), all)), 0o644))
	}
}

// withScreens is the text with the output of the commands on those lines replaced.
func withScreens(text string, screens map[int][]string) string {
	var out []string
	dropping := false
	for i, line := range strings.Split(text, "\n") {
		if dropping && line != "```" && !strings.HasPrefix(line, "$ ") {
			continue
		}
		dropping = false
		out = append(out, line)
		if screen, ok := screens[i]; ok {
			out = append(out, screen...)
			dropping = true
		}
	}
	return strings.Join(out, "\n")
}
