// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// journalSocket is where systemd-journald takes entries in its native protocol
// (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).
const journalSocket = "/run/systemd/journal/socket"

// Priorities of syslog(3).
const (
	priorityError   = 3
	priorityWarning = 4
	priorityInfo    = 6
	priorityDebug   = 7
)

// journalBuffer is what one entry may be large, in bytes; journaldLine what is left of its
// message where it has to go another way.
const (
	journalBuffer = 4 << 20
	journaldLine  = 16 << 10
)

// journal writes entries to systemd-journald, each with MESSAGE first. What that does not
// take goes to its stream, line by line, with the priority in front.
type journal struct {
	conn   *net.UnixConn
	socket *net.UnixAddr
	stream io.Writer
}

// isJournal says whether a file is the stream that JOURNAL_STREAM names: that of the journal,
// and not a file or a terminal that was put in its place.
func isJournal(f *os.File, stream string) bool {
	info, err := f.Stat()
	if err != nil || stream == "" {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// openJournal opens the way to the journal. The error says that there is none.
func openJournal(socket string, stream io.Writer) (*journal, error) {
	if _, err := os.Stat(socket); err != nil {
		return nil, fmt.Errorf("find the journal's socket: %w", err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("open a socket for the journal: %w", err)
	}
	// The kernel gives as much of it as it likes.
	_ = conn.SetWriteBuffer(journalBuffer)
	return &journal{conn: conn, socket: &net.UnixAddr{Name: socket, Net: "unixgram"}, stream: stream}, nil
}

// Write sends one entry. Each goes to the socket's path anew, so that a journal that was
// started again gets it.
func (j *journal) Write(entry []byte) (int, error) {
	if _, err := j.conn.WriteToUnix(entry, j.socket); err == nil {
		return len(entry), nil
	}
	message, rest, _ := strings.Cut(string(entry), "\n")
	priority, _, _ := strings.Cut(strings.TrimPrefix(rest, "PRIORITY="), "\n")
	message = strings.TrimPrefix(message, "MESSAGE=")
	if len(message) > journaldLine {
		message = strings.ToValidUTF8(message[:journaldLine], "")
	}
	_, err := fmt.Fprintf(j.stream, "<%s>%s\n", priority, message)
	return len(entry), err
}

// journalHandler makes an entry of each record: MESSAGE, one line that says everything;
// PRIORITY, 3 for errors, 4 for warnings, 6 for changes and 7 for what only a verbosity shows;
// SYSLOG_IDENTIFIER; and each key with its value, as MUXLET_ and the key's words: MUXLET_SESSION,
// MUXLET_SESSION_UID, MUXLET_INCARNATION, MUXLET_REASON, MUXLET_ACTION, MUXLET_ERR …
type journalHandler struct {
	out    io.Writer
	level  slog.Leveler
	attrs  []slog.Attr
	groups string
}

// Enabled says whether a level is logged now.
func (h *journalHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

// WithAttrs adds attributes to what is logged.
func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = append([]slog.Attr{}, h.attrs...)
	for _, a := range attrs {
		with.attrs = append(with.attrs, slog.Attr{Key: h.groups + a.Key, Value: a.Value})
	}
	return &with
}

// WithGroup puts a name before the keys.
func (h *journalHandler) WithGroup(name string) slog.Handler {
	with := *h
	with.groups += name + "."
	return &with
}

// Handle writes one entry.
func (h *journalHandler) Handle(ctx context.Context, r slog.Record) error {
	attrs := append([]slog.Attr{}, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, slog.Attr{Key: h.groups + a.Key, Value: a.Value})
		return true
	})
	message, err := readable(ctx, r, attrs)
	if err != nil {
		return err
	}
	_, err = h.out.Write(journalEntry(message, priorityOf(r.Level, attrs), attrs))
	return err
}

// journalEntry is an entry in the native protocol.
func journalEntry(message string, priority int, attrs []slog.Attr) []byte {
	var b bytes.Buffer
	journalField(&b, "MESSAGE", strings.ReplaceAll(message, "\n", " "))
	journalField(&b, "PRIORITY", strconv.Itoa(priority))
	journalField(&b, "SYSLOG_IDENTIFIER", "muxlet")
	for _, a := range attrs {
		journalField(&b, fieldName(a.Key), a.Value.Resolve().String())
	}
	return b.Bytes()
}

func journalField(b *bytes.Buffer, name, value string) {
	if !strings.Contains(value, "\n") {
		fmt.Fprintf(b, "%s=%s\n", name, value)
		return
	}
	b.WriteString(name + "\n")
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(value)))
	b.Write(length[:])
	b.WriteString(value + "\n")
}

// readable is a record in one line: what the text format says, without time and level, which
// the journal has itself.
func readable(ctx context.Context, r slog.Record, attrs []slog.Attr) (string, error) {
	var b bytes.Buffer
	keys := slog.NewTextHandler(&b, &slog.HandlerOptions{Level: r.Level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.LevelKey && a.Value.Kind() == slog.KindAny || a.Key == slog.MessageKey && a.Value.String() == "") {
			return slog.Attr{}
		}
		return a
	}})
	bare := slog.Record{Level: r.Level}
	bare.AddAttrs(attrs...)
	if err := keys.Handle(ctx, bare); err != nil {
		return "", fmt.Errorf("format a line of the log: %w", err)
	}
	if text := strings.TrimSpace(b.String()); text != "" {
		return r.Message + ": " + text, nil
	}
	return r.Message, nil
}

// priorityOf a record: an event is as urgent as its type.
func priorityOf(level slog.Level, attrs []slog.Attr) int {
	switch {
	case level >= slog.LevelError:
		return priorityError
	case level >= slog.LevelWarn:
		return priorityWarning
	case level < slog.LevelInfo:
		return priorityDebug
	}
	for _, a := range attrs {
		if a.Key == "type" && a.Value.Resolve().String() == "Warning" {
			return priorityWarning
		}
	}
	return priorityInfo
}

// fieldName is a key as the journal takes it: sessionUID is MUXLET_SESSION_UID.
func fieldName(key string) string {
	const longest = 64
	name := []rune("MUXLET_")
	letters := []rune(key)
	for i, r := range letters {
		upper := unicode.IsUpper(r) && i > 0
		if upper && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			name = append(name, '_')
		}
		r = unicode.ToUpper(r)
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			r = '_'
		}
		name = append(name, r)
	}
	return string(name[:min(len(name), longest)])
}
