// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller/export"
	"github.com/muxlet/muxlet/spec/durable"
)

// maxImportFiles bounds the files of an export; many-sessions.yaml with all that its
// settings keep has a tenth of them.
const maxImportFiles = 2_000_000

// importOptions are how a state is imported.
type importOptions struct {
	dryRun, force bool
	maxSize       string
}

func newStateImportCommand(g *globals) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Put an exported state in place; no daemon may run",
		Long: "Put a state that was exported in place of none, while no daemon runs. All of it is verified before\n" +
			"anything is touched; what a newer muxlet has written is refused. A state that is there is refused too:\n" +
			"with --force it is moved aside, never removed. The next daemon resumes the conversations.",
		Example: "  muxlet state import backup.tar.gz\n  muxlet state import backup.tar.gz --dry-run\n  muxlet state import - <backup.tar.gz",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := g.settings()
			if err != nil {
				return err
			}
			return g.importState(cmd.Context(), settings, args[0], o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "verify the file and say what would be done")
	cmd.Flags().BoolVar(&o.force, "force", false, "move a state that is there aside")
	cmd.Flags().StringVar(&o.maxSize, "max-size", "4Gi", "refuse a state that is larger than this once it is unpacked")
	return cmd
}

func (g *globals) importState(ctx context.Context, settings *config.Effective, file string, o importOptions) error {
	size, err := resource.ParseQuantity(o.maxSize)
	if err != nil || size.Sign() <= 0 {
		return usagef("--max-size is %q: it must be a size such as 512Mi or 4Gi", o.maxSize)
	}
	in := io.NopCloser(g.in)
	if file != stdinArgument {
		if in, err = os.Open(file); err != nil {
			return fmt.Errorf("%s cannot be read: %w", file, cause(err))
		}
	}
	defer func() { _ = in.Close() }()
	dir, err := stateDirectory(settings.StateDir)
	if err != nil {
		return err
	}
	held, err := lockForImport(dir, o.dryRun)
	if err != nil {
		return err
	}
	defer held.release()
	if !o.dryRun {
		if err := export.Finish(dir, stateKinds()); err != nil {
			return err
		}
	}
	existing, err := existingState(dir, o.force)
	if err != nil {
		return err
	}
	unpack := func(into string) (export.Summary, error) {
		summary, err := export.Unpack(ctx, in, into, stateKinds(), export.Limits{Files: maxImportFiles, Bytes: size.Value()})
		return summary, explainImport(file, err)
	}
	if o.dryRun {
		summary, err := unpack("")
		if err != nil {
			return err
		}
		return g.tellImport("would be imported (dry run)", summary, dir, existing, "")
	}
	return g.putInPlace(dir, held, o.force, unpack)
}

// existingState says whether there is a state in dir, which is refused without force.
func existingState(dir string, force bool) (bool, error) {
	existing, err := export.Existing(dir, stateKinds())
	if len(existing) > 0 && !force {
		return true, fmt.Errorf("there is a state in %s already: --force moves it aside, or choose another directory with --state-dir", dir)
	}
	return len(existing) > 0, err
}

// finishImport moves over what an import that was broken off has not: the runtime directory
// and worktrees may be beside the state. Its sessions come up all the same.
func finishImport(stateDir string, log logr.Logger) {
	dir, err := stateDirectory(stateDir)
	if err == nil {
		err = export.Finish(dir, stateKinds())
	}
	if err != nil {
		log.Error(err, "An import that was broken off could not be finished")
	}
}

// stateDirectory is where the state is, or will be: a link on the way to it stays.
func stateDirectory(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	if err != nil {
		return "", fmt.Errorf("state directory %s cannot be used: %w", dir, cause(err))
	}
	return real, nil
}

func explainImport(file string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted, nothing was touched")
	case errors.Is(err, durable.ErrNewer):
		return fmt.Errorf("%s is refused, nothing was touched: %w: import it with that muxlet", file, err)
	case errors.Is(err, export.ErrTooLarge):
		return fmt.Errorf("%s is refused, nothing was touched: %w: --max-size takes more", file, err)
	}
	return fmt.Errorf("%s is refused, nothing was touched: %w", file, err)
}

