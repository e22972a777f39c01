// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

// The conditions of a Session. All of them are present from the first visit.
const (
	// ConditionAccepted: the document in force decodes and is valid.
	ConditionAccepted = "Accepted"
	// ConditionObserved: tmux and the process table answered.
	ConditionObserved = "Observed"
	// ConditionWorkspaceReady: the workspace can be used.
	ConditionWorkspaceReady = "WorkspaceReady"
	// ConditionClientAlive: the client's process runs.
	ConditionClientAlive = "ClientAlive"
	// ConditionConversationBound: a conversation belongs to the session.
	ConditionConversationBound = "ConversationBound"
	// ConditionUpToDate: the running client was started from the present spec.
	ConditionUpToDate = "UpToDate"
	// ConditionReady: the session can be used now.
	ConditionReady = "Ready"
	// ConditionSuspended: spec.suspend holds the client down.
	ConditionSuspended = "Suspended"
	// ConditionInputRequired: the client is alive and a person must answer.
	ConditionInputRequired = "InputRequired"
	// ConditionStalled: nothing changes until a person or the world acts.
	ConditionStalled = "Stalled"
)

// ConditionTypes lists every condition in the order in which it is shown.
var ConditionTypes = []string{
	ConditionAccepted, ConditionObserved, ConditionWorkspaceReady, ConditionClientAlive,
	ConditionConversationBound, ConditionUpToDate, ConditionReady, ConditionSuspended,
	ConditionInputRequired, ConditionStalled,
}

