// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// fakeClient is a scripted client. It writes a line for each start, does what its
// words say, in their order, and then stays.
const fakeClient = `#!/bin/sh
printf '%s\t%s\t%s\t%s\n' "$MUXLET_SESSION" "$MUXLET_CLIENT" "$PWD" "$*" >>'@STARTS@'
while [ $# -gt 0 ]; do
	case $1 in
	say) echo "$2"; shift ;;
	ignore) trap '' HUP TERM ;;
	child)
		case $2 in
		plain) sleep 1000000 & ;;
		group) set -m; sleep 1000000 & set +m ;;
		session) setsid sleep 1000000 & ;;
		esac
		shift ;;
	wait) sleep "$2"; shift ;;
	exit) exit "$2" ;;
	esac
	shift
done
exec sleep 1000000
`

// starts is the file to which every start of a fake client adds a line.
func (w *World) starts() string { return filepath.Join(w.dir, "starts") }

func (w *World) startLines() string {
	data, err := os.ReadFile(w.starts())
	if err != nil {
		return ""
	}
	return string(data)
}

// start of a fake client, as it has written it down itself.
type start struct {
	session     string
	incarnation int64
	pid         int
	directory   string
	words       string
}

// allStarts lists the starts of all fake clients by session.
func (w *World) allStarts() map[string][]start {
	out := map[string][]start{}
	for line := range strings.Lines(w.startLines()) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 || !strings.HasSuffix(line, "\n") {
			continue
		}
		s := start{session: fields[0], directory: fields[2], words: fields[3]}
		s.incarnation, s.pid = partsOf(fields[1])
		out[s.session] = append(out[s.session], s)
	}
	return out
}

// startsOf lists the starts of a session's fake clients.
func (w *World) startsOf(session string) []start { return w.allStarts()[session] }

// countOf the starts of a session's fake clients.
func (w *World) countOf(session string) int { return len(w.startsOf(session)) }

// nth waits until a session's fake client was started n times, and never more,
// and returns the last start. A client runs a moment before it writes that down.
func (w *World) nth(session string, n int) start {
	w.Helper()
	var all []start
	w.waitFor(fmt.Sprintf("start %d of %s", n, session), func() bool {
		all = w.startsOf(session)
		return len(all) >= n
	})
	require.Len(w, all, n, "starts of %s", session)
	return all[n-1]
}

// partsOf a client mark: instance/uid/incarnation/attempt/pid/ticks.
func partsOf(mark string) (incarnation int64, pid int) {
	parts := strings.Split(mark, "/")
	if len(parts) != 6 {
		return 0, 0
	}
	incarnation, _ = strconv.ParseInt(parts[2], 10, 64)
	pid, _ = strconv.Atoi(parts[4])
	return incarnation, pid
}

// document is a Session that runs the fake client. Lines are added below spec.
func (w *World) document(name, words string, lines ...string) string {
	command := []string{strconv.Quote(w.dir + "/bin/fake")}
	for word := range strings.FieldsSeq(words) {
		command = append(command, strconv.Quote(word))
	}
	return document(name, "["+strings.Join(command, ", ")+"]", w.home+"/work", lines...)
}

func document(name, command, directory string, lines ...string) string {
	text := fmt.Sprintf(`apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata:
  name: %s
spec:
  client:
    command: %s
    shellMode: None
  workspace:
    directory: %s
`, name, command, directory)
	for _, line := range lines {
		text += "  " + line + "\n"
	}
	return text
}

// declare writes the document of a fake client into a file of its own.
func (w *World) declare(name, words string, lines ...string) {
	w.Helper()
	w.write(name+".yaml", w.document(name, words, lines...))
}
