// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/plan"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// Versions of the formats of the files server.json and instance.
const (
	serverVersion   = 1
	instanceVersion = 1
)

// The server's own back-off starts at 0 and is capped; a repair is not repeated
// faster than once a second.
const (
	serverBackOffStep = 500 * time.Millisecond
	serverBackOffMax  = 5 * time.Second
	unknownPoll       = time.Second
)

// serverState is what is remembered of our tmux server. recorded is on disk too.
type serverState struct {
	recorded *observe.Server
	// wanted is true once a session waits for a server.
	wanted bool
	// scanned is true once the process table was searched for marked clients.
	scanned    bool
	failures   int
	nextTry    time.Time
	failure    string
	lastRepair time.Time
	// noneProven is true once the process table was searched in vain for a server,
	// until one answers.
	noneProven bool
	// unitOf is the server of which it was found out whose unit it is in.
	unitOf observe.Process
	// repairTold is the trouble of which an event told, until the server answers.
	repairTold string
	// configured is what a server was given last, by which process, and when.
	configured configured
	// cleared is the server whose paste buffers were looked through since the last
	// hand-over that was broken off.
	cleared   observe.Process
	lastState observe.ServerState
	lastKnown observe.ServerState
	looked    bool
}

func (c *Controller) serverPath() string { return filepath.Join(c.StateDir, "server.json") }

// recordServer makes s the server whose listings count.
func (c *Controller) recordServer(s observe.Server) error {
	if err := c.keep().Write(c.serverPath(), serverVersion, s); err != nil {
		return fmt.Errorf("record tmux server: %w", err)
	}
	c.mu.Lock()
	before := c.server.recorded
	c.server.recorded = &s
	c.mu.Unlock()
	if before != nil && before.Process != s.Process {
		c.eyes.forget(before.Process)
	}
	c.watchServer(s)
	c.tellWaiting()
	c.Log.Info("Recorded tmux server", "serverPID", s.Process.PID, "version", s.Version, "socket", s.Socket)
	return nil
}

// watchServer asks for a hint when the server ends.
func (c *Controller) watchServer(s observe.Server) {
	if err := c.Deaths.Watch(s.Process, serverKey); err != nil {
		c.Log.V(1).Info("Tmux server is not watched, its death is found at resync", "serverPID", s.Process.PID, "err", err.Error())
	}
}

// reconcileServer looks at the tmux server, repairs it, and starts one when it
// is proven that there is none and a session waits for it.
func (c *Controller) reconcileServer(ctx context.Context) {
	c.restoreState()
	snap := c.look(ctx, c.Clock.Now())
	if !c.prepare(ctx, snap) {
		c.queue.AddAfter(serverKey, unknownPoll)
		c.spread(snap)
		return
	}
	switch snap.view.State {
	case observe.ServerUnknown:
		c.repairServer(ctx, snap)
		c.queue.AddAfter(serverKey, unknownPoll)
	case observe.ServerNone:
		if c.claimUnrecorded(ctx) {
			c.queue.AddAfter(serverKey, unknownPoll/4)
			break
		}
		c.proveNone()
		if after := c.startServer(ctx); after > 0 {
			c.queue.AddAfter(serverKey, after)
		}
	case observe.ServerRunning:
		c.tellSharedUnit(snap.view.Listing.Server)
		c.configureServer(ctx, snap.view.Listing)
		c.mu.Lock()
		c.server.failures, c.server.failure, c.server.wanted = 0, "", false
		c.server.repairTold = ""
		c.mu.Unlock()
	}
	c.spread(snap)
	c.sweepScopes(ctx)
	if snap.view.State == observe.ServerRunning {
		c.clearBuffers(ctx, snap.view.Listing.Server)
	}
	c.tellFirstLook()
}

// noteUnknown asks for another look at everything soon, when a session's own look
// went wrong although the server's last one did not: the hint that the session
// had is used up.
func (c *Controller) noteUnknown() {
	c.mu.Lock()
	known := c.server.looked && c.server.lastState != observe.ServerUnknown
	c.resyncDue = c.resyncDue || known
	c.mu.Unlock()
	if known {
		c.queue.AddAfter(serverKey, unknownPoll/4)
	}
}

