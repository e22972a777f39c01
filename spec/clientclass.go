// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindClientClass is the kind of a ClientClass document.
const KindClientClass = "ClientClass"

// The built-in client classes. A declared class of the same name replaces one.
const (
	// ClassExec runs spec.client.command as it stands.
	ClassExec = "exec"
	// ClassClaude is Claude Code.
	ClassClaude = "claude"
	// ClassCodex is Codex.
	ClassCodex = "codex"
)

// ClientClass says how to start, resume, recognise and stop one kind of client. It
// is cluster-scoped: it has no namespace.
//
// +kubebuilder:object:root=true
type ClientClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec   ClientClassSpec   `json:"spec"`
	Status ClientClassStatus `json:"status,omitempty"`
}

// ClientClassList is a list of ClientClasses.
//
// +kubebuilder:object:root=true
type ClientClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClientClass `json:"items"`
}

// ClientClassStatus is served by the API and never read from a file.
type ClientClassStatus struct {
	// BuiltIn is true for a class that comes with muxlet.
	BuiltIn bool `json:"builtIn"`
	// Sessions counts the sessions that name the class.
	Sessions int32 `json:"sessions"`
	// Source is where the document is; nil for a built-in class.
	Source *SourceStatus `json:"source,omitempty"`
}

// ClientClassSpec is how one kind of client is handled. Its commands, its transcript,
// its config directory and the values of its env may have $(NAME): a variable of
// muxlet (see ClassVariables) or, in the pane, of the client's environment. $$(NAME)
// stands for the text $(NAME); a name that is not known stays as it is written, as in
// Kubernetes. $(PROMPT) is for submit alone.
type ClientClassSpec struct {
	// Start begins a fresh client. Without a command the session's client.command is
	// run.
	Start ClassCommand `json:"start,omitempty"`
	// Resume brings a client back with its conversation. Required unless
	// conversation.identity is None.
	Resume ClassCommand `json:"resume,omitempty"`
	// ConfigDirectory is where the client keeps its settings and conversations.
	ConfigDirectory ClassDirectory `json:"configDirectory,omitempty"`
	// Conversation is how the client's own history is named and found.
	Conversation ClassConversation `json:"conversation,omitempty"`
	// Reports says what kind of hooks and files of its own tell of the client. Default
	// None.
	Reports ReportsType `json:"reports,omitempty"`
	// Ready says when the client can take a turn. Without a pattern and without reports
	// it is ready once it was executed.
	Ready ClassReady `json:"ready,omitempty"`
	// Working is what the screen shows while a turn is being worked on.
	Working ClassPattern `json:"working,omitempty"`
	// Attention are the questions that a person must answer; the first that matches
	// counts.
	Attention []AttentionRule `json:"attention,omitempty"`
	// Failures are what the screen shows after a turn that has failed; the first that
	// matches counts.
	Failures []FailureRule `json:"failures,omitempty"`
	// Engine is the process that does the client's work where the client itself may be
	// a wrapper around it. Without it the client is all that is looked at.
	Engine ClassEngine `json:"engine,omitempty"`
	// Submit is how the client is given a turn.
	Submit ClassSubmit `json:"submit,omitempty"`
	// Stop is the polite way to end the client. Default SIGTERM.
	Stop ClassStop `json:"stop,omitempty"`
	// Credentials tell which sessions fail together.
	Credentials ClassCredentials `json:"credentials,omitempty"`
	// Env is set before the session's own envFrom and env, which win over it.
	Env []EnvVar `json:"env,omitempty"`
	// UnsetEnv are variables that the client must not inherit from the profile; a name
	// with * at its end stands for all that begin with it. Env and the session's own win
	// over it.
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z_][A-Za-z0-9_]*\*?$`
	UnsetEnv []string `json:"unsetEnv,omitempty"`
}

// ClassCommand is an argv, run without a shell.
type ClassCommand struct {
	// Command is the program and its arguments; the session's client.args are appended,
	// after client.startArgs on a fresh start.
	Command []string `json:"command,omitempty"`
}

// ClassDirectory names a directory by a variable of the client's environment.
type ClassDirectory struct {
	// Env is the variable that names it; used when it is set and not empty.
	// +kubebuilder:validation:Pattern=`^([A-Za-z_][A-Za-z0-9_]*)?$`
	Env string `json:"env,omitempty"`
	// Default is used otherwise, such as $(HOME)/.claude.
	// +kubebuilder:validation:Pattern=`^($|/|\$\([A-Za-z_][A-Za-z0-9_]*\))`
	Default string `json:"default,omitempty"`
}

// ClassConversation is how a client's history is named and found.
type ClassConversation struct {
	// Identity says who names it. Default None.
	Identity ConversationIdentity `json:"identity,omitempty"`
	// Transcript is a glob of the file that proves that a conversation can be resumed.
	// It may have $(HOME), $(CONFIG_DIRECTORY), $(WORKSPACE), $(SESSION_NAME) and
	// $(CONVERSATION_ID).
	// +kubebuilder:validation:Pattern=`^($|/|\$\([A-Za-z_][A-Za-z0-9_]*\))`
	Transcript string `json:"transcript,omitempty"`
	// TranscriptPattern is a regular expression (RE2) that a line of that file matches
	// once the conversation has begun. Without it a file with content will do.
	TranscriptPattern string `json:"transcriptPattern,omitempty"`
	// NotFoundPattern is a regular expression (RE2) that proves, in the pane of a client
	// that exits soon after a resume, that the conversation is gone.
	NotFoundPattern string `json:"notFoundPattern,omitempty"`
}

// ConversationIdentity says who names a conversation.
type ConversationIdentity string

// The identities.
const (
	// IdentityAssigned: muxlet makes a UUID and gives it to the client.
	IdentityAssigned ConversationIdentity = "Assigned"
	// IdentityReported: the client's hooks or files tell it.
	IdentityReported ConversationIdentity = "Reported"
	// IdentityNone: there is nothing to resume.
	IdentityNone ConversationIdentity = "None"
)

// ReportsType says what kind of hooks and files of its own tell of a client.
type ReportsType string

// The types of reports.
const (
	// ReportsClaude: the hooks and the live registry of Claude Code.
	ReportsClaude ReportsType = "ClaudeHooks"
	// ReportsCodex: the hooks, lock files and rollouts of Codex.
	ReportsCodex ReportsType = "CodexHooks"
	// ReportsNone: only the screen tells.
	ReportsNone ReportsType = "None"
)

// ClassReady says when a client can take a turn.
type ClassReady struct {
	// Pattern is a regular expression (RE2, multi-line) that the screen matches then. Its
	// lines have no blanks at their ends.
	Pattern string `json:"pattern,omitempty"`
	// TimeoutSeconds after which a client that lives and is not ready is taken to ask
	// something that muxlet does not know. Default 30, 1 to 3600.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// ClassPattern is something that a screen shows.
type ClassPattern struct {
	// Pattern is a regular expression (RE2, multi-line).
	Pattern string `json:"pattern,omitempty"`
}

// AttentionRule recognises a question.
type AttentionRule struct {
	// Pattern is a regular expression (RE2, multi-line).
	Pattern string `json:"pattern"`
	// Reason is the reason of InputRequired, in CamelCase.
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]{0,62}$`
	Reason string `json:"reason"`
}

