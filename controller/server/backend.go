// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// Backend is what the API speaks for. Every method returns at once: those that
// change something record an intent, and a caller that wants to see its effect
// polls Session. Errors are made by NewError; any other error is answered as
// 500 InternalError. Methods are called concurrently, and what they return
// belongs to the caller.
type Backend interface {
	ClassBackend
	TurnBackend
	// Sessions lists all sessions by name, as of the list's resourceVersion:
	// metadata with name, uid, generation, resourceVersion, creationTimestamp and
	// labels, the defaulted spec, the status.
	Sessions() spec.SessionList
	// Session is one of them. Error: NotFound.
	Session(name string) (spec.Session, error)
	// Events about a session, or all of them when it is empty; oldest first, as of
	// the list's resourceVersion.
	Events(session string) corev1.EventList
	// Journals have the changes of all that is listed, for watches. What they hold may differ from
	// what is listed under the same resourceVersion in one thing: words that grow
	// old by themselves (status.evidence.observedAt, ages in messages).
	Journals() *Journals
	// Delete removes the document that declares the session from its file. It is
	// explicit: no removal guard and no settle time apply. Errors: NotFound,
	// Forbidden.
	Delete(ctx context.Context, name string) error
	// SetSuspend edits spec.suspend of the document. Errors: NotFound, Forbidden.
	SetSuspend(ctx context.Context, name string, suspend bool) error
	// Resume records a demand for a client. With fresh the conversation is
	// started anew. Errors: NotFound, AlreadyRunning, Suspended, Invalid.
	Resume(ctx context.Context, name string, fresh bool) error
	// Restart asks for the running client to be replaced. Errors: NotFound,
	// Suspended, Invalid.
	Restart(ctx context.Context, name string) error
	// Terminate asks for the client to be ended and kept down until a demand.
	// Error: NotFound.
	Terminate(ctx context.Context, name string) error
	// Screen is the last lines of the session's pane. Errors: NotFound, Conflict
	// without a pane, TmuxUnavailable.
	Screen(ctx context.Context, name string, lines int) (string, error)
	// PreviousScreen is the last lines of what the incarnation that ended last has
	// shown. Error: NotFound, when there is none or when it was not saved, too.
	PreviousScreen(ctx context.Context, name string, lines int) (string, error)
	// Transcript says where the transcript of the session's conversation is. Errors:
	// NotFound, for a class without any too, and ServiceUnavailable.
	Transcript(ctx context.Context, name string) (Transcript, error)
	// Follow tells the last lines of the session's pane and then what is new, and does
	// not return before the session is removed, ctx ends or tell fails. Errors before
	// the first frame: those of Screen.
	Follow(ctx context.Context, name string, lines int, tell func(LogFrame) error) error
	// Prune ends the removals that are held back. Without confirm it only says
	// which would go.
	Prune(ctx context.Context, confirm bool) (PruneResult, error)
	// Diff tells what would be different if manifests said something else, and what comes
	// of it. It changes nothing, and takes three seconds at most: what is not known by
	// then is EffectUnknown. Errors: Invalid for a file that is not read,
	// ServiceUnavailable before the manifests were read.
	Diff(ctx context.Context, request DiffRequest) (DiffResult, error)
	// Status of the daemon itself.
	Status() DaemonStatus
	// HealthChecks are what the daemon's health is made of. It never waits.
	HealthChecks() []Check
}

// Transcript is where what was said in a session is written down by its client.
type Transcript struct {
	// Conversation is its id; empty when there is none yet.
	Conversation string `json:"conversation,omitempty"`
	// Path of the file; empty when there is none, and Message says why.
	Path    string `json:"path,omitempty"`
	Message string `json:"message,omitempty"`
	// Reports of the client class, by which the format is known.
	Reports spec.ReportsType `json:"reports,omitempty"`
}

// DaemonStatus is what a daemon says about itself.
type DaemonStatus struct {
	// Version of the daemon's binary.
	Version string `json:"version"`
	// PID of the daemon.
	PID int `json:"pid"`
	// StartedAt is when the daemon started.
	StartedAt metav1.Time `json:"startedAt"`
	// Instance is the UUID of the state directory.
	Instance string `json:"instance"`
	// Manifests are the manifest roots.
	Manifests []string `json:"manifests"`
	// Roots are what the last reading of them found.
	Roots []ManifestRoot `json:"roots,omitempty"`
	// StateDir, RuntimeDir and TmuxSocket are absolute paths.
	StateDir   string `json:"stateDir"`
	RuntimeDir string `json:"runtimeDir"`
	TmuxSocket string `json:"tmuxSocket"`
	// Tmux is what the last look at the tmux server gave.
	Tmux ObservedStatus `json:"tmux"`
	// Problems of the system that keep sessions down, of the settings, and of the
	// manifests: one line each, those of files starting with file:line:column.
	Problems []string `json:"problems,omitempty"`
	// Held are the removals that are held back.
	Held []HeldRemoval `json:"held,omitempty"`
	// Unclaimed are panes of this instance that no session claims.
	Unclaimed []UnclaimedPane `json:"unclaimed,omitempty"`
}

// ManifestRoot is what was found in one manifest root.
type ManifestRoot struct {
	Path string `json:"path"`
	// Files that were read there.
	Files int `json:"files"`
	// Problem says why it could not be read; empty when it could.
	Problem string `json:"problem,omitempty"`
}

// StateUnknown is the ObservedStatus.State of a tmux server that could not be
// asked.
const StateUnknown = "Unknown"

// ObservedStatus is what a look at the tmux server gave.
type ObservedStatus struct {
	// State is Running, None or Unknown.
	State string `json:"state"`
	// Reason and Message say why it is Unknown; empty otherwise.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// At is when tmux last answered in full.
	At metav1.Time `json:"at,omitempty"`
	// ServerPID and ServerVersion of the tmux server, when there is one.
	ServerPID     int    `json:"serverPID,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
}

// HeldRemoval is a session, or a client class, whose document is gone and that goes on
// all the same.
type HeldRemoval struct {
	// Kind is spec.KindClientClass, or empty for a session.
	Kind string `json:"kind,omitempty"`
	// Name of it.
	Name string `json:"name"`
	// Message says why the removal is held.
	Message string `json:"message"`
}

// UnclaimedPane is a pane that carries this instance's labels without a session.
type UnclaimedPane struct {
	// Pane and TmuxSession are tmux's own: the pane's id and the session's name.
	Pane        string `json:"pane"`
	TmuxSession string `json:"tmuxSession"`
	// Name and UID are the session's, as the labels have them.
	Name string `json:"name"`
	UID  string `json:"uid"`
	// PID of the pane's process.
	PID int `json:"pid"`
}

// PruneResult is what a prune did, or would do.
type PruneResult struct {
	// Removed are those whose removal goes ahead now.
	Removed []HeldRemoval `json:"removed,omitempty"`
	// WouldRemove are those whose removal would go ahead with confirm.
	WouldRemove []HeldRemoval `json:"wouldRemove,omitempty"`
}
