// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec/durable"
)

// ReceiptVersion is the version of the format of a receipt. History: 1, the first.
const ReceiptVersion = 1

// ReceiptPath is the file of an attempt's receipt.
func ReceiptPath(stateDir, attempt string) string {
	return filepath.Join(stateDir, "receipts", attempt+".json")
}

// ReadReceipt reads what the launcher of attempt left. An error that matches
// fs.ErrNotExist proves that there is no receipt; any other one proves nothing.
func ReadReceipt(stateDir, attempt string) (observe.Receipt, error) {
	var r observe.Receipt
	if !idPattern.MatchString(attempt) {
		return r, fmt.Errorf("read receipt: %q does not name an attempt", attempt)
	}
	if err := durable.Read(ReceiptPath(stateDir, attempt), ReceiptVersion, &r); err != nil {
		return observe.Receipt{}, fmt.Errorf("read receipt: %w", err)
	}
	if r.Attempt != attempt {
		return observe.Receipt{}, fmt.Errorf("read receipt: %w: it is about attempt %q", durable.ErrCorrupt, r.Attempt)
	}
	return r, nil
}

// Receipts are the receipts under one state directory.
type Receipts struct {
	// StateDir is absolute.
	StateDir string
}

// Read is ReadReceipt.
func (r Receipts) Read(attempt string) (observe.Receipt, error) {
	return ReadReceipt(r.StateDir, attempt)
}

// Forget removes the receipt of an attempt that was accounted for. One that
// cannot be removed costs room only.
func (r Receipts) Forget(attempt string) {
	if idPattern.MatchString(attempt) {
		_ = os.Remove(ReceiptPath(r.StateDir, attempt))
	}
}

// Prune removes the receipts that were last changed before the given time and
// whose attempt is not accounted for, and what crashed writes have left.
func (r Receipts) Prune(before time.Time, accounted func(attempt string) bool) error {
	dir := filepath.Join(r.StateDir, "receipts")
	err := durable.Sweep(dir, before)
	entries, readErr := os.ReadDir(dir)
	if !errors.Is(readErr, fs.ErrNotExist) {
		err = errors.Join(err, readErr)
	}
	for _, e := range entries {
		attempt, isReceipt := strings.CutSuffix(e.Name(), ".json")
		info, infoErr := e.Info()
		if !isReceipt || infoErr != nil || !info.ModTime().Before(before) || accounted(attempt) {
			continue
		}
		r.Forget(attempt)
	}
	return err
}

// write makes r, completed by what is the same in each receipt, durable.
func (l *launcher) write(r observe.Receipt) error {
	r.Attempt, r.Process, r.At = l.Attempt, l.self, l.Now().UTC()
	r.Home, r.ConfigDirectory = l.dirs.home, l.dirs.config
	r.Scope, r.ScopeProblem = l.scope, l.scopeProblem
	path := ReceiptPath(l.StateDir, l.Attempt)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the directory of receipts: %w", err)
	}
	if err := durable.Write(path, ReceiptVersion, r); err != nil {
		return fmt.Errorf("write receipt: %w", err)
	}
	return nil
}