// FailureRule recognises a failed turn.
type FailureRule struct {
	// Pattern is a regular expression (RE2, multi-line). A group named until catches the
	// time at which the client may be used again, as the client writes it.
	Pattern string `json:"pattern"`
	// Reason, in CamelCase, such as UsageLimited.
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]{0,62}$`
	Reason string `json:"reason"`
	// Retry says whether others that share the credential would fail alike. Default
	// Again.
	Retry RetryClass `json:"retry,omitempty"`
}

// RetryClass says what helps after a failure.
type RetryClass string

// The retry classes.
const (
	// RetryAgain: the next turn may go well; nothing is held.
	RetryAgain RetryClass = "Again"
	// RetryHold: every client with the same credential fails alike, until the time that
	// the failure tells, or until something is done about it.
	RetryHold RetryClass = "Hold"
)

// ClassEngine names the program that does a client's work. Once it was seen, as the
// client itself, as a child of it, or below it with shells alone between them, a client
// that outlives it by more than a moment, without another one, is ended and brought
// back.
type ClassEngine struct {
	// Executable is the base name of the file that the process executes, such as codex:
	// for a script, its interpreter's.
	Executable string `json:"executable,omitempty"`
}

// ClassStop is the polite way to end a client; SIGTERM and SIGKILL follow it.
type ClassStop struct {
	// Signal to send: SIGTERM, SIGINT, SIGHUP or SIGQUIT. Default SIGTERM.
	// +kubebuilder:validation:Enum=SIGTERM;SIGINT;SIGHUP;SIGQUIT
	Signal string `json:"signal,omitempty"`
	// Keys are typed into the pane instead, in tmux's notation, such as [C-c, C-c].
	// +kubebuilder:validation:MaxItems=16
	Keys []string `json:"keys,omitempty"`
}

// ClassCredentials tell which sessions fail together: those whose key comes from the
// same place or, without a key, those with the same config directory.
type ClassCredentials struct {
	// Env are the variables that carry a key.
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Env []string `json:"env,omitempty"`
}

// ConversationSpec is what a person wants of a session's conversation.
type ConversationSpec struct {
	// ID adopts an existing conversation. It is taken up once; what the client reports
	// afterwards counts.
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9_:@+=,~][A-Za-z0-9_.:@+=,~-]*|\.+[A-Za-z0-9_:@+=,~-][A-Za-z0-9_.:@+=,~-]*)?$`
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id,omitempty"`
	// MissingPolicy says what follows when the stored conversation provably no longer
	// exists. Default StartFresh.
	MissingPolicy MissingPolicy `json:"missingPolicy,omitempty"`
}

