// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strconv"
	"strings"
)

// The variables that a client finds in its environment.
const (
	// EnvClient carries the client's Mark.
	EnvClient = "MUXLET_CLIENT"
	// EnvSession carries the session's name at the client's start.
	EnvSession = "MUXLET_SESSION"
	// EnvReports carries the path of the socket that takes the reports of its hooks.
	EnvReports = "MUXLET_REPORTS"
)

// The pane options by which muxlet knows its panes. tmux lets an option fall
// through from wider scopes: compare whole values.
const (
	OptionInstance    = "@muxlet-instance"
	OptionUID         = "@muxlet-uid"
	OptionName        = "@muxlet-name"
	OptionIncarnation = "@muxlet-incarnation"
	OptionAttempt     = "@muxlet-attempt"
	OptionRole        = "@muxlet-role"
	// OptionBase is how many lines of history are older than the incarnation.
	OptionBase = "@muxlet-history-base"
)

// OptionTurn is the pane option that says how far the hand-over of a turn has come in
// that pane: a TurnStep. It is set in the command line of the act itself, and so proves
// what was done by a daemon that did not live to see it.
const OptionTurn = "@muxlet-turn"

// TurnStep is the value of OptionTurn once the prompt of a turn was pasted, and so many
// submit keys were typed after it.
func TurnStep(turn string, keys int) string { return turn + "/" + strconv.Itoa(keys) }

// KeysAfter is how many submit keys were typed after the paste of a turn, by the value of
// OptionTurn; false when it does not say that the turn was pasted.
func KeysAfter(step, turn string) (keys int, pasted bool) {
	count, found := strings.CutPrefix(step, turn+"/")
	keys, err := strconv.Atoi(count)
	return keys, found && err == nil && keys >= 0
}

// OptionLaunched is the pane option that holds the pid which the pane had when a
// launcher was started in it. A person's own respawn keeps every option and
// changes the pid: what runs then is theirs.
const OptionLaunched = "@muxlet-launched-pid"

// OptionSession is the session option that says for which session of ours a tmux
// session was made: SessionLabel. It has a name of its own so that no pane takes
// it for a label, and it stays when our pane is gone and a person's panes are not.
const OptionSession = "@muxlet-session"

// SessionLabel is the value of OptionSession.
func SessionLabel(instance, uid string) string { return instance + "." + uid }

// OptionServerInstance is the server option that says whose tmux server it is.
// It has a name of its own so that no pane inherits it as its label.
const OptionServerInstance = "@muxlet-server-instance"

// OptionConfiguration is the server option that says which configuration of ours the server
// was given last.
const OptionConfiguration = "@muxlet-configuration"

// What the status line of our tmux server tells of the sessions that wait for a person, in
// server options: how many, the name of the one that waits longest, and until when that
// holds without another word of the daemon, in seconds since 1970.
const (
	OptionWaiting        = "@muxlet-waiting"
	OptionWaitingLongest = "@muxlet-waiting-longest"
	OptionWaitingUntil   = "@muxlet-waiting-until"
)

// markParts is the number of parts of a mark's text.
const markParts = 6

// String is the mark as the variable EnvClient carries it:
// <instance>/<uid>/<incarnation>/<attempt>/<pid>/<ticks>.
func (m Mark) String() string {
	return fmt.Sprintf("%s/%s/%d/%s/%d/%d",
		m.Instance, m.UID, m.Incarnation, m.Attempt, m.Process.PID, m.Process.Ticks)
}

// ParseMark reads the text of a mark. It fails on anything that String does not
// write: a mark is evidence for ending a process, so that a doubtful one is none.
func ParseMark(text string) (Mark, error) {
	parts := strings.Split(text, "/")
	if len(parts) != markParts {
		return Mark{}, fmt.Errorf("parsing client mark: %d parts instead of %d", len(parts), markParts)
	}
	incarnation, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Mark{}, fmt.Errorf("parsing the incarnation of a client mark: %w", err)
	}
	pid, err := strconv.Atoi(parts[4])
	if err != nil {
		return Mark{}, fmt.Errorf("parsing the pid of a client mark: %w", err)
	}
	ticks, err := strconv.ParseUint(parts[5], 10, 64)
	if err != nil {
		return Mark{}, fmt.Errorf("parsing the start ticks of a client mark: %w", err)
	}
	m := Mark{
		Instance: parts[0], UID: parts[1], Attempt: parts[3],
		Incarnation: incarnation, Process: Process{PID: pid, Ticks: ticks},
	}
	return m, m.check(text)
}

// check refuses a mark that names nothing, or that is spelled in another way
// than String spells it.
func (m Mark) check(text string) error {
	switch {
	case m.Instance == "" || m.UID == "" || m.Attempt == "":
		return fmt.Errorf("parsing client mark: an empty part")
	case m.Incarnation < 1 || m.Process.PID < 1 || m.Process.Ticks < 1:
		return fmt.Errorf("parsing client mark: a number below 1")
	case m.String() != text:
		return fmt.Errorf("parsing client mark: not in its usual spelling")
	}
	return nil
}
