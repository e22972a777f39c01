// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muxlet/muxlet/spec"
)

// GroupVersionKind of the settings file.
var GroupVersionKind = schema.GroupVersionKind{Group: "config.muxlet.dev", Version: "v1alpha1", Kind: "MuxletConfiguration"}

// MuxletConfiguration is the settings file. A leading ~ and $VAR are expanded
// in paths, which are absolute otherwise.
type MuxletConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Manifests are the directories (or files) that declare sessions. Default
	// $XDG_CONFIG_HOME/muxlet/sessions.
	// +kubebuilder:validation:items:Pattern=`^(/|~$|~/|\$)`
	Manifests []string `json:"manifests"`
	// StateDir keeps records, events and screens. Default
	// $XDG_STATE_HOME/muxlet.
	// +kubebuilder:validation:Pattern=`^($|/|~$|~/|\$)`
	StateDir string `json:"stateDir"`
	// RuntimeDir keeps sockets, locks and leases. Default <stateDir>/run when stateDir
	// was given; else /run/muxlet-<user> when that is a directory of the user's own that
	// nobody else can enter, as the system units make it; else $XDG_RUNTIME_DIR/muxlet;
	// <stateDir>/run when there is no XDG_RUNTIME_DIR.
	// +kubebuilder:validation:Pattern=`^($|/|~$|~/|\$)`
	RuntimeDir string `json:"runtimeDir"`
	// DefaultClientClassName is the client class of a session that names none and has
	// no command of its own. Default claude.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	DefaultClientClassName string `json:"defaultClientClassName"`
	// SessionDefaults is laid under the spec of each session, field by field: what a
	// session says itself counts. Variables of client.env are merged by name, any other
	// list is the session's own where it gives one, also an empty one. client.args,
	// client.startArgs and initialPrompt go only to sessions of the class that is named
	// here, or of defaultClientClassName; and a session that gives a client.command takes no
	// class from here. client.command, conversation.id and suspend belong to one session and
	// cannot be given. A change of it is an edit of each session that it touches, by that
	// session's updateStrategy. Default: nothing.
	// +muxlet:without=client.command;conversation.id;suspend
	SessionDefaults spec.SessionSpec `json:"sessionDefaults"`
	// Tmux is how the tmux server is spoken to.
	Tmux Tmux `json:"tmux"`
	// Scopes says whether each client gets a scope of its own from the user's systemd
	// manager, when that can be reached: what it starts ends with it, and
	// spec.resources can be put in force. Default Auto.
	Scopes spec.ScopeMode `json:"scopes"`
	// ResyncPeriod is the longest time between two looks at the manifests and at
	// tmux. Default 15s, 100ms to 1h.
	ResyncPeriod metav1.Duration `json:"resyncPeriod"`
	// Observation is how the world is looked at.
	Observation Observation `json:"observation"`
	// BackOff puts off the restarts of a client that keeps dying.
	BackOff BackOff `json:"backOff"`
	// Starts bounds what is started at the same time.
	Starts Starts `json:"starts"`
	// MassDeath says when most sessions are dead at once.
	MassDeath MassDeath `json:"massDeath"`
	// Removal says when a document that is missing is believed to be removed.
	Removal Removal `json:"removal"`
	// Activity is how what a client is doing is told.
	Activity Activity `json:"activity"`
	// Notifications are how a person is told that a session waits for them.
	Notifications Notifications `json:"notifications"`
	// Retention bounds what is kept.
	Retention Retention `json:"retention"`
	// Metrics are how what the daemon counts is told.
	Metrics Metrics `json:"metrics"`
	// Logging is the daemon's log on standard error.
	Logging Logging `json:"logging"`
}

// Tmux is how the tmux server is spoken to.
type Tmux struct {
	// Command is the tmux program: a name that is looked for in PATH, or a path.
	// Default tmux.
	Command string `json:"command"`
	// Server says who executes the tmux server: Managed, the daemon does; External, the
	// daemon never does, and asks the service manager to start Unit when there is none and
	// a session waits for it. Default Managed.
	Server TmuxServer `json:"server"`
	// Unit of systemd that executes the tmux server where that is External. Default
	// muxlet-tmux.service.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9:_.@\\-]+\.service$`
	// +kubebuilder:validation:MaxLength=255
	Unit string `json:"unit"`
	// Prefix is the key before the keys of muxlet's tmux server, as tmux writes it, such as
	// C-a or M-Space; None for no such key. Default C-b.
	Prefix string `json:"prefix"`
	// Include is a tmux configuration file of your own for keys and looks, such as
	// ~/.tmux.conf: the options that it sets and the keys that it binds hold on muxlet's tmux
	// server too, but for those without which sessions would not live, and for its prefix
	// where Prefix is given. Its hooks, and what else it does, do not. Default none.
	Include string `json:"include"`
	// Timeout of one call. Default 5s, 100ms to 1m.
	Timeout metav1.Duration `json:"timeout"`
}

