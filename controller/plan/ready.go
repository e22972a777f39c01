// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// sighted says whether Sight is of this client.
func (p *pass) sighted(c *record.Client) bool {
	return !p.Sight.At.IsZero() && !p.Sight.At.Before(c.StartedAt)
}

// classOfClient is the class that c was started by, as far as it is in force; nil when
// the session has another one by now.
func (p *pass) classOfClient(c *record.Client) *Class {
	if p.class == nil || c.Launched != nil && c.Launched.ClientClassName != p.class.Name {
		return nil
	}
	return p.class
}

// watched says whether c's class tells when a client is ready. Any other client is as
// soon as it was executed.
func (p *pass) watched(c *record.Client) bool {
	class := p.classOfClient(c)
	return class != nil && (class.Spec.Ready.Pattern != "" || class.Spec.Reports != "" && class.Spec.Reports != spec.ReportsNone)
}

// waitUntilReady: a client that lives may not be usable: it starts, or it asks
// something that only a person may answer. Neither is a reason to end it, but for one
// that shows nothing at all for as long as a start may take.
func (p *pass) waitUntilReady(c *record.Client) bool {
	if p.sighted(c) && p.Sight.Attention != nil {
		// It may wait for days: what its client shows next asks for another pass.
		return p.say(p.Sight.Attention.Reason, p.Sight.Attention.Message, 0)
	}
	if !p.watched(c) || !c.ReadyAt.IsZero() {
		return false
	}
	if p.sighted(c) && p.Sight.Readiness == observe.Ready {
		c.ReadyAt = p.Now
		if conv := p.rec.Conversation; conv != nil {
			conv.NotFound = 0
		}
		return false
	}
	age := p.Now.Sub(c.StartedAt)
	switch {
	case p.stayedBlank(c):
		return p.beginStop(record.StopStartTimeout, c.Process)
	case age >= p.readyTimeout() && p.sighted(c) && !p.Sight.Blank:
		return p.say(spec.ReasonQuestion, fmt.Sprintf("pid %d is not ready after %s and shows something that class %s does not know: `muxlet attach %s` and answer it",
			c.Process.PID, p.readyTimeout(), p.class.Name, p.rec.Name), 0)
	}
	return p.say(spec.ReasonNotReady, fmt.Sprintf("incarnation %d runs as pid %d and is not ready yet", c.Incarnation, c.Process.PID), min(max(pollSlow, age/4), time.Second))
}

// stayedBlank says whether the screen still shows nothing at the end of the time that
// a start may take.
func (p *pass) stayedBlank(c *record.Client) bool {
	limit := time.Minute
	if c.Launched != nil {
		limit = startupTimeout(c.Launched)
	}
	return p.sighted(c) && p.Sight.Blank && p.Sight.At.Sub(c.StartedAt) >= limit
}

func (p *pass) readyTimeout() time.Duration {
	if s := p.class.Spec.Ready.TimeoutSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 30 * time.Second
}

// inFlight says whether a start still takes its place among those that may be in
// flight at once.
func (p *pass) inFlight() bool {
	c := p.rec.Client
	switch {
	case p.rec.Attempt != nil:
		return true
	case c == nil || p.rec.Stop != nil || !c.ReadyAt.IsZero() || !p.watched(c):
		return false
	case p.sighted(c) && (p.Sight.Attention != nil || p.Sight.Readiness == observe.Ready):
		return false
	}
	return p.Now.Sub(c.StartedAt) < p.readyTimeout()
}
