// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"reflect"
	"time"

	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/controller/turn"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// Settings are what may change under a running Controller. A pass reads them
// once, so that it never mixes two editions; they are replaced as a whole and
// never changed in place.
type Settings struct {
	// Manifests are the roots; ManifestPolicy the guard.
	Manifests      []string
	ManifestPolicy manifest.Policy
	// SessionDefaults are laid under each session; nil for none.
	SessionDefaults *spec.SessionDefaults
	// Policy of the decisions.
	Policy plan.Policy
	// Scopes says whether clients get scopes of their own.
	Scopes spec.ScopeMode
	// Resync is the time between two looks at everything.
	Resync time.Duration
	// TmuxTimeout bounds one call of tmux.
	TmuxTimeout time.Duration
	// MaxInFlight starts.
	MaxInFlight int
	// MassDeathMin and MassDeathPercent of the sessions seen dead at once call for
	// a second look.
	MassDeathMin, MassDeathPercent int
	// ReportTTL is how long a report is believed, FocusAfter the age of the last one
	// from which on the screen of a client that works is looked at, and how often.
	ReportTTL, FocusAfter time.Duration
	// Turns says which turns are kept.
	Turns turn.Limits
	// Notifications are what a person is told, and how.
	Notifications Notifications
	// ServerUnit is the service of systemd that executes the tmux server, instead of us;
	// empty: we do.
	ServerUnit string
	// ArchiveFor is how long the record of a removed session is kept.
	ArchiveFor time.Duration
	// ArchiveBytes may be taken by the records of removed sessions, and as many by copies
	// of older versions; ScreenBytes by last screens; 0 is no limit.
	ArchiveBytes, ScreenBytes int64
}

// settings are those in force now.
func (c *Controller) settings() *Settings {
	if s := c.reloaded.Load(); s != nil {
		return s
	}
	return &c.Initial
}

// policy is what decisions are made by.
func (c *Controller) policy() plan.Policy {
	policy := c.settings().Policy
	policy.Shell = c.Shell
	return policy
}

// Reload puts other settings in force: every session that is not at rest is looked
// at under them. The same settings again change nothing. It may be called at any
// time.
func (c *Controller) Reload(s Settings) {
	if reflect.DeepEqual(s, *c.settings()) {
		return
	}
	c.reloaded.Store(&s)
	for _, key := range c.budget.resize(s.MaxInFlight) {
		c.queue.Add(key)
	}
	c.notifier.settingsChanged()
	select {
	case c.reread <- struct{}{}:
	default:
	}
}
