// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import "time"

// Composing says what stands in a client's input line.
type Composing int

// The judgements of an input line.
const (
	// ComposingUnknown: the class does not say where it is, or the screen does not show it.
	ComposingUnknown Composing = iota
	// ComposingNothing: it is empty.
	ComposingNothing
	// ComposingPrompt: the prompt that is being handed over, or what stands for a long
	// one.
	ComposingPrompt
	// ComposingOther: something else.
	ComposingOther
)

// Hand is what one look at a client's screen shows for the hand-over of a turn.
type Hand struct {
	// At is when the look began; zero when none was made.
	At time.Time
	// Composing is what stands in the input line.
	Composing Composing
	// Cursor is where the cursor was: a dialog that comes up between a look and the act
	// that rests on it moves it.
	Cursor Cursor
	// Digest of all that the screen showed.
	Digest string
	// Step is the pane's OptionTurn.
	Step string
	// Command: the client takes the prompt for a command of its own, of which no report
	// tells.
	Command bool
	// Working and Attention are what the class's rules make of the same screen, which is
	// newer than what a Sight knows.
	Working   bool
	Attention *Attention
}

// Prompted is a report that a prompt was submitted.
type Prompted struct {
	// At is when the hook ran.
	At time.Time
	// Digest of the prompt (see PromptDigest); empty when the hook did not tell.
	Digest string
}

// Told is what the reports of one client tell of its turns.
type Told struct {
	// Attempt of the client.
	Attempt string
	// Prompted are the latest submissions, oldest first, at most 20.
	Prompted []Prompted
	// Done and Failed are when a turn last ended well, or failed for good; Failure is the
	// client's word for why.
	Done, Failed time.Time
	Failure      string
}
