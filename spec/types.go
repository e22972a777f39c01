// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "muxlet.dev", Version: "v1alpha1"}

// KindSession is the kind of a Session document.
const KindSession = "Session"

// Namespace is the only namespace that exists locally.
const Namespace = "default"

// Session is the durable thing a person declares: a client, its workspace and
// the policies that keep it. It outlives every process.
//
// +kubebuilder:object:root=true
type Session struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec   SessionSpec   `json:"spec"`
	Status SessionStatus `json:"status,omitempty"`
}

// SessionList is a list of Sessions.
//
// +kubebuilder:object:root=true
type SessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Session `json:"items"`
}

// SessionSpec is what a person wants of one session.
type SessionSpec struct {
	// ClientClassName names the client class: how the client is started and
	// stopped. Default: exec when client.command is given, else the settings'
	// defaultClientClassName.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +kubebuilder:validation:MaxLength=63
	ClientClassName string `json:"clientClassName,omitempty"`
	// Client is the program to run.
	Client ClientSpec `json:"client,omitempty"`
	// Workspace is where it runs.
	// +optional
	Workspace WorkspaceSpec `json:"workspace"`
	// ProvisioningPolicy says when there is a client at all: always, or from the next
	// demand until the client ends. Default Eager.
	ProvisioningPolicy ProvisioningPolicy `json:"provisioningPolicy,omitempty"`
	// InitialPrompt is the first turn of each conversation that muxlet begins; none when it
	// is empty. It is UTF-8 of at most 1 MiB, with newline and tab as the only control
	// characters; newlines at its end stay in the file and are no part of the turn. An edit
	// of it restarts nothing, and is the first turn of the next conversation.
	InitialPrompt string `json:"initialPrompt,omitempty"`
	// RestartPolicy says what a client's own exit means. A client lost with its
	// pane, its tmux server or its host is a failure, never its own exit.
	// Default Always.
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
	// RecoveryPolicy decides about a session that had a client and is found
	// without one when the daemon first looks. Default Resume.
	RecoveryPolicy RecoveryPolicy `json:"recoveryPolicy,omitempty"`
	// Suspend stops the client and keeps everything else. Default false.
	Suspend bool `json:"suspend,omitempty"`
	// UpdateStrategy says when an edit of the spec may replace a running client.
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`
	// LivenessProbe asks a running client whether it still does its work, and has one
	// replaced that does not. Without it a client is alive as long as its process is.
	LivenessProbe *LivenessProbe `json:"livenessProbe,omitempty"`
	// StartupTimeoutSeconds bounds, in seconds, the time from the start of an
	// attempt until its client runs and is ready. Default 60, 1 to 3600.
	StartupTimeoutSeconds *int32 `json:"startupTimeoutSeconds,omitempty"`
	// TerminationGracePeriodSeconds is the time, in seconds, between the polite
	// signal and SIGKILL. Default 10, 0 to 3600; 0 kills at once.
	TerminationGracePeriodSeconds *int32 `json:"terminationGracePeriodSeconds,omitempty"`
	// Resources is what the client may use of the machine.
	Resources ResourcesSpec `json:"resources,omitzero"`
	// Terminal is the size and memory of the pane when it is created.
	Terminal TerminalSpec `json:"terminal,omitempty"`
	// Conversation is what is wanted of the client's own history.
	Conversation ConversationSpec `json:"conversation,omitempty"`
	// DeletionPolicy says what the removal of the document does to a running
	// client. Default Delete.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ClientSpec is the program that runs in the managed pane.
type ClientSpec struct {
	// Command is the argv of a class that has none of its own, such as exec. It is run
	// without a shell.
	Command []string `json:"command,omitempty"`
	// Args are appended to the command, on start and on resume.
	Args []string `json:"args,omitempty"`
	// StartArgs are appended on a fresh start only, before args.
	StartArgs []string `json:"startArgs,omitempty"`
	// Env is set after the shell's profile and after envFrom, in order: it wins over
	// both. Its PATH is also where the program is looked for.
	Env []EnvVar `json:"env,omitempty"`
	// EnvFrom reads files of NAME=value lines, in order; they win over the shell's
	// profile, later files and lines over earlier ones, and env over all of them.
	EnvFrom []EnvFromSource `json:"envFrom,omitempty"`
	// ShellMode says which environment the client sees. Default Interactive.
	ShellMode ShellMode `json:"shellMode,omitempty"`
}

// EnvVar is one variable: a literal value or a file that holds it.
type EnvVar struct {
	// Name is a C identifier.
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`
	// Value is used as it stands. Nothing is expanded.
	Value string `json:"value,omitempty"`
	// ValueFrom reads the value in the pane, so that a secret is in no argv, no
	// tmux option and no log.
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource is where a variable's value is read.
type EnvVarSource struct {
	// FileRef names a file of at most 128 KiB; one newline at its end is removed.
	FileRef *FileRef `json:"fileRef,omitempty"`
}

// EnvFromSource is a set of variables.
type EnvFromSource struct {
	// FileRef names a file of NAME=value lines, at most 1 MiB; blank lines and lines
	// that start with # are passed over, and so is the word export before a name. A
	// value that is quoted as a whole, as for a shell, loses its quotes; any other one
	// is taken as it stands. Nothing is expanded.
	FileRef *FileRef `json:"fileRef,omitempty"`
}

// FileRef names a file.
type FileRef struct {
	// Path is absolute, or starts with ~ or $VAR.
	// +kubebuilder:validation:Pattern=`^(/|~$|~/|\$[A-Za-z_]|\$\{[A-Za-z_][A-Za-z0-9_]*\})`
	Path string `json:"path"`
	// Optional passes over a file that does not exist; one that is there must be
	// usable all the same. Default false.
	Optional bool `json:"optional,omitempty"`
}

// WorkspaceSpec is where the client runs.
type WorkspaceSpec struct {
	// Directory is absolute, or starts with ~ or $VAR. It is required, here or in the
	// sessionDefaults of the settings.
	// +optional
	// +kubebuilder:validation:Pattern=`^(/|~$|~/|\$[A-Za-z_]|\$\{[A-Za-z_][A-Za-z0-9_]*\})`
	Directory string `json:"directory"`
	// Type says whether the directory must exist. Default Directory.
	Type WorkspaceType `json:"type,omitempty"`
}

// UpdateStrategy says when an edit may replace a running client.
type UpdateStrategy struct {
	// Type of the strategy. Default WhenIdle.
	Type UpdateStrategyType `json:"type,omitempty"`
}

// TerminalSpec is the pane's size and history when it is created.
type TerminalSpec struct {
	// Columns of a detached pane. Default 200, 20 to 1000.
	Columns int32 `json:"columns,omitempty"`
	// Rows of a detached pane. Default 50, 5 to 1000.
	Rows int32 `json:"rows,omitempty"`
	// HistoryLimit is the number of lines of scrollback. Default 50000, 0 to
	// 1000000. A full history costs the tmux server about 1 kB a line.
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
}

// RestartPolicy says what a client's own exit means.
type RestartPolicy string

// The restart policies.
const (
	// RestartAlways starts the client again whatever its status was.
	RestartAlways RestartPolicy = "Always"
	// RestartOnFailure starts it again unless it exited with status 0; an
	// unknown status is a failure.
	RestartOnFailure RestartPolicy = "OnFailure"
	// RestartNever leaves it down after its own exit.
	RestartNever RestartPolicy = "Never"
)

// RecoveryPolicy decides about a session whose client was lost while no daemon
// looked.
type RecoveryPolicy string

// The recovery policies.
const (
	// RecoveryResume brings the client back.
	RecoveryResume RecoveryPolicy = "Resume"
	// RecoveryDormant leaves the session down until someone asks for it.
	RecoveryDormant RecoveryPolicy = "Dormant"
)

// UpdateStrategyType says when an edit may replace a running client.
type UpdateStrategyType string

// The update strategies.
const (
	// UpdateWhenIdle waits until the client is not working and nobody is
	// attached.
	UpdateWhenIdle UpdateStrategyType = "WhenIdle"
	// UpdateRecreate replaces the client at once.
	UpdateRecreate UpdateStrategyType = "Recreate"
	// UpdateOnRestart waits for the next restart, whatever causes it.
	UpdateOnRestart UpdateStrategyType = "OnRestart"
)

// ShellMode says which environment the client sees.
type ShellMode string

// The shell modes.
const (
	// ShellInteractive runs the person's shell with -lic: the environment of a
	// new pane.
	ShellInteractive ShellMode = "Interactive"
	// ShellLogin runs the person's shell with -lc.
	ShellLogin ShellMode = "Login"
	// ShellNone executes the client at once, with the daemon's PATH, HOME, USER,
	// LOGNAME, SHELL and LANG.
	ShellNone ShellMode = "None"
)

// WorkspaceType says whether the workspace directory must exist.
type WorkspaceType string

// The workspace types.
const (
	// WorkspaceDirectory must exist.
	WorkspaceDirectory WorkspaceType = "Directory"
	// WorkspaceDirectoryOrCreate is created with mode 0755 when it is missing.
	WorkspaceDirectoryOrCreate WorkspaceType = "DirectoryOrCreate"
)

// DeletionPolicy says what the removal of the document does to a running
// client.
type DeletionPolicy string

// The deletion policies.
const (
	// DeletionDelete stops it.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves it running in its pane.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// SessionStatus is what is known of a session. It is served by the API and
// never read from a file.
type SessionStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions are
	// about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions, always all of them once the session was visited.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Client is the current or last incarnation.
	Client ClientStatus `json:"client"`
	// Conversation is the client's own history; nil for a class without.
	Conversation *ConversationStatus `json:"conversation,omitempty"`
	// Activity is what the client is doing; nil for a class that does not tell.
	Activity *ActivityStatus `json:"activity,omitempty"`
	// LivenessProbe is what that has said of the present client; nil without one.
	LivenessProbe *LivenessProbeStatus `json:"livenessProbe,omitempty"`
	// Workspace is the directory in use.
	Workspace WorkspaceStatus `json:"workspace,omitempty"`
	// Tmux says where the pane is; nil when there is none.
	Tmux *TmuxStatus `json:"tmux,omitempty"`
	// Source is where the document that declares the session is.
	Source *SourceStatus `json:"source,omitempty"`
	// Evidence is what the conditions rest on.
	Evidence *EvidenceStatus `json:"evidence,omitempty"`
	// Decision is the last decision of the reconciler.
	Decision *DecisionStatus `json:"decision,omitempty"`
	// NextAttemptTime is when the next start is due; nil when none is waited for.
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`
	// ConsecutiveDeaths since the client last lived for backOff.resetAfter.
	ConsecutiveDeaths int32 `json:"consecutiveDeaths,omitempty"`
}

// ClientStatus is the current or last incarnation of the client.
type ClientStatus struct {
	// Incarnation is the number of the current or last one; 0 when there was
	// none.
	Incarnation int64 `json:"incarnation"`
	// Pid of the running client; 0 when none runs or none is proven to.
	Pid int `json:"pid,omitempty"`
	// StartedAt is when it was executed.
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// RestartCount counts the incarnations after the first; it is never reset.
	RestartCount int64 `json:"restartCount"`
	// Ready is true while the client runs, is ready, and its pane is there.
	Ready bool `json:"ready"`
	// Scope is the control group of the running client; nil when it has none of its own.
	Scope *ScopeStatus `json:"scope,omitempty"`
	// LastTermination is how the last incarnation that ended came to its end.
	LastTermination *Termination `json:"lastTermination,omitempty"`
	// Survivors are descendants that a restart left running.
	Survivors []int `json:"survivors,omitempty"`
}

// Termination is the end of an incarnation.
type Termination struct {
	// Incarnation that ended; 0 for an attempt that never executed its client.
	Incarnation int64 `json:"incarnation,omitempty"`
	// ExitCode is the exit status, or 128 plus the signal's number; nil when the
	// end was not observed.
	ExitCode *int32 `json:"exitCode,omitempty"`
	// Signal that ended it, such as SIGKILL; empty for an exit.
	Signal string `json:"signal,omitempty"`
	// Reason is one of the termination reasons.
	Reason string `json:"reason"`
	// Message for a person.
	Message string `json:"message,omitempty"`
	// FinishedAt is when the end was observed.
	FinishedAt metav1.Time `json:"finishedAt"`
}

// WorkspaceStatus is the directory in use.
type WorkspaceStatus struct {
	// Path with ~ and $VAR expanded.
	Path string `json:"path,omitempty"`
}

// TmuxStatus says where the pane is.
type TmuxStatus struct {
	// Socket of the tmux server.
	Socket string `json:"socket"`
	// Session is the id of the tmux session that holds the pane now, such as $3.
	Session string `json:"session"`
	// Pane is the pane's id, such as %7.
	Pane string `json:"pane"`
	// Attached counts the tmux clients attached to that session.
	Attached int `json:"attached"`
}

// SourceStatus is where a session's document is.
type SourceStatus struct {
	// File is the path as it was found below a manifest root.
	File string `json:"file"`
	// Line of the document's first key, from 1.
	Line int `json:"line,omitempty"`
	// Error is why the file's present content is not in use; empty when it is.
	Error string `json:"error,omitempty"`
	// Held is why the removal of the session is held back; empty when it is not.
	Held string `json:"held,omitempty"`
}

// EvidenceStatus is what the conditions rest on.
type EvidenceStatus struct {
	// ObservedAt is when tmux last answered in full.
	ObservedAt metav1.Time `json:"observedAt,omitempty"`
	// Pane judgement: Present, Dead, Absent or Unknown.
	Pane string `json:"pane"`
	// Process judgement: Running, Gone or Unknown.
	Process string `json:"process"`
	// Message says what was seen, for a person.
	Message string `json:"message,omitempty"`
	// LastScreen is the last lines that the dead pane shows, or those of the screen on
	// which a question waits for a person; at most 10.
	LastScreen []string `json:"lastScreen,omitempty"`
}

// DecisionStatus is the last decision of the reconciler.
type DecisionStatus struct {
	// Rule that decided.
	Rule string `json:"rule"`
	// Action taken; empty for none.
	Action string `json:"action,omitempty"`
	// Reason of the verdict.
	Reason string `json:"reason"`
	// Message of the verdict, for a person.
	Message string `json:"message,omitempty"`
	// At is when the decision last changed.
	At metav1.Time `json:"at"`
}
