// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
// format of /etc/passwd. An account that is not there, or whose shell is not
// known to work or cannot be executed, gets /bin/sh with Supported false. The
// error says that passwd could not be read; the Shell is usable all the same.
func AccountShell(passwd string, uid int) (Shell, error) {
	file, err := os.Open(passwd)
	if err != nil {
		return Shell{Path: fallbackShell}, fmt.Errorf("read the account's shell: %w", err)
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
		return Shell{Path: fallbackShell}, fmt.Errorf("read the account's shell: %w", err)
	}
	return Shell{Path: fallbackShell}, nil
}

func judgeShell(path string) Shell {
	if path == "" {
		// passwd(5): an empty field is /bin/sh.
		return Shell{Path: fallbackShell, Supported: true, Account: fallbackShell}
	}
	info, err := os.Stat(path)
	usable := err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
	if usable && filepath.IsAbs(path) && slices.Contains(shells, filepath.Base(path)) {
		return Shell{Path: path, Supported: true, Account: path}
	}
	return Shell{Path: fallbackShell, Account: path}
}