// TmuxServer says who executes the tmux server.
type TmuxServer string

// Who executes the tmux server.
const (
	// TmuxManaged is the daemon.
	TmuxManaged TmuxServer = "Managed"
	// TmuxExternal is the service manager, or a person.
	TmuxExternal TmuxServer = "External"
)

// DefaultTmuxUnit is the unit that `muxlet install` writes for the tmux server.
const DefaultTmuxUnit = "muxlet-tmux.service"

// Observation is how the world is looked at.
type Observation struct {
	// UnknownGracePeriod is how long the last known condition is shown after
	// tmux stopped to answer. Default 5s, 0s to 10m.
	UnknownGracePeriod metav1.Duration `json:"unknownGracePeriod"`
	// BootIDPath is the file whose content changes with each boot. Default
	// /proc/sys/kernel/random/boot_id.
	// +kubebuilder:validation:Pattern=`^(/|~$|~/|\$)`
	BootIDPath string `json:"bootIDPath"`
}

// BackOff puts off the restarts of a client that keeps dying: not at all after
// the first death, by initial after the second, then twice as long each time.
type BackOff struct {
	// Initial wait, in no case longer than max. Default 1s, 1ms to 24h.
	Initial metav1.Duration `json:"initial"`
	// Max is the longest wait. Default 5m, 1ms to 24h.
	Max metav1.Duration `json:"max"`
	// ResetAfter is how long a client must live for its earlier deaths to be
	// forgotten. Default 10m, 1ms to 24h.
	ResetAfter metav1.Duration `json:"resetAfter"`
}

// Starts bounds what is started at the same time.
type Starts struct {
	// MaxInFlight is the number of attempts that may be under way, each from its
	// beginning until its client is ready. Default 4, 1 to 1000.
	MaxInFlight int32 `json:"maxInFlight"`
}

// MassDeath says when most sessions are dead at once, so that a second look is
// taken before anything is started. Both numbers must be reached.
type MassDeath struct {
	// MinSessions that are dead. Default 5, 1 to 100000.
	MinSessions int32 `json:"minSessions"`
	// Percent of the sessions that had a client. Default 50, 1 to 100.
	Percent int32 `json:"percent"`
}

// Removal says when a document that is missing is believed to be removed.
type Removal struct {
	// Settle is how long a document must be missing. Default 3s, 0s to 1h.
	Settle metav1.Duration `json:"settle"`
	// GuardMin is the number of sessions from which on one removal is held, if it
	// is guardPercent of the known ones too. Default 3, 1 to 100000.
	GuardMin int32 `json:"guardMin"`
	// GuardPercent is the part of the known sessions, in percent, from which on one
	// removal is held, if it is guardMin of them too. Default 50, 1 to 100.
	GuardPercent int32 `json:"guardPercent"`
}

// Activity is how what a client is doing is told, and whether that asks for a person.
// It never decides liveness.
type Activity struct {
	// ReportTTL is how long a client's last report is believed when its own files and
	// its screen say nothing. Default 5m, 1s to 24h.
	ReportTTL metav1.Duration `json:"reportTTL"`
	// FocusAfter is how long a session's pane has to be in front of a person, attached and
	// active, for the session to count as seen: it does not ask for attention then until it
	// does new work. It is also the age of the last report from which on the screen of a
	// client that says to be working is looked at, and how often. Default 5s, 100ms to 1h.
	FocusAfter metav1.Duration `json:"focusAfter"`
}

// Notifications are how a person is told that a session waits for them, who does not
// look at it. Each state of a session is told once; what is over, or was seen, before it
// is told, is not. Without a command and without a way of terminals nobody is told.
type Notifications struct {
	// Command is a program of the person's and its arguments; no shell is involved. A
	// leading ~ and $VAR are expanded in the program; one without a slash is looked for in
	// the daemon's PATH. It runs in the home directory with the daemon's environment, and
	// reads what there is to tell in MUXLET_EVENT, MUXLET_SESSION, MUXLET_SESSIONS,
	// MUXLET_COUNT, MUXLET_REASON, MUXLET_MESSAGE, MUXLET_SINCE, MUXLET_DIRECTORY,
	// MUXLET_LABELS, MUXLET_TURN and MUXLET_ATTACH; never a prompt, and nothing of a screen.
	// `muxlet config test-notification` tries it. Default [].
	Command []string `json:"command"`
	// On are the events that are told: InputRequired, Stalled and TurnCompleted. Default
	// all three.
	On []spec.NotificationEvent `json:"on"`
	// MinInterval is the shortest time between two notifications of one session; what holds
	// when it is over is told then. Of all sessions together there are ten in it at most:
	// what is beyond that is told later, together. Default 30s, 0s to 24h.
	MinInterval metav1.Duration `json:"minInterval"`
	// Timeout is how long the command may run before it is killed with its process group.
	// Four run at the same time at most. Default 10s, 100ms to 10m.
	Timeout metav1.Duration `json:"timeout"`
	// Terminal are the ways in which the terminals are told that are attached to muxlet's
	// tmux server: Bell, OSC9 and OSC777. Default [].
	Terminal []spec.TerminalNotification `json:"terminal"`
}

