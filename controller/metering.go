// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"net/http"
	"path/filepath"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/metrics"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

const (
	// diskPeriod is the shortest time between two looks at what the state takes on disk,
	// and diskShare how many times longer than the look the time after it is: with a
	// hundred thousand files a look takes a second.
	diskPeriod = 5 * time.Minute
	diskShare  = 500
	// spoolPeriod and spoolShare are those of the reports that wait.
	spoolPeriod = time.Second
	spoolShare  = 50
	// askPatience is how long somebody who asks waits for each answer.
	askPatience = time.Second
)

// metering is what is needed to answer who asks for metrics.
type metering struct {
	// meters by the names of their queues.
	meters map[string]*meter
	// present is what needs locks, disk and spool what needs the disk.
	present rarely[metrics.State]
	disk    rarely[map[string]metrics.Usage]
	spool   rarely[metrics.Usage]
}

// newMeters are those of all queues.
func (c *Controller) newMeters() map[string]*meter {
	meters := map[string]*meter{}
	for _, name := range []string{queueKeys, queueScreens, queueProbes} {
		meters[name] = &meter{name: name, clock: c.Clock, metrics: c.Metrics, added: map[string]time.Time{}, taken: map[string]time.Time{}}
	}
	return meters
}

// MetricsHandler answers who asks for metrics.
func (c *Controller) MetricsHandler() http.Handler { return c.Metrics }

// measure looks up what metrics say of the present. A lock that is never given back, or a
// disk that does not answer, hides what lies behind it alone.
func (c *Controller) measure() metrics.State {
	h := c.Health()
	st := c.metering.present.get(c.Clock, 0, 0, c.measurePresent)
	st.Ready, st.Live, st.PulseAge = h.Ready, h.Live, c.Clock.Since(h.Pulse)
	st.Sessions = map[spec.Status]int{}
	for word, n := range h.Sessions {
		st.Sessions[spec.Status(word)] = n
	}
	st.Spool = c.metering.spool.get(c.Clock, spoolPeriod, spoolShare, c.spoolUsage)
	st.Disk = c.metering.disk.get(c.Clock, diskPeriod, diskShare, func() map[string]metrics.Usage { return usageByKind(c.StateDir) })
	return st
}

// measurePresent looks up what needs locks.
func (c *Controller) measurePresent() metrics.State {
	snap, lastKnown, _ := c.eyes.latest()
	if lastKnown.IsZero() {
		lastKnown = c.startedAt
	}
	st := metrics.State{
		TmuxServer: observe.ServerUnknown.String(), ObservationAge: c.Clock.Since(lastKnown), Queues: map[string]metrics.Queue{}, TurnsOpen: c.book.unfinishedCount(),
	}
	if snap != nil {
		st.TmuxServer = snap.view.State.String()
	}
	for name, m := range c.metering.meters {
		st.Queues[name] = m.read()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if s.waits {
			st.Waiting++
		}
		if s.published != nil && s.published.Status.Client.Pid > 0 {
			st.Clients++
		}
	}
	for _, d := range c.desired.Sessions {
		if d.Presence == manifest.Held {
			st.HeldRemovals++
		}
	}
	st.ManifestProblems = len(c.desired.Problems)
	return st
}

func (c *Controller) spoolUsage() metrics.Usage {
	return usage(filepath.Join(c.StateDir, "reports"), ".json")
}

// countRestart counts an incarnation that has begun to run and is not the first. One that
// a record which was lost or put back did not know, and is adopted, was begun before.
func (c *Controller) countRestart(before, after *record.Record) {
	if after.Client == nil || after.Client.Incarnation <= 1 || before.Client != nil && before.Client.Incarnation == after.Client.Incarnation {
		return
	}
	if before.Attempt == nil || before.Attempt.ID != after.Client.Attempt {
		return
	}
	reason := ""
	if t := after.LastTermination; t != nil {
		reason = t.Reason
	}
	c.Metrics.Restarted(reason)
}

// countOutcome counts an action that failed. One that was refused has found the world
// otherwise than it was seen, which the next look tells.
func (c *Controller) countOutcome(out actuate.Outcome) {
	if out.Result == actuate.ResultFailed {
		c.Metrics.Failed(metrics.FailedAction)
	}
}