// spread passes the snapshot on to every session when its meaning has changed,
// or when everything is due to be looked at.
func (c *Controller) spread(snap *snapshot) {
	c.mu.Lock()
	changed := !c.server.looked || c.server.lastState != snap.view.State
	// A dying server can be Unknown for a moment.
	lost := c.server.lastKnown == observe.ServerRunning && snap.view.State == observe.ServerNone
	c.server.lastState, c.server.looked = snap.view.State, true
	if snap.view.State != observe.ServerUnknown {
		c.server.lastKnown = snap.view.State
	}
	due, from := c.resyncDue, snap.began
	if c.freshDue {
		from = c.Clock.Now()
	}
	c.resyncDue, c.freshDue = false, false
	c.mu.Unlock()
	if changed {
		c.tellWaiting()
	}
	if lost {
		c.tell("", "", plan.Event{Type: plan.Warning, Reason: spec.ReasonServerLost, Message: "The tmux server is gone with every pane in it"})
	}
	if due {
		c.lookAtClients()
	}
	switch {
	case changed:
		c.enqueueAll(from)
	case due:
		c.enqueueRestless(snap, from)
	}
}

// claimUnrecorded finds a tmux server on our socket of which nothing is recorded
// and which cannot be reached: state and socket were both lost. It becomes the
// recorded one, so that none is started beside it.
func (c *Controller) claimUnrecorded(ctx context.Context) bool {
	c.mu.Lock()
	recorded, actuator := c.server.recorded, c.actuator
	c.mu.Unlock()
	if recorded != nil && c.Processes.State(recorded.Process) != observe.Gone {
		return false
	}
	s, found, err := c.findServer()
	if err != nil {
		c.Log.Error(err, "Process table could not be searched for tmux servers")
		return true
	}
	if !found {
		return false
	}
	c.mu.Lock()
	c.server.recorded = &s
	if actuator == nil {
		actuator = c.NewActuator("")
	}
	c.mu.Unlock()
	c.Log.Info("Found a tmux server on our socket in the process table", "serverPID", s.Process.PID)
	c.restoreSocket(ctx, actuator, s)
	return true
}

// proveNone passes on that there is no server of ours.
func (c *Controller) proveNone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.server.noneProven {
		c.server.noneProven, c.resyncDue, c.freshDue = true, true, true
	}
}

// configureServer claims a server that somebody else has started on our path.
// Without our configuration its panes would vanish with their clients. One that is ours
// gets its configuration anew when that is another one by now.
func (c *Controller) configureServer(ctx context.Context, l observe.Listing) {
	s := l.Server
	c.mu.Lock()
	claimed, actuator := s.Instance == c.instance, c.actuator
	c.mu.Unlock()
	if claimed || s.Instance != "" {
		c.keepServer(ctx, actuator, l, claimed)
		if claimed {
			c.reconfigure(ctx, actuator, l)
		}
		return
	}
	if err := c.PrepareRuntime(); err != nil {
		c.Log.Error(err, "Runtime directory could not be made")
		return
	}
	out := actuator.Do(ctx, actuate.Action{Kind: actuate.ActionConfigure, Server: s, Configuration: c.configuration()})
	c.Log.Info("Claimed the tmux server on our socket", "serverPID", s.Process.PID, "result", out.Result, "message", out.Message)
}

