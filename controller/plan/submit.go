// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/spec"
)

// submit is how a client is given turns, with the defaults filled in.
type submit struct {
	spec.ClassSubmit
	settle time.Duration
	// reports and working say whether the class's clients tell of turns by their hooks or
	// files, and whether the screen shows that one is worked on.
	reports, working bool
}

func submitOf(class *Class) submit {
	s := submit{ClassSubmit: class.Spec.Submit, settle: 300 * time.Millisecond}
	s.reports = class.Spec.Reports != "" && class.Spec.Reports != spec.ReportsNone
	s.working = class.Spec.Working.Pattern != ""
	if s.SettleMilliseconds != nil {
		s.settle = time.Duration(*s.SettleMilliseconds) * time.Millisecond
	}
	if s.Method == "" {
		s.Method = spec.SubmitPaste
	}
	if s.Key == "" {
		s.Key = "Enter"
	}
	if s.Confirm == "" {
		s.Confirm = spec.ConfirmScreen
		if s.reports {
			s.Confirm = spec.ConfirmReport
		}
	}
	if len(s.Arguments) == 0 {
		s.Arguments = []string{"$(PROMPT)"}
	}
	return s
}

// queues says whether a turn may be handed over while the client works.
func (s submit) queues() bool { return s.WhileWorking == spec.WhileWorkingQueue }

// composes says whether the screen shows what stands in the client's input line.
func (s submit) composes() bool { return s.Composer.Pattern != "" }

// method by which a turn is given to the client that runs. Its own queue is of use in
// a conversation that has begun only.
func (p *pass) method(s submit) spec.SubmitMethod {
	c := p.rec.Conversation
	switch {
	case s.Method == spec.SubmitQueue && len(s.Command) > 0 && c != nil && c.Used && c.Begun:
		return spec.SubmitQueue
	case s.Method == spec.SubmitArgument:
		return spec.SubmitArgument
	}
	return spec.SubmitPaste
}

// submitOfClient is that of c's own class; ok is false when that is not in force.
func (p *pass) submitOfClient(c *record.Client) (s submit, ok bool) {
	if c == nil {
		return s, false
	}
	class := p.classOfClient(c)
	if class == nil {
		return s, false
	}
	return submitOf(class), true
}
