// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"time"

	"github.com/muxlet/muxlet/spec"
)

// Presence says whether a session is declared. Only Removed permits to stop it.
type Presence string

// The kinds of presence. The zero value, that of a session of which nothing is
// known, permits nothing.
const (
	PresenceUnknown Presence = ""
	// Present: a document declares the session, valid or not.
	Present Presence = "Present"
	// Settling: no document declares it, but not yet for long enough.
	Settling Presence = "Settling"
	// Held: no document was seen to declare it, under circumstances that prove
	// nothing. It stays until the document is back or a person confirms.
	Held Presence = "Held"
	// Removed: the session is not wanted any more.
	Removed Presence = "Removed"
)

// DesiredSet is what the manifests want.
type DesiredSet struct {
	// Sessions by name: all that are declared, and all that are known.
	Sessions map[string]Desired
	// Classes that are declared, by name. Class resolves a name.
	Classes map[string]DesiredClass
	// Problems of roots, files and documents, in the order of the reading.
	Problems []spec.Problem
	// NextCheck is when another Reading can bring a removal without any change of
	// a file; zero when nothing settles.
	NextCheck time.Time

	// doubt says why any class may be declared where nobody could look, doubts the same
	// of single ones.
	doubt  string
	doubts map[string]string
}

// Desired is what the manifests want of one session.
type Desired struct {
	Name     string
	Presence Presence
	// Session is the declared one if it is valid, else the last good one; nil if
	// there is none. It is shared and must not be changed.
	Session *spec.Session
	// File and Line of the document, or of the last one; Line 0 when it is not
	// there now.
	File string
	Line int
	// Problems say why the present content is not in use, or which other
	// document is passed over.
	Problems []spec.Problem
	// Reason is one of spec.ReasonAccepted, ReasonInvalid, ReasonDuplicateName
	// (nothing may be started), ReasonRemovalSettling, ReasonRemovalHeld and
	// ReasonRemoved. A session that is Held because its file is damaged has
	// ReasonInvalid.
	Reason string
	// Message is for a person; empty when there is nothing to say.
	Message string
	// Explicit is set for a Removed session that a person asked to delete.
	Explicit bool
}

// Known is what the records say of one session.
type Known struct {
	Name string
	UID  string
	// LastGood is the last valid document; nil if there is none.
	LastGood *spec.Session
	// File that declared it last.
	File string
	// Running says that a client of it is known to live. It decides between two
	// documents of one name; not knowing it starts nothing and stops nothing.
	Running bool
	// Held is the Message under which a removal was held when the record was
	// written; empty when it was not.
	Held string
	// Removal says that a removal was decided when the record was written.
	Removal Removal
}

// Removal says whether a removal was decided. The zero value decides nothing.
type Removal int

// The kinds of removal.
const (
	// NotRemoved: nothing was decided.
	NotRemoved Removal = iota
	// RemovalDecided: it began, and only the document's return ends it.
	RemovalDecided
)

// Policy is how removals are treated.
type Policy struct {
	// Settle is how long a document must be missing.
	Settle time.Duration
	// GuardMin and GuardPercent: a removal is held when at least that many, and
	// at least that percentage of the known sessions, are missing at once.
	GuardMin, GuardPercent int
	// DefaultClass is the client class of a session that names none and has no command
	// of its own. Default: claude.
	DefaultClass string
}