// keepServer makes a server that has been ours all the time stay so: a person, or a
// file that they sourced, has told it to end with its last session or its last
// person, or has written over whose it is. What concerns single sessions and panes
// is set on ours when they are made; for theirs it is the person's to say.
func (c *Controller) keepServer(ctx context.Context, actuator actuate.Actuator, l observe.Listing, claimed bool) {
	changed := l.Lapsed
	if !claimed {
		changed = append(slices.Clone(changed), observe.OptionServerInstance)
	}
	if len(changed) == 0 {
		return
	}
	out := actuator.Do(ctx, actuate.Action{Kind: actuate.ActionKeepServer, Server: l.Server})
	c.Log.Info("Set options of the tmux server anew", "serverPID", l.Server.Process.PID, "options", changed, "result", out.Result, "message", out.Message)
	if out.Result == actuate.ResultDone {
		c.tell("", "", plan.Event{Type: plan.Normal, Reason: spec.ReasonServerKept, Message: fmt.Sprintf(
			"Set %s of the tmux server anew: the server has to stay while nobody is attached and no session runs", strings.Join(changed, ", "))})
	}
}

// clearBuffers removes the prompts that a hand-over which was broken off, by the
// daemon's end or by a timeout, has left in the server: once for each server, and
// again after each such hand-over. A server that is not ours yet is left alone.
func (c *Controller) clearBuffers(ctx context.Context, s observe.Server) {
	c.mu.Lock()
	due, actuator := c.server.cleared != s.Process && s.Instance == c.instance, c.actuator
	if due {
		c.server.cleared = s.Process
	}
	c.mu.Unlock()
	if !due {
		return
	}
	out := actuator.Do(ctx, actuate.Action{Kind: actuate.ActionClearBuffers, Server: s})
	if out.Result == actuate.ResultDone && out.Message == "" {
		return
	}
	c.Log.Info("Cleared paste buffers of the tmux server", "serverPID", s.Process.PID, "result", out.Result, "message", out.Message)
	if out.Result != actuate.ResultDone {
		c.brokenOff()
	}
}

// brokenOff says that a hand-over may have left a prompt in the tmux server.
func (c *Controller) brokenOff() {
	c.mu.Lock()
	c.server.cleared = observe.Process{}
	c.mu.Unlock()
	c.queue.AddAfter(serverKey, unknownPoll)
}

// findServer searches the process table for a tmux server on our socket, and then
// on those that our own clients were started on: the runtime directory may have
// been another one, and the record of the server may be lost.
func (c *Controller) findServer() (s observe.Server, found bool, err error) {
	c.mu.Lock()
	instance := c.instance
	c.mu.Unlock()
	sockets := []string{c.socket()}
	if instance != "" {
		marked, err := c.Processes.Scan(instance)
		if err != nil {
			return s, false, err
		}
		for _, m := range marked {
			if m.Socket != "" && !slices.Contains(sockets, m.Socket) {
				sockets = append(sockets, m.Socket)
			}
		}
	}
	for _, socket := range sockets {
		servers, err := c.Processes.FindServers(socket)
		if err != nil {
			return s, false, err
		}
		if len(servers) > 0 {
			return observe.Server{Process: servers[0], Socket: socket}, true, nil
		}
	}
	return s, false, nil
}

// repairServer asks the recorded server to make its socket anew.
func (c *Controller) repairServer(ctx context.Context, snap *snapshot) {
	if snap.view.Repair != observe.RepairSocket {
		return
	}
	c.mu.Lock()
	recorded, actuator, last := c.server.recorded, c.actuator, c.server.lastRepair
	if actuator == nil {
		actuator = c.NewActuator("")
	}
	c.mu.Unlock()
	if recorded == nil || c.Clock.Now().Sub(last) < unknownPoll {
		return
	}
	c.restoreSocket(ctx, actuator, *recorded)
	if c.firstRepair(snap.view.Message) {
		c.tell("", "", plan.Event{Type: plan.Warning, Reason: spec.ReasonSocketRestored, Message: snap.view.Message})
	}
}

// firstRepair says whether the trouble is a new one: what lasts is told once.
func (c *Controller) firstRepair(trouble string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.server.repairTold != trouble
	c.server.repairTold = trouble
	return first
}

