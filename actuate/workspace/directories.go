// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"

	"github.com/muxlet/muxlet/spec"
)

// Directories is this package as one value, for one environment.
type Directories struct {
	// Lookup gives the value of a variable in a path.
	Lookup    func(name string) (value string, set bool)
	inspector Inspector
}

// Expand resolves a leading ~ and variables.
func (d *Directories) Expand(path string) (string, error) { return Expand(path, d.Lookup) }

// Inspect says whether a client could run in dir: an empty reason, or one of
// spec's with a sentence.
func (d *Directories) Inspect(ctx context.Context, dir string) (reason, message string) {
	f := d.inspector.Inspect(ctx, dir)
	if f.State == Ready {
		return "", ""
	}
	return f.State.Reason(), f.Message
}

// Ensure is the function of that name.
func (d *Directories) Ensure(dir string, t spec.WorkspaceType) error { return Ensure(dir, t) }