// lockForImport holds the state directory that is there, so that no daemon uses it. A dry
// run only looks.
func lockForImport(dir string, dryRun bool) (*locks, error) {
	held := &locks{held: map[string]*os.File{}}
	path := filepath.Join(dir, "lock")
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return held, nil
	}
	take := func() (*os.File, error) { return lock(path, "state directory "+dir) }
	if dryRun {
		take = func() (*os.File, error) { return tryLock(path) }
	}
	f, err := take()
	if dryRun && errors.Is(err, fs.ErrNotExist) {
		return held, nil
	}
	if errors.Is(err, errLockHeld) {
		return nil, fmt.Errorf("state directory %s is in use by a daemon%s: stop it first", dir, holderIn(path))
	}
	if err != nil {
		return nil, err
	}
	held.held[path] = f
	return held, nil
}

// tryLock takes a lock whose file is there, and leaves what it says.
func tryLock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := takeLock(f); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errLockHeld
		}
		return nil, err
	}
	return f, nil
}

// holderIn is the holder of a lock file, for a message.
func holderIn(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	return holderOf(f)
}

// putInPlace unpacks beside the state directory, and puts the result in its place once it
// is complete. No daemon can take it before that is done: its lock is held too.
func (g *globals) putInPlace(dir string, held *locks, force bool, unpack func(into string) (export.Summary, error)) error {
	clearLeftovers(dir)
	staging, err := export.Stage(dir)
	if err != nil {
		return err
	}
	path := filepath.Join(staging, "lock")
	if held.held[path], err = lock(path, "directory "+staging); err != nil {
		return errors.Join(err, os.RemoveAll(staging))
	}
	summary, err := unpack(staging)
	if err != nil {
		return errors.Join(err, os.RemoveAll(staging))
	}
	existing, err := stillOurs(dir, held, force)
	if err != nil {
		return errors.Join(err, os.RemoveAll(staging))
	}
	another := existing && !sameContent(filepath.Join(dir, "instance"), filepath.Join(staging, "instance"))
	aside, err := export.Place(staging, dir, stateKinds(), g.now())
	if err != nil {
		if aside != "" {
			err = fmt.Errorf("%w; the directory before is %s", err, aside)
		}
		return err
	}
	if aside != "" && !existing {
		// It had no state, and has nothing by now but the lock.
		_ = os.Remove(filepath.Join(aside, "lock"))
		if os.Remove(aside) == nil {
			aside = ""
		}
	}
	if another {
		g.complain("Warning: the state before was another instance's. Clients of its sessions that still run go on without muxlet: end them.")
	}
	return g.tellImport("imported", summary, dir, existing, aside)
}

// stillOurs looks again right before the place is taken. A directory that was missing had
// no lock to hold: unpacking takes a while, and a daemon may have made one meanwhile.
func stillOurs(dir string, held *locks, force bool) (existing bool, err error) {
	if held.held[filepath.Join(dir, "lock")] == nil {
		now, err := lockForImport(dir, false)
		if err != nil {
			return false, err
		}
		maps.Copy(held.held, now.held)
	}
	return existingState(dir, force)
}

func sameContent(one, other string) bool {
	a, errA := os.ReadFile(one)
	b, errB := os.ReadFile(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// clearLeftovers removes what imports have left that were broken off.
func clearLeftovers(dir string) {
	for _, path := range export.Leftovers(dir) {
		f, err := lock(filepath.Join(path, "lock"), "directory "+path)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(path)
		_ = f.Close()
	}
}

func (g *globals) tellImport(done string, s export.Summary, dir string, existing bool, aside string) error {
	g.warnOfExport(s)
	from := s.StateDir
	if s.Host != "" {
		from = s.Host + ":" + from
	}
	lines := []string{fmt.Sprintf("%s: %s into %s", done, contentsOf(s), dir),
		fmt.Sprintf("It was exported from %s by muxlet %s at %s.", from, s.Muxlet, s.CreatedAt.Format("2006-01-02 15:04:05 MST"))}
	switch {
	case aside != "":
		lines = append(lines, "What was there before is in "+aside+".")
	case existing:
		lines = append(lines, "The state that is there would be moved aside.")
	}
	if err := g.say("%s", strings.Join(lines, "\n")); err != nil {
		return err
	}
	g.complain("Manifests, settings and the agents' own files of conversations (such as ~/.claude and ~/.codex) are not in it.\n" +
		"See that they are in place, then: muxlet daemon")
	return nil
}