func (c *Controller) restoreSocket(ctx context.Context, actuator actuate.Actuator, s observe.Server) {
	c.mu.Lock()
	c.server.lastRepair = c.Clock.Now()
	c.mu.Unlock()
	err := c.PrepareRuntime()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.Socket), 0o700)
	}
	if err != nil {
		c.Log.Error(err, "Directory of the socket could not be made")
		return
	}
	out := actuator.Do(ctx, actuate.Action{Kind: actuate.ActionRestoreSocket, Server: s})
	c.Log.Info("Asked tmux server to restore its socket", "serverPID", s.Process.PID, "result", out.Result, "message", out.Message)
	c.queue.AddAfter(serverKey, 50*time.Millisecond)
}

// startServer starts a tmux server, with a back-off of its own. It returns when
// to look again; 0 for no sooner than usual.
func (c *Controller) startServer(ctx context.Context) time.Duration {
	c.mu.Lock()
	wanted, left, actuator := c.server.wanted, c.server.nextTry.Sub(c.Clock.Now()), c.actuator
	c.mu.Unlock()
	if !wanted {
		return 0
	}
	if left > 0 && left <= serverBackOffMax {
		return c.untilAnswer(left)
	}
	if unit := c.settings().ServerUnit; unit != "" {
		return c.startUnit(ctx, actuator, unit)
	}
	out := actuate.Outcome{Result: actuate.ResultFailed}
	if err := c.PrepareRuntime(); err != nil {
		out.Message = err.Error()
	} else {
		out = actuator.Do(ctx, actuate.Action{Kind: actuate.ActionStartServer})
	}
	if out.Result == actuate.ResultDone {
		c.Log.V(1).Info("Started tmux server", "message", out.Message)
		c.tell("", "", plan.Event{Type: plan.Normal, Reason: spec.ReasonServerStarted, Message: "Started a tmux server on " + c.socket()})
		return time.Millisecond
	}
	if ctx.Err() != nil {
		// Broken off by our own end: that says nothing about tmux.
		return 0
	}
	return c.serverFailed("no tmux server could be started: " + out.Message)
}

// serverFailed says why sessions wait for a server, and returns when it is tried again.
func (c *Controller) serverFailed(message string) time.Duration {
	after := c.serverTried()
	c.mu.Lock()
	c.server.failure = message
	c.mu.Unlock()
	c.tell("", "", plan.Event{Type: plan.Warning, Reason: spec.ReasonTmuxServerFailed, Message: message})
	c.enqueueAll(c.Clock.Now())
	return after
}

// serverTried counts a try, and returns how long to wait for the next one.
func (c *Controller) serverTried() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	after := min(serverBackOffStep<<min(c.server.failures, 8), serverBackOffMax)
	c.server.failures++
	c.server.nextTry = c.Clock.Now().Add(after)
	return after
}

// wantServer asks for a tmux server on behalf of a session.
func (c *Controller) wantServer() {
	c.mu.Lock()
	already := c.server.wanted
	c.server.wanted = true
	c.mu.Unlock()
	if !already {
		c.queue.Add(serverKey)
	}
}

// RecordedSocket is the path on which the recorded server was started, as long as
// that server may live, though the settings say another one by now; else empty.
func (c *Controller) RecordedSocket() string {
	c.mu.Lock()
	recorded := c.server.recorded
	c.mu.Unlock()
	if recorded == nil || c.Processes.State(recorded.Process) == observe.Gone {
		return ""
	}
	return recorded.Socket
}

// socket is the path on which our server is asked now.
func (c *Controller) socket() string {
	if path := c.RecordedSocket(); path != "" {
		return path
	}
	return c.Socket
}

// ServerBinary returns a function that names the running server's own binary, so
// that client and server speak the same protocol even after tmux was upgraded.
func (c *Controller) ServerBinary(executable func(observe.Process) string) func() string {
	return func() string {
		c.mu.Lock()
		recorded := c.server.recorded
		c.mu.Unlock()
		if recorded != nil {
			return executable(recorded.Process)
		}
		// The state is lost, or nothing was ever started.
		if servers, err := c.Processes.FindServers(c.Socket); err == nil && len(servers) == 1 {
			return executable(servers[0])
		}
		return ""
	}
}
