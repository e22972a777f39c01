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
	// diskPatience is how long somebody who asks waits for a look: a disk that does not
	// answer must not hide all the rest.
	diskPatience = time.Second
)

// metering is what is needed to answer who asks for metrics.
type metering struct {
	meters []*meter
	disk   rarely[map[string]metrics.Usage]
	spool  rarely[metrics.Usage]
}

// meterOf makes the meter of a queue. It comes before anybody asks.
func (c *Controller) meterOf(name string) *meter {
	m := &meter{name: name, clock: c.Clock, metrics: c.Metrics, added: map[string]time.Time{}, taken: map[string]time.Time{}}
	c.metering.meters = append(c.metering.meters, m)
	return m
}

// MetricsHandler answers who asks for metrics.
func (c *Controller) MetricsHandler() http.Handler { return c.Metrics }

// measure looks up what metrics say of the present.
func (c *Controller) measure() metrics.State {
	now := c.Clock.Now()
	snap, lastKnown, _ := c.eyes.latest()
	if lastKnown.IsZero() {
		lastKnown = c.startedAt
	}
	health := c.Health()
	st := metrics.State{
		Sessions: map[spec.Status]int{}, TmuxServer: observe.ServerUnknown.String(), ObservationAge: now.Sub(lastKnown),
		Ready: health.Ready, Live: health.Live, Queues: map[string]metrics.Queue{}, TurnsOpen: c.book.unfinishedCount(),
		Spool: c.metering.spool.get(c.Clock, spoolPeriod, spoolShare, c.spoolUsage),
		Disk:  c.metering.disk.get(c.Clock, diskPeriod, diskShare, func() map[string]metrics.Usage { return usageByKind(c.StateDir) }),
	}
	if snap != nil {
		st.TmuxServer = snap.view.State.String()
	}
	for _, m := range c.metering.meters {
		st.Queues[m.name] = m.read()
	}
	c.measureSessions(&st)
	return st
}

// measureSessions counts what is served. What was published changes no more, so that it
// is judged without the lock.
func (c *Controller) measureSessions(st *metrics.State) {
	c.mu.Lock()
	served := make([]*spec.Session, 0, len(c.sessions))
	for _, s := range c.sessions {
		served = append(served, s.published)
		if s.waits {
			st.Waiting++
		}
	}
	for _, d := range c.desired.Sessions {
		if d.Presence == manifest.Held {
			st.HeldRemovals++
		}
	}
	st.ManifestProblems = len(c.desired.Problems)
	c.mu.Unlock()
	for _, o := range served {
		if o == nil {
			st.Sessions[spec.StatusUnknown]++
			continue
		}
		st.Sessions[spec.DisplayStatus(o)]++
		if o.Status.Client.Pid > 0 {
			st.Clients++
		}
	}
}

func (c *Controller) spoolUsage() metrics.Usage {
	return usage(filepath.Join(c.StateDir, "reports"), ".json")
}

// countRestart counts an incarnation that has begun to run and is not the first.
func (c *Controller) countRestart(before, after *record.Record) {
	if after.Client == nil || after.Client.Incarnation <= 1 || before.Client != nil && before.Client.Incarnation == after.Client.Incarnation {
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
