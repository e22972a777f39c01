// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/spec"
)

// Shell is the program through which a launcher gets a person's environment.
type Shell struct {
	// Path is what is run.
	Path string
	// Supported is false when Path stands in for the account's own shell.
	Supported bool
	// Account is the account's own shell; empty when it is not known.
	Account string
}

// fallbackShell is what an account without a usable shell gets.
const fallbackShell = "/bin/sh"

// shells are the programs, by the last part of their path, of which it is known
// that -lic 'exec "$@"' does what it should.
var shells = []string{"bash", "zsh", "dash", "sh", "fish"}

// AccountShell finds the shell of the account uid in passwd, a file in the
// format of /etc/passwd. An account that is not there, as on macOS or with a
// directory service, has the one that its environment names: given, the value of
// SHELL. A shell that is not known to work or cannot be executed is replaced by
// /bin/sh, with Supported false. The error says that passwd could not be read;
// the Shell is usable all the same.
func AccountShell(passwd string, uid int, given string) (Shell, error) {
	file, err := os.Open(passwd)
	if err != nil {
		return givenShell(given), fmt.Errorf("read the account's shell: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) == 7 && fields[2] == strconv.Itoa(uid) {
			return judgeShell(fields[6]), nil
		}
	}
	if err := lines.Err(); err != nil {
		return givenShell(given), fmt.Errorf("read the account's shell: %w", err)
	}
	return givenShell(given), nil
}

func givenShell(path string) Shell {
	if path == "" {
		return Shell{Path: fallbackShell}
	}
	return judgeShell(path)
}

func judgeShell(path string) Shell {
	if path == "" {
		// passwd(5): an empty field is /bin/sh.
		return Shell{Path: fallbackShell, Supported: true, Account: fallbackShell}
	}
	if whyUnusable(path) == "" {
		return Shell{Path: path, Supported: true, Account: path}
	}
	return Shell{Path: fallbackShell, Account: path}
}

// Problem says in a sentence why another shell stands in for the account's own;
// empty when none does.
func (s Shell) Problem() string {
	switch {
	case s.Supported:
		return ""
	case s.Account == "":
		return "The account is not in /etc/passwd, and SHELL is not set"
	}
	return fmt.Sprintf("The account's shell %s %s", s.Account, whyUnusable(s.Account))
}

// whyUnusable is empty for a shell that is known to work.
func whyUnusable(path string) string {
	base := filepath.Base(path)
	info, err := os.Stat(path)
	switch {
	case base == "nologin" || base == "false":
		return "refuses logins"
	case !slices.Contains(shells, base):
		return fmt.Sprintf("is not one that muxlet knows to work (%s)", strings.Join(shells, ", "))
	case !filepath.IsAbs(path):
		return "is not an absolute path"
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return "cannot be executed"
	}
	return ""
}

// shellProblem: a shell can vanish, or change, while the daemon runs. tmux would
// start a pane that dies at once and says nothing.
func (t *Actuator) shellProblem(l actuate.Launch) string {
	if l.ShellMode == spec.ShellNone {
		return ""
	}
	if why := whyUnusable(t.Shell.Path); why != "" {
		return fmt.Sprintf("The shell %s %s: bring it back, restart the daemon for the account's present shell, or set shellMode None", t.Shell.Path, why)
	}
	return ""
}
