// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable"
)

const (
	// DefaultSpoolLimit bounds a spool that says nothing else, in bytes.
	DefaultSpoolLimit = 64 << 20
	// spoolCharge is the block of a file system, in bytes: what a file takes is counted in
	// these. Nearly all reports take one; longestReport, with a path of nothing but escaped
	// characters, eight.
	spoolCharge   = 4 << 10
	longestReport = 8 * spoolCharge
	// maxSpooled bounds what is read of one file, in bytes.
	maxSpooled = 1 << 20
	// sweepAfter is how old a temporary file is when its hook has ended for certain.
	sweepAfter = time.Minute
	// limitFile in the spool holds its limit for the hooks, which know no settings.
	limitFile = "limit"
)

// How the names of spooled reports end. Those that only show what a client does
// are the first to go when there is no room: they are worth little when they are
// old, while each of the others begins or ends a turn or a conversation.
const (
	turnSuffix     = "-turn.json"
	activitySuffix = "-activity.json"
	damagedSuffix  = ".damaged"
)

// Spooled is one report that waits on disk.
type Spooled struct {
	observe.Report
	// Path of its file.
	Path string
}

// Remove takes a report that was handled out of the spool.
func (s Spooled) Remove() error {
	if err := os.Remove(s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove spooled report: %w", err)
	}
	return nil
}

// Spool keeps a report in the directory until a daemon reads it. The file is
// complete or not there; at the deadline its sync is no longer waited for, since a
// report that a loss of power may damage is better than none. When the spool is
// full, the oldest reports of mere activity make room, then the oldest of all: the
// newest of a client names the conversation that it has now.
func Spool(dir string, r observe.Report, deadline time.Time) error {
	data, err := durable.Encode(version, r)
	if err != nil {
		return fmt.Errorf("spool report: %w", err)
	}
	if err := makeRoom(dir, int64(len(data))); err != nil {
		return fmt.Errorf("make room for a report: %w", err)
	}
	if err := write(dir, spoolName(r), data, deadline); err != nil {
		return fmt.Errorf("spool report: %w", err)
	}
	return nil
}

// spoolName sorts by the time of the report.
func spoolName(r observe.Report) string {
	suffix := turnSuffix
	switch r.Kind {
	case observe.ReportWorking, observe.ReportAsked, observe.ReportOther:
		suffix = activitySuffix
	case observe.ReportStarted, observe.ReportPrompted, observe.ReportDone, observe.ReportFailed, observe.ReportEnded:
	}
	return fmt.Sprintf("%019d-%d%s", r.At.UnixNano(), os.Getpid(), suffix)
}

func write(dir, name string, data []byte, deadline time.Time) (err error) {
	f, err := os.CreateTemp(dir, durable.TempPrefix+name+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := until(deadline, func() error { return errors.Join(f.Sync(), f.Close()) }); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	// The file is there: what a failed sync of the directory costs, a loss of power
	// alone can take.
	_ = until(deadline, func() error { return durable.SyncDir(dir) })
	return nil
}

// until waits for what f returns, until the deadline and then no longer.
func until(deadline time.Time, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Until(deadline)):
		return nil
	}
}

// makeRoom removes as many files as are too many beside one more of that size. Hooks
// that do so at the same time may each remove one.
func makeRoom(dir string, size int64) error {
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	limit := int64(limitOf(dir))
	if int64(len(names)+1)*longestReport <= limit {
		return nil
	}
	slices.Sort(names)
	slices.SortStableFunc(names, func(a, b string) int { return worth(a) - worth(b) })
	charges := make([]int64, len(names))
	total := charge(size)
	for i, name := range names {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			charges[i] = charge(info.Size())
		}
		total += charges[i]
	}
	for i, name := range names {
		if total <= limit {
			break
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= charges[i]
	}
	return nil
}

// charge is what a file of that size takes.
func charge(size int64) int64 {
	return max(1, (size+spoolCharge-1)/spoolCharge) * spoolCharge
}

// worth orders the files of a spool by what they are kept for.
func worth(name string) int {
	switch {
	case strings.HasSuffix(name, turnSuffix):
		return 2
	case strings.HasSuffix(name, activitySuffix):
		return 1
	}
	return 0
}

// namesIn are those of the spool's files but for its limit and what is being
// written.
func namesIn(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return name == limitFile || strings.HasPrefix(name, durable.TempPrefix)
	}), nil
}

// SetSpoolLimit writes down how many bytes the spool may take, each report counted
// as 4 KiB at least.
func SetSpoolLimit(dir string, bytes int64) error {
	text := []byte(strconv.FormatInt(bytes, 10) + "\n")
	path := filepath.Join(dir, limitFile)
	if now, err := os.ReadFile(path); err == nil && string(now) == string(text) {
		return nil
	}
	if err := durable.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write the limit of the spool: %w", err)
	}
	return nil
}

func limitOf(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, limitFile))
	if err != nil {
		return DefaultSpoolLimit
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || limit < 0 {
		return DefaultSpoolLimit
	}
	return limit
}

// ReadSpool returns the reports in the directory, the oldest first; none when the
// directory is missing. A damaged one is set aside under another name, and one of
// a newer version or that could not be read is left as it is: the error names each
// of them, and the others are returned with it.
func ReadSpool(dir string) ([]Spooled, error) {
	names, err := namesIn(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the spool of reports: %w", err)
	}
	slices.Sort(names)
	var found []Spooled
	for _, name := range names {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		path := filepath.Join(dir, name)
		r, readErr := readSpooled(path)
		switch {
		case readErr == nil:
			found = append(found, Spooled{Report: r, Path: path})
		case errors.Is(readErr, fs.ErrNotExist):
		case errors.Is(readErr, durable.ErrCorrupt):
			err = errors.Join(err, fmt.Errorf("read spooled report %s: %w: it was set aside", name, readErr), os.Rename(path, path+damagedSuffix))
		default:
			err = errors.Join(err, fmt.Errorf("read spooled report %s: %w", name, readErr))
		}
	}
	return found, errors.Join(err, durable.Sweep(dir, time.Now().Add(-sweepAfter)))
}

func readSpooled(path string) (observe.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return observe.Report{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSpooled))
	if err != nil {
		return observe.Report{}, err
	}
	var r observe.Report
	if err := durable.Decode(data, version, &r); err != nil {
		return observe.Report{}, err
	}
	if err := check(r); err != nil {
		return observe.Report{}, fmt.Errorf("%w: %w", durable.ErrCorrupt, err)
	}
	return r, nil
}
