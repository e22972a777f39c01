// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/spec/durable"
)

// Existing are the files and folders of a state directory that have state in them, one
// name for each at its top; none when it is missing.
func Existing(dir string, kinds Kinds) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state directory: %w", err)
	}
	var names []string
	for _, e := range entries {
		_, known := kinds.of(e.Name())
		if known && e.Type().IsRegular() || e.IsDir() && kinds.folder(e.Name()) && hasFiles(filepath.Join(dir, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func hasFiles(dir string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// stagingMark is in a directory that is not complete yet. What has it and nobody's lock is
// what an import has left that was broken off.
const stagingMark = ".importing"

// Stage makes an empty directory beside dir, of its owner alone, to unpack into.
func Stage(dir string) (string, error) {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("make directory %s: %w", parent, err)
	}
	staging, err := os.MkdirTemp(parent, filepath.Base(dir)+stagingInfix+"*")
	if err != nil {
		return "", fmt.Errorf("make a directory beside %s: %w", dir, err)
	}
	if err := os.WriteFile(filepath.Join(staging, stagingMark), nil, 0o600); err != nil {
		return "", errors.Join(fmt.Errorf("make a directory beside %s: %w", dir, err), os.RemoveAll(staging))
	}
	return staging, nil
}

const (
	stagingInfix = ".import-"
	asideInfix   = ".before-import-"
)

// Leftovers are the directories beside dir that imports have not completed: who holds none
// of their locks may remove them.
func Leftovers(dir string) []string {
	found, err := filepath.Glob(escaped(dir) + stagingInfix + "*")
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(found, func(path string) bool {
		info, err := os.Lstat(filepath.Join(path, stagingMark))
		return err != nil || !info.Mode().IsRegular()
	})
}

// escaped is a path of which filepath.Glob takes nothing for a pattern.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// Place puts a complete directory, which Stage has made, in the place of dir. What is there
// is moved aside, and aside says where; it is empty when nothing was. dir is one or the
// other at every instant, where the file system can exchange two directories. What is in
// dir beside the state, such as a runtime directory with sockets that live, is then moved
// over to the new one.
func Place(staging, dir string, kinds Kinds, now time.Time) (aside string, err error) {
	aside, err = freeName(dir + asideInfix + now.UTC().Format("20060102T150405Z"))
	if err != nil {
		return "", err
	}
	before := placing{filepath.Base(staging), filepath.Base(aside)}
	err = errors.Join(durable.Write(filepath.Join(staging, placingMark), Version, before), os.Remove(filepath.Join(staging, stagingMark)), durable.SyncDir(staging))
	if err != nil {
		return "", fmt.Errorf("complete %s: %w", staging, err)
	}
	complete, err := os.Lstat(staging)
	if err != nil {
		return "", fmt.Errorf("complete %s: %w", staging, err)
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(staging, dir); err != nil {
			return "", notPlaced(staging, dir, complete, err)
		}
		return "", errors.Join(durable.SyncDir(filepath.Dir(dir)), os.Remove(filepath.Join(dir, placingMark)))
	}
	if err := swap(staging, dir, aside); err != nil {
		return "", notPlaced(staging, dir, complete, err)
	}
	if err := durable.SyncDir(filepath.Dir(dir)); err != nil {
		return aside, err
	}
	return aside, Finish(dir, kinds)
}

// placingMark is in a directory that is complete until what is no state was moved over to
// it.
const placingMark = ".placing"

// placing is the content of placingMark: the names beside the directory of what is exchanged
// with it, and of where that is put.
type placing struct{ Staging, Aside string }

// Finish moves over what an import that was broken off has not, which nobody may use
// meanwhile: sockets, leases and workspaces. Who calls it holds the lock of dir.
func Finish(dir string, kinds Kinds) error {
	mark := filepath.Join(dir, placingMark)
	var p placing
	err := durable.Read(mark, Version, &p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && (!isBeside(p.Staging, dir, stagingInfix) || !isBeside(p.Aside, dir, asideInfix)) {
		err = durable.ErrCorrupt
	}
	if err != nil {
		return fmt.Errorf("finish an import: %s cannot be used: %w", mark, err)
	}
	staging, aside := filepath.Join(filepath.Dir(dir), p.Staging), filepath.Join(filepath.Dir(dir), p.Aside)
	if err := os.Rename(staging, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("finish an import: %w", err)
	}
	if err := carryOver(aside, dir, kinds); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.Remove(mark), durable.SyncDir(dir))
}

// notPlaced explains that staging did not get to dir, and removes it if it is still what it
// was: once the two were exchanged it is the state before.
func notPlaced(staging, dir string, complete fs.FileInfo, err error) error {
	if errors.Is(err, unix.EBUSY) {
		err = fmt.Errorf("%w: what is mounted there cannot be moved; unmount it, or choose another directory", err)
	}
	err = fmt.Errorf("put the state in place of %s: %w", dir, err)
	if now, e := os.Lstat(staging); e == nil && os.SameFile(now, complete) {
		return errors.Join(err, os.RemoveAll(staging))
	}
	return fmt.Errorf("%w; the state before is %s", err, staging)
}

// isBeside says whether a name is one that is made for dir, and leads nowhere else.
func isBeside(name, dir, infix string) bool {
	return name == filepath.Base(name) && strings.HasPrefix(name, filepath.Base(dir)+infix)
}

// swap puts staging in the place of dir, and dir at aside.
func swap(staging, dir, aside string) error {
	err := exchange(staging, dir)
	if err == nil {
		return os.Rename(staging, aside)
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return inSteps(staging, dir, aside)
}

// inSteps is swap where two directories cannot be exchanged: for a moment there is none.
func inSteps(staging, dir, aside string) error {
	if err := os.Rename(dir, aside); err != nil {
		return err
	}
	if err := os.Rename(staging, dir); err != nil {
		return errors.Join(err, os.Rename(aside, dir))
	}
	return nil
}

func freeName(name string) (string, error) {
	for n := range 100 {
		free := name
		if n > 0 {
			free = fmt.Sprintf("%s-%d", name, n)
		}
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free, nil
		}
	}
	return "", fmt.Errorf("there is no free name such as %s", name)
}

// carryOver moves what is no state from the directory before to the new one: sockets and
// leases that somebody has open, and workspaces, whose paths are known elsewhere.
func carryOver(from, to string, kinds Kinds) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	for _, e := range entries {
		_, known := kinds.of(e.Name())
		if known || e.IsDir() && kinds.folder(e.Name()) || e.Name() == "lock" || e.Name() == placingMark || strings.HasPrefix(e.Name(), durable.TempPrefix) {
			continue
		}
		if e := move(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); e != nil {
			err = errors.Join(err, fmt.Errorf("move what is no state from %s to %s: %w", from, to, e))
		}
	}
	return errors.Join(err, durable.SyncDir(from), durable.SyncDir(to))
}

// move moves a file or a folder; of a folder that is there by now, what it does not have.
func move(from, to string) error {
	there, err := os.Lstat(to)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(from, to)
	}
	if err != nil || !there.IsDir() {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		err = errors.Join(err, move(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
	}
	return err
}
