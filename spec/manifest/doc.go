// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifest turns directories of YAML into the set of sessions that are
// wanted, and turns a wish of the command line back into the smallest edit of
// the file that declares the session.
//
// Reading is I/O without a decision (Reader), deciding is pure (Resolve), and
// notices of changes are hints (Watcher): losing all of them costs time, never
// correctness.
//
// The package promises that nothing is destroyed by not seeing it: a document
// that is unreadable, damaged or gone under suspicious circumstances leaves its
// session declared with the last valid spec. It never stops anything, never
// writes outside SetSuspend and Remove, and never guesses what a damaged
// document was meant to say.
package manifest
