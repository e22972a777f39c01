// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	one     = "0f6f4a3c-1d1e-4c55-9a4e-2b6f0c9d8e7f"
	another = "9a4e2b6f-1d1e-4c55-9a4e-0f6f4a3c8e7f"
)

func TestBootIDIsReadWithoutWhiteSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "boot_id")
	for _, content := range []string{one, one + "\n", " \n" + one + "\r\n"} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		id, err := Read(path)
		require.NoError(t, err)
		require.Equal(t, one, id)
	}
}

func TestBootIDOfThisHostIsRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	id, err := Read("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	require.Equal(t, DaemonRestarted, Compare(id, id))
}

func TestWhatIsNoBootIDIsAnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "boot_id")
	for name, content := range map[string]string{
		"empty":      "",
		"truncated":  one[:20],
		"other word": "none",
		"two":        one + "\n" + another,
		"braces":     "{" + one + "}",
		"no hyphens": strings.ReplaceAll(one, "-", ""),
		"urn":        "urn:uuid:" + one,
		"no hex":     strings.Replace(one, "0f6f", "0z6f", 1),
		"very long":  strings.Repeat(one, 1<<15),
		"NUL":        one + "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			_, err := Read(path)
			require.ErrorContains(t, err, "not a UUID")
			require.NotContains(t, err.Error(), "none", "the content is not repeated")
		})
	}
	t.Run("missing", func(t *testing.T) {
		_, err := Read(filepath.Join(dir, "missing"))
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
	t.Run("directory", func(t *testing.T) {
		_, err := Read(dir)
		require.Error(t, err)
	})
	t.Run("pipe that nobody writes", func(t *testing.T) {
		pipe := filepath.Join(dir, "pipe")
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		_, err := Read(pipe)
		require.Error(t, err)
	})
}

func TestChangeIsKnownOnlyFromTwoGoodIDs(t *testing.T) {
	unreadable := errors.New("unreadable")
	for name, c := range map[string]struct {
		stored, current string
		errs            []error
		want            Change
	}{
		"equal":              {one, one, nil, DaemonRestarted},
		"equal but for case": {one, strings.ToUpper(one), nil, DaemonRestarted},
		"different":          {one, another, nil, HostRebooted},
		"none stored":        {"", one, nil, Unknown},
		"none current":       {one, "", nil, Unknown},
		"neither":            {"", "", nil, Unknown},
		"equal rubbish":      {"x", "x", nil, Unknown},
		"stored truncated":   {one[:20], one, nil, Unknown},
		"no errors":          {one, one, []error{nil, nil}, DaemonRestarted},
		"one error":          {one, one, []error{nil, unreadable}, Unknown},
		"error of different": {one, another, []error{unreadable}, Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Compare(c.stored, c.current, c.errs...))
		})
	}
}

func TestChangesAreTheWordsOfTheLog(t *testing.T) {
	require.Equal(t, "unknown", Unknown.String())
	require.Equal(t, "host rebooted", HostRebooted.String())
	require.Equal(t, "daemon restarted", DaemonRestarted.String())
	require.Equal(t, "Change(9)", Change(9).String())
	require.Equal(t, Unknown, *new(Change))
}
