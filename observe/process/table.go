// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "github.com/muxlet/muxlet/observe"

// Table is the process table of this system, with the leases of one runtime
// directory, as one value. Its methods are the functions of this package.
type Table struct {
	// LeasePath is the file of a session's lease.
	LeasePath func(uid string) string
}

// Identify is the function of that name.
func (Table) Identify(pid int) (observe.Process, observe.Liveness) { return Identify(pid) }

// State is the function of that name.
func (Table) State(p observe.Process) observe.Liveness { return State(p) }

// MarkOf is the function of that name.
func (Table) MarkOf(pid int) (observe.MarkedProcess, error) { return MarkOf(pid) }

// Scan is the function of that name.
func (Table) Scan(instance string) ([]observe.MarkedProcess, error) { return Scan(instance) }

// Descendants is the function of that name.
func (Table) Descendants(p observe.Process) ([]observe.Process, error) { return Descendants(p) }

// Engine is the function of that name.
func (Table) Engine(client observe.Process, executable string) (observe.Process, error) {
	return Engine(client, executable)
}

// FindServers is the function of that name.
func (Table) FindServers(socket string) ([]observe.Process, error) { return FindServers(socket) }

// Lease says who holds the lease of a session.
func (t Table) Lease(uid string) observe.Lease { return LeaseOf(t.LeasePath(uid)) }