// Retention bounds what is kept.
type Retention struct {
	// Events is the number of events. Default 1000, 1 to 100000.
	Events int32 `json:"events"`
	// Turns is how many turns that are over are kept of each session; those that are not
	// over are kept in any case. Default 100, 1 to 100000.
	Turns int32 `json:"turns"`
	// TurnAge is how long a turn that is over is kept. Default 720h, 0s to 87600h.
	TurnAge metav1.Duration `json:"turnAge"`
	// TurnBytes is how much the prompts of all turns of all sessions may take together:
	// beyond it those of turns that are over are dropped, the oldest first, while the turns
	// themselves stay. Default 256Mi, 1Mi to 64Gi.
	TurnBytes resource.Quantity `json:"turnBytes"`
	// Archive is how long the record of a removed session is kept. Default 720h,
	// 0s to 87600h.
	Archive metav1.Duration `json:"archive"`
	// ArchiveBytes is how much disk the records of removed sessions may take, and the copies
	// that an upgrade has kept of records as many again: the oldest go first. Default 256Mi,
	// 1Mi to 64Gi.
	ArchiveBytes resource.Quantity `json:"archiveBytes"`
	// ScreenBytes is how much disk the last screens of all sessions may take, one of each:
	// those of removed sessions go first, then the oldest. Default 256Mi, 1Mi to 64Gi.
	ScreenBytes resource.Quantity `json:"screenBytes"`
	// ReportSpool is how much disk the reports of clients may take that wait for the
	// daemon, each counted as 4Ki at least. Default 64Mi, 64Ki to 16Gi.
	ReportSpool resource.Quantity `json:"reportSpool"`
}

// Logging is the daemon's log on standard error.
type Logging struct {
	// Format of a line. Where standard error is the journal, each line is an entry of it,
	// with a priority and fields, in any format. Default text.
	Format LogFormat `json:"format"`
	// Verbosity: 0 changes and faults, 1 decisions with their inputs, 2 traces.
	// Default 0, 0 to 10.
	Verbosity int32 `json:"verbosity"`
}

// LogFormat is the format of a log line.
type LogFormat string

// The log formats.
const (
	// LogText is for a person.
	LogText LogFormat = "text"
	// LogJSON is one JSON object a line.
	LogJSON LogFormat = "json"
)

// defaults are the settings that need no environment. Manifests, StateDir and
// RuntimeDir are filled in by Load.
func defaults() MuxletConfiguration {
	apiVersion, kind := GroupVersionKind.ToAPIVersionAndKind()
	return MuxletConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},

		DefaultClientClassName: spec.ClassClaude,

		Tmux:         Tmux{Command: "tmux", Server: TmuxManaged, Unit: DefaultTmuxUnit, Prefix: "C-b", Timeout: duration(5 * time.Second)},
		Scopes:       spec.ScopesAuto,
		ResyncPeriod: duration(15 * time.Second),
		Observation: Observation{
			UnknownGracePeriod: duration(5 * time.Second),
			BootIDPath:         "/proc/sys/kernel/random/boot_id",
		},
		BackOff:   BackOff{Initial: duration(time.Second), Max: duration(5 * time.Minute), ResetAfter: duration(10 * time.Minute)},
		Starts:    Starts{MaxInFlight: 4},
		MassDeath: MassDeath{MinSessions: 5, Percent: 50},
		Removal:   Removal{Settle: duration(3 * time.Second), GuardMin: 3, GuardPercent: 50},
		Activity:  Activity{ReportTTL: duration(5 * time.Minute), FocusAfter: duration(5 * time.Second)},
		Notifications: Notifications{
			Command: []string{}, On: slices.Clone(spec.NotificationEvents), MinInterval: duration(30 * time.Second), Timeout: duration(10 * time.Second),
			Terminal: []spec.TerminalNotification{},
		},
		Retention: Retention{
			Events: 1000, Turns: 100, TurnAge: duration(720 * time.Hour), TurnBytes: resource.MustParse("256Mi"),
			Archive: duration(720 * time.Hour), ArchiveBytes: resource.MustParse("256Mi"), ScreenBytes: resource.MustParse("256Mi"),
			ReportSpool: resource.MustParse("64Mi"),
		},
		Logging: Logging{Format: LogText},
	}
}

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