// MissingPolicy says what follows when a conversation no longer exists.
type MissingPolicy string

// The policies.
const (
	// MissingStartFresh begins a new conversation, with a Warning event.
	MissingStartFresh MissingPolicy = "StartFresh"
	// MissingHold starts nothing until a person acts.
	MissingHold MissingPolicy = "Hold"
)

// ConversationStatus is the conversation of a session.
type ConversationStatus struct {
	// ID is the client's own.
	ID string `json:"id,omitempty"`
	// Source says where it comes from: Assigned, Reported or Adopted.
	Source ConversationSource `json:"source,omitempty"`
	// Resumable is true when there is evidence that it can be resumed, false when it is
	// proven that it cannot; nil when that is not known.
	Resumable *bool `json:"resumable,omitempty"`
	// Transcript is the file that is the evidence; empty when none was found.
	Transcript string `json:"transcript,omitempty"`
	// Directory in which it began.
	Directory string `json:"directory,omitempty"`
	// History are the earlier ones, the latest first.
	History []PastConversation `json:"history,omitempty"`
}

// ConversationSource says where a conversation's id comes from.
type ConversationSource string

// The sources.
const (
	// SourceAssigned: muxlet made it.
	SourceAssigned ConversationSource = "Assigned"
	// SourceReported: the client told it.
	SourceReported ConversationSource = "Reported"
	// SourceAdopted: spec.conversation.id.
	SourceAdopted ConversationSource = "Adopted"
)

// PastConversation is one that another has replaced.
type PastConversation struct {
	// ID is the client's own.
	ID string `json:"id"`
	// ReplacedAt is when.
	ReplacedAt metav1.Time `json:"replacedAt"`
	// Reason why: one of the Replaced reasons.
	Reason string `json:"reason"`
	// ClientClassName of it.
	ClientClassName string `json:"clientClassName,omitempty"`
}

// Activity is what a client is doing. It never decides liveness.
type Activity string

// The activities.
const (
	ActivityUnknown       Activity = "Unknown"
	ActivityWorking       Activity = "Working"
	ActivityAwaitingInput Activity = "AwaitingInput"
	ActivityIdle          Activity = "Idle"
)

// ActivityStatus is what a client is doing, as far as it is known.
type ActivityStatus struct {
	// State is what it is doing.
	State Activity `json:"state"`
	// Since when.
	Since metav1.Time `json:"since,omitempty"`
	// ReportedAt is when the client last reported anything; nil when it never has.
	ReportedAt *metav1.Time `json:"reportedAt,omitempty"`
	// AsksSince is when the client last began to ask for a person's attention: when the
	// question came that waits now, or when it ended work. Nil while it works, and before
	// it has done anything that this daemon saw.
	AsksSince *metav1.Time `json:"asksSince,omitempty"`
	// SeenAt is when a person last had had the client in front of them (attached, its
	// window shown, its pane the active one) for activity.focusAfter while it asked. A
	// session that was seen since asksSince asks for attention no more until its client
	// does new work or has a new question. Neither survives the daemon: the next one
	// lets a question ask again.
	SeenAt *metav1.Time `json:"seenAt,omitempty"`
	// Failure is the reason of the last turn's failure; empty once one went well.
	Failure string `json:"failure,omitempty"`
	// RetryTime is when the client may be used again, as the failure told.
	RetryTime *metav1.Time `json:"retryTime,omitempty"`
}