// Reasons of conditions, verdicts and events. One word is used for one meaning
// everywhere.
const (
	// ReasonAccepted: the document is valid.
	ReasonAccepted = "Accepted"
	// ReasonInvalid: the document does not decode or validate.
	ReasonInvalid = "Invalid"
	// ReasonDuplicateName: two documents declare the same name.
	ReasonDuplicateName = "DuplicateName"
	// ReasonRemovalHeld: the document is missing but its removal is held back.
	ReasonRemovalHeld = "RemovalHeld"
	// ReasonRemovalSettling: the document is missing; the settle time runs.
	ReasonRemovalSettling = "RemovalSettling"

	// ReasonObserved: a complete observation was made.
	ReasonObserved = "Observed"
	// ReasonNotYetObserved: no observation was made since the daemon started.
	ReasonNotYetObserved = "NotYetObserved"
	// ReasonTmuxTimeout: tmux did not answer within its deadline.
	ReasonTmuxTimeout = "TmuxTimeout"
	// ReasonTmuxNotFound: the tmux program was not found.
	ReasonTmuxNotFound = "TmuxNotFound"
	// ReasonTmuxUnreachable: the recorded tmux server lives but does not answer
	// on its socket.
	ReasonTmuxUnreachable = "TmuxUnreachable"
	// ReasonTmuxDenied: tmux or the socket refused access.
	ReasonTmuxDenied = "TmuxDenied"
	// ReasonTmuxMismatch: client and server speak different protocols.
	ReasonTmuxMismatch = "TmuxMismatch"
	// ReasonTmuxFailed: tmux failed in another way.
	ReasonTmuxFailed = "TmuxFailed"
	// ReasonListingIncomplete: a listing broke off or was malformed.
	ReasonListingIncomplete = "ListingIncomplete"
	// ReasonTwoServers: another tmux server answers on the path of a recorded
	// one that lives.
	ReasonTwoServers = "TwoServers"
	// ReasonForeignServer: the tmux server on the path belongs to another
	// instance of muxlet.
	ReasonForeignServer = "ForeignServer"
	// ReasonProcessUnknown: the process table could not be read.
	ReasonProcessUnknown = "ProcessUnknown"
	// ReasonServerStarting: a tmux server is being started.
	ReasonServerStarting = "ServerStarting"
	// ReasonTmuxServerFailed: a tmux server could not be started.
	ReasonTmuxServerFailed = "TmuxServerFailed"

	// ReasonRunning: the client runs in its pane.
	ReasonRunning = "Running"
	// ReasonStarting: an attempt to start the client is in flight.
	ReasonStarting = "Starting"
	// ReasonStopping: the client is being ended.
	ReasonStopping = "Stopping"
	// ReasonStarted: a client was executed.
	ReasonStarted = "Started"
	// ReasonAdopted: a running client was taken over from what tmux shows.
	ReasonAdopted = "Adopted"
	// ReasonDied: a client ended without being asked to by muxlet.
	ReasonDied = "Died"
	// ReasonStopped: a client was ended by muxlet.
	ReasonStopped = "Stopped"
	// ReasonKilled: the grace period passed and SIGKILL was sent, or a signal
	// ended the client.
	ReasonKilled = "Killed"
	// ReasonExited: the client exited with a status other than 0.
	ReasonExited = "Error"
	// ReasonCompleted: the client exited with status 0, or its restart policy
	// leaves it down.
	ReasonCompleted = "Completed"
	// ReasonLost: the end of a client was not observed.
	ReasonLost = "Lost"
	// ReasonNoClient: there is no client.
	ReasonNoClient = "NoClient"
	// ReasonPaneGone: the process runs but its pane does not.
	ReasonPaneGone = "PaneGone"
	// ReasonOrphan: a client that runs without its pane is being ended.
	ReasonOrphan = "Orphan"
	// ReasonEngineGone: the client's wrapper runs and the program that does its work has
	// ended.
	ReasonEngineGone = "EngineGone"
	// ReasonLivenessProbeFailed: the client's liveness probe has failed so often that the
	// client is replaced.
	ReasonLivenessProbeFailed = "LivenessProbeFailed"
	// ReasonLivenessProbeFailing: the client's liveness probe fails, not often enough yet
	// to replace the client.
	ReasonLivenessProbeFailing = "LivenessProbeFailing"
	// ReasonLivenessProbeUnknown: the client's liveness probe gives no answer.
	ReasonLivenessProbeUnknown = "LivenessProbeUnknown"
	// ReasonDuplicateClient: more than one live client was found for a session.
	ReasonDuplicateClient = "DuplicateClient"
	// ReasonStartFailed: an attempt ended before its client was executed.
	ReasonStartFailed = "StartFailed"
	// ReasonStartTimeout: an attempt did not become ready in time.
	ReasonStartTimeout = "StartTimeout"
	// ReasonAttemptAbandoned: an attempt was fenced off without a receipt.
	ReasonAttemptAbandoned = "AttemptAbandoned"
	// ReasonCrashLoopBackOff: the next start waits because of earlier deaths.
	ReasonCrashLoopBackOff = "CrashLoopBackOff"
	// ReasonWaitingForBudget: too many starts are in flight.
	ReasonWaitingForBudget = "WaitingForBudget"
	// ReasonTooManyTerminals: the system is about to run out of pseudo-terminals.
	ReasonTooManyTerminals = "TooManyTerminals"
	// ReasonTooManyOpenFiles: the tmux server, or the daemon, is about to run out of
	// file descriptors.
	ReasonTooManyOpenFiles = "TooManyOpenFiles"
	// ReasonResourcesUnsupported: the session's limits cannot be put in force here.
	ReasonResourcesUnsupported = "ResourcesUnsupported"
	// ReasonResourcesIgnored: the client runs without the limits that its session gives.
	ReasonResourcesIgnored = "ResourcesIgnored"
	// ReasonScopeFailed: the client runs outside of a scope of its own.
	ReasonScopeFailed = "ScopeFailed"
	// ReasonOOMKilled: the kernel ended a process of the session for want of memory.
	ReasonOOMKilled = "OOMKilled"
	// ReasonLeftoversEnded: what a session had left in its scope was ended.
	ReasonLeftoversEnded = "LeftoversEnded"
	// ReasonConfirming: most sessions were seen dead at once; looking again.
	ReasonConfirming = "Confirming"
	// ReasonPaneTaken: a person runs something else in the pane; it is theirs.
	ReasonPaneTaken = "PaneTaken"
	// ReasonNameConflict: a foreign tmux session has the wanted name.
	ReasonNameConflict = "NameConflict"
	// ReasonClientIgnoresKill: the client outlived SIGKILL.
	ReasonClientIgnoresKill = "ClientIgnoresKill"

	// ReasonWorkspaceReady: the directory is there.
	ReasonWorkspaceReady = "WorkspaceReady"
	// ReasonWorkspaceMissing: the directory does not exist.
	ReasonWorkspaceMissing = "WorkspaceMissing"
	// ReasonWorkspaceNotDirectory: the path is not a directory.
	ReasonWorkspaceNotDirectory = "WorkspaceNotDirectory"
	// ReasonWorkspaceInaccessible: the directory could not be entered or made.
	ReasonWorkspaceInaccessible = "WorkspaceInaccessible"
	// ReasonCommandNotFound: the program was not found or cannot be executed.
	ReasonCommandNotFound = "CommandNotFound"
	// ReasonEnvFileMissing: a file that env or envFrom names does not exist.
	ReasonEnvFileMissing = "EnvFileMissing"
	// ReasonEnvFileUnreadable: a file that env or envFrom names is there and could
	// not be read.
	ReasonEnvFileUnreadable = "EnvFileUnreadable"
	// ReasonEnvFileInvalid: what is in a file that env or envFrom names cannot be
	// used.
	ReasonEnvFileInvalid = "EnvFileInvalid"
	// ReasonCommandNotExecutable: the program was found, and the system cannot
	// execute it as it is: no interpreter, another format or architecture.
	ReasonCommandNotExecutable = "CommandNotExecutable"
	// ReasonExecFailed: the system refused to execute the program.
	ReasonExecFailed = "ExecFailed"
	// ReasonFenced: the attempt was given up before its launcher got to run.
	ReasonFenced = "Fenced"
	// ReasonLeaseHeld: another client of the session holds the lease.
	ReasonLeaseHeld = "LeaseHeld"
	// ReasonShellUnsupported: the account's shell is not one that muxlet knows.
	ReasonShellUnsupported = "ShellUnsupported"
	// ReasonStateUnwritable: the record could not be written.
	ReasonStateUnwritable = "StateUnwritable"
	// ReasonRecordQuarantined: both generations of the record are damaged.
	ReasonRecordQuarantined = "RecordQuarantined"
	// ReasonRecordTooNew: the record was written by a newer muxlet.
	ReasonRecordTooNew = "RecordTooNew"

	// ReasonSuspended: spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonNotSuspended: spec.suspend is false.
	ReasonNotSuspended = "NotSuspended"
	// ReasonTerminated: ended by a person; down until a demand.
	ReasonTerminated = "Terminated"
	// ReasonNotRecovered: lost while no daemon looked and recoveryPolicy is
	// Dormant.
	ReasonNotRecovered = "NotRecovered"
	// ReasonResumed: a person asked for a client.
	ReasonResumed = "Resumed"
	// ReasonRestarting: a person asked for another client.
	ReasonRestarting = "Restarting"
	// ReasonRemoved: the document was removed.
	ReasonRemoved = "Removed"
	// ReasonOrphaned: the document was removed and the client left running.
	ReasonOrphaned = "Orphaned"
	// ReasonUnclaimed: a pane of this instance has no session.
	ReasonUnclaimed = "Unclaimed"

	// ReasonUpToDate: the client runs what the spec says.
	ReasonUpToDate = "UpToDate"
	// ReasonUpdatePending: an edit waits for its moment.
	ReasonUpdatePending = "UpdatePending"
	// ReasonUpdating: an edit is replacing the client.
	ReasonUpdating = "Updating"
	// ReasonLaunchedSpecUnknown: what the client was started from is not known.
	ReasonLaunchedSpecUnknown = "LaunchedSpecUnknown"
	// ReasonNotApplicable: the condition has no meaning for this class.
	ReasonNotApplicable = "NotApplicable"
	// ReasonNothingAsked: no question waits for a person.
	ReasonNothingAsked = "NothingAsked"
	// ReasonProgressing: muxlet can go on by itself.
	ReasonProgressing = "Progressing"
	// ReasonUnknown: there is no answer yet.
	ReasonUnknown = "Unknown"

	// ReasonReady: the client can take a turn.
	ReasonReady = "Ready"
	// ReasonNotReady: the client runs and has not said that it can take a turn.
	ReasonNotReady = "NotReady"
	// ReasonTrustRequired: the client asks whether the directory is to be trusted.
	ReasonTrustRequired = "TrustRequired"
	// ReasonLoginRequired: the client asks for a login or a key.
	ReasonLoginRequired = "LoginRequired"
	// ReasonPermissionRequired: the client asks whether it may do something.
	ReasonPermissionRequired = "PermissionRequired"
	// ReasonHookTrustRequired: the client asks whether the hooks are to be trusted.
	ReasonHookTrustRequired = "HookTrustRequired"
	// ReasonUpdateOffered: the client offers a new version of itself.
	ReasonUpdateOffered = "UpdateOffered"
	// ReasonChoiceRequired: the client asks how to go on with a conversation.
	ReasonChoiceRequired = "ChoiceRequired"
	// ReasonQuestion: the client is alive, not ready, and shows something that its
	// class does not know.
	ReasonQuestion = "UnknownQuestion"

	// ReasonAuthenticationFailed: the credential was refused.
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// ReasonUsageLimited: the account's limit is used up.
	ReasonUsageLimited = "UsageLimited"
	// ReasonRateLimited: too many requests; the client tries again by itself or at the
	// next turn.
	ReasonRateLimited = "RateLimited"
	// ReasonModelUnavailable: the model's server failed or was overloaded.
	ReasonModelUnavailable = "ModelUnavailable"
	// ReasonTurnFailed: a turn failed in another way.
	ReasonTurnFailed = "TurnFailed"
	// ReasonRecovered: a turn went well after failures.
	ReasonRecovered = "Recovered"

	// ReasonClassNotFound: no client class has the name that the session gives.
	ReasonClassNotFound = "ClassNotFound"
	// ReasonConversationBound: the session has a conversation.
	ReasonConversationBound = "ConversationBound"
	// ReasonConversationNew: the conversation has an id and no turn yet.
	ReasonConversationNew = "ConversationNew"
	// ReasonConversationPending: the client has not told its conversation yet.
	ReasonConversationPending = "ConversationPending"
	// ReasonConversationMissing: the stored conversation provably no longer exists.
	ReasonConversationMissing = "ConversationMissing"
	// ReasonConversationElsewhere: the stored conversation belongs to another directory
	// or config directory than the session's present one.
	ReasonConversationElsewhere = "ConversationElsewhere"
	// ReasonConversationInUse: another session, or another process, has the
	// conversation.
	ReasonConversationInUse = "ConversationInUse"
	// ReasonConversationUnknown: whether the conversation exists could not be read.
	ReasonConversationUnknown = "ConversationUnknown"
	// ReasonResumeFailed: a client that was to resume its conversation ended soon.
	ReasonResumeFailed = "ResumeFailed"
	// ReasonFreshStart: a new conversation is begun although the session had one.
	ReasonFreshStart = "FreshStart"
	// ReasonConversationChanged: the client told another conversation.
	ReasonConversationChanged = "ConversationChanged"

	// Why a conversation was replaced.
	//
	// ReplacedCleared: by the client, at a person's /clear or /new.
	ReplacedCleared = "Cleared"
	// ReplacedForked: by a fork.
	ReplacedForked = "Forked"
	// ReplacedResumed: a person resumed another one in the client.
	ReplacedResumed = "Resumed"
	// ReplacedReported: the client told another one without saying why.
	ReplacedReported = "Reported"
	// ReplacedNeverBegun: it never had a turn.
	ReplacedNeverBegun = "NeverBegun"
	// ReplacedMissing: it no longer exists.
	ReplacedMissing = "Missing"
	// ReplacedFresh: a person asked for a fresh one.
	ReplacedFresh = "Fresh"
	// ReplacedAdopted: spec.conversation.id names another one.
	ReplacedAdopted = "Adopted"
	// ReplacedClassChanged: the session has another client class now.
	ReplacedClassChanged = "ClassChanged"

	// ReasonDormant: no client is wanted until a demand.
	ReasonDormant = "Dormant"
	// ReasonAttached: a person wants to attach to a client.
	ReasonAttached = "Attached"
	// ReasonTurnSent: a turn asks for a client.
	ReasonTurnSent = "TurnSent"

	// Why a turn is where it is.
	//
	// ReasonPending: the turn was taken and nothing was done about it yet.
	ReasonPending = "Pending"
	// ReasonQueued: turns that were sent before it come first.
	ReasonQueued = "Queued"
	// ReasonClientWorking: the client works on something.
	ReasonClientWorking = "ClientWorking"
	// ReasonComposerInUse: something that was not submitted stands in the client's input
	// line.
	ReasonComposerInUse = "ComposerInUse"
	// ReasonCursorMoved: the client's cursor was not where it had been seen, so that
	// nothing was typed.
	ReasonCursorMoved = "CursorMoved"
	// ReasonPaneInputTaken: a person has switched the input of the client's pane off, or
	// has it copied to other panes, so that nothing was typed.
	ReasonPaneInputTaken = "PaneInputTaken"
	// ReasonDelivering: the turn is being handed over.
	ReasonDelivering = "Delivering"
	// ReasonDelivered: the client has it.
	ReasonDelivered = "Delivered"
	// ReasonNotDelivered: it was not handed over.
	ReasonNotDelivered = "NotDelivered"
	// ReasonNotConfirmed: it was handed over, and nothing has confirmed that.
	ReasonNotConfirmed = "NotConfirmed"
	// ReasonNotSubmitted: it stands in the client's input line and was not submitted.
	ReasonNotSubmitted = "NotSubmitted"
	// ReasonInterrupted: the daemon ended during the hand-over.
	ReasonInterrupted = "Interrupted"
	// ReasonInProgress: the client works on the turn.
	ReasonInProgress = "InProgress"
	// ReasonNotReported: the client does not tell how a turn has ended.
	ReasonNotReported = "NotReported"
	// ReasonClientDied: the client has ended before the turn had.
	ReasonClientDied = "ClientDied"
	// ReasonCancelled: a person took the turn back.
	ReasonCancelled = "Cancelled"
	// ReasonDeadlineExceeded: its deadline has passed before the hand-over.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonTmuxUnavailable: tmux could not be asked.
	ReasonTmuxUnavailable = "TmuxUnavailable"
	// ReasonPromptLost: the file with its prompt is gone or damaged.
	ReasonPromptLost = "PromptLost"

	// ReasonSettingsReloaded: the daemon's settings were read again and are in force.
	ReasonSettingsReloaded = "SettingsReloaded"
	// ReasonSettingsInvalid: the settings file cannot be used; the earlier settings
	// stay in force.
	ReasonSettingsInvalid = "SettingsInvalid"

	// ReasonNotificationFailed: a person could not be notified: their command failed, or
	// a terminal did not take it.
	ReasonNotificationFailed = "NotificationFailed"

	// ReasonServerAsked: systemd was asked to start the unit that owns the tmux server.
	ReasonServerAsked = "ServerAsked"
	// ReasonServerStarted: a tmux server was started.
	ReasonServerStarted = "ServerStarted"
	// ReasonServerLost: the recorded tmux server is proven dead.
	ReasonServerLost = "ServerLost"
	// ReasonServerSharesUnit: the tmux server is in the daemon's own unit of systemd, and
	// would end with it.
	ReasonServerSharesUnit = "ServerSharesUnit"
	// ReasonServerKept: the tmux server was told to end by itself, and was told
	// otherwise.
	ReasonServerKept = "ServerKept"
	// ReasonTmuxNotConfigured: the tmux server did not take its configuration; it goes on with
	// the one that it has.
	ReasonTmuxNotConfigured = "TmuxNotConfigured"
	// ReasonTmuxIncludeInvalid: something is wrong with the file that tmux.include names.
	ReasonTmuxIncludeInvalid = "TmuxIncludeInvalid"
	// ReasonTmuxIncludeRead: the file that tmux.include names was read and is in force.
	ReasonTmuxIncludeRead = "TmuxIncludeRead"
	// ReasonSocketRestored: the socket of the recorded tmux server was recovered.
	ReasonSocketRestored = "SocketRestored"
)

// Status is the computed word of the STATUS column.
type Status string

// The words of the STATUS column.
const (
	StatusRunning          Status = "Running"
	StatusStarting         Status = "Starting"
	StatusDormant          Status = "Dormant"
	StatusTerminated       Status = "Terminated"
	StatusSuspended        Status = "Suspended"
	StatusCompleted        Status = "Completed"
	StatusCrashLoopBackOff Status = "CrashLoopBackOff"
	StatusBlocked          Status = "Blocked"
	StatusStopping         Status = "Stopping"
	StatusInvalid          Status = "Invalid"
	StatusConflict         Status = "Conflict"
	StatusUnknown          Status = "Unknown"
)

// Statuses are all words of the STATUS column.
var Statuses = []Status{
	StatusRunning, StatusStarting, StatusDormant, StatusTerminated, StatusSuspended, StatusCompleted,
	StatusCrashLoopBackOff, StatusBlocked, StatusStopping, StatusInvalid, StatusConflict, StatusUnknown,
}
