// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muxlet/muxlet/spec"
)

// whatToDo is what a person can do about a session that is not as it should be;
// empty when there is nothing to do.
func whatToDo(s *spec.Session, status spec.Status, reason string) string {
	var advice []string
	if hint := hintOf(s, status, reason); hint != nil {
		advice = append(advice, hint(s))
	}
	if c := failing(s, spec.ConditionAccepted); c != nil && c.Reason != reason {
		if hint, ok := hints[c.Reason]; ok {
			advice = append(advice, hint(s))
		}
	}
	if s.Status.Source != nil && s.Status.Source.Held != "" && reason != spec.ReasonRemovalHeld {
		advice = append(advice, hints[spec.ReasonRemovalHeld](s))
	}
	if c := meta.FindStatusCondition(s.Status.Conditions, spec.ConditionClientAlive); c != nil && c.Reason == spec.ReasonLivenessProbeUnknown {
		advice = append(advice, hints[spec.ReasonLivenessProbeUnknown](s))
	}
	if c := meta.FindStatusCondition(s.Status.Conditions, spec.ConditionUpToDate); c != nil && c.Reason == spec.ReasonUpdatePending {
		advice = append(advice, hints[spec.ReasonUpdatePending](s))
	}
	return strings.Join(advice, "\n")
}

// hintOf is the hint for how the session is; nil when there is none. A client that runs
// may have failed at its last turn.
func hintOf(s *spec.Session, status spec.Status, reason string) hint {
	switch a := s.Status.Activity; {
	case status != spec.StatusRunning || explainsRunning[reason]:
		return hints[reason]
	case a != nil:
		return failedTurns[a.Failure]
	}
	return nil
}

// explainsRunning has the reasons that need a person although a client runs.
var explainsRunning = map[string]bool{
	spec.ReasonInvalid:           true,
	spec.ReasonDuplicateName:     true,
	spec.ReasonRemovalHeld:       true,
	spec.ReasonRemovalSettling:   true,
	spec.ReasonDuplicateClient:   true,
	spec.ReasonClientIgnoresKill: true,
	spec.ReasonStateUnwritable:   true,

	spec.ReasonTrustRequired:      true,
	spec.ReasonLoginRequired:      true,
	spec.ReasonPermissionRequired: true,
	spec.ReasonHookTrustRequired:  true,
	spec.ReasonUpdateOffered:      true,
	spec.ReasonChoiceRequired:     true,
	spec.ReasonQuestion:           true,
}

// failedTurns are the failures of a turn that a person can do something about, while the
// client runs on.
var failedTurns = map[string]hint{
	spec.ReasonAuthenticationFailed: withName("Renew the credential (log in, or correct the key) and send the prompt again: muxlet attach %[1]s. A key that its file or its environment gives is read at a start: muxlet restart %[1]s"),
	spec.ReasonUsageLimited:         withName("Wait for the time that Failure states, if it does, or use another plan: muxlet attach %[1]s"),
}

// hint is advice about one session.
type hint func(*spec.Session) string

// always is advice that does not depend on the session.
func always(text string) hint { return func(*spec.Session) string { return text } }

// withName puts the session's name where %[1]s is.
func withName(format string) hint {
	return func(s *spec.Session) string { return fmt.Sprintf(format, s.Name) }
}

// hints says for each reason that a person can do something about what that is.
var hints = map[string]hint{
	spec.ReasonInvalid:         adviseInvalid,
	spec.ReasonDuplicateName:   always("Remove or rename one of the two documents that declare this name; nothing else is needed."),
	spec.ReasonRemovalHeld:     always("Put the file back to keep the session, or run \"muxlet prune --confirm\" to let it go."),
	spec.ReasonRemovalSettling: always("Nothing to let it go; put the file back at once to keep the session."),

	spec.ReasonNotYetObserved:    always("Wait: the daemon has just started and looks at tmux first."),
	spec.ReasonTmuxTimeout:       always("See whether the tmux server is stopped or overloaded (ps shows it in state T when it is stopped). Nothing is started or stopped meanwhile; it goes on by itself when tmux answers."),
	spec.ReasonTmuxNotFound:      always("Install tmux, or name it in the settings (tmux.command). It is looked for again by itself."),
	spec.ReasonTmuxUnreachable:   always("Wait: the tmux server lives and is asked to make its socket again. Nothing is started or stopped meanwhile."),
	spec.ReasonTmuxDenied:        always("See who owns the runtime directory and its tmux.sock; the daemon's user must be able to open them."),
	spec.ReasonTmuxMismatch:      always("tmux was replaced while its server ran: put the old program back, or end the tmux server when its sessions may end."),
	spec.ReasonTmuxFailed:        always("See what tmux says in the message. It is asked again by itself."),
	spec.ReasonListingIncomplete: always("Wait: the listing of tmux broke off and is made again by itself."),
	spec.ReasonTwoServers:        always("End the other tmux server on this socket; the one with the sessions is asked to take its socket back by itself."),
	spec.ReasonForeignServer:     always("The tmux server on this socket belongs to another state directory: give this daemon a --runtime-dir of its own."),
	spec.ReasonProcessUnknown:    always("Wait: the process table could not be read and is read again by itself. Nothing is started or stopped meanwhile."),
	spec.ReasonTmuxServerFailed:  always("See why tmux does not start in the message. It is tried again by itself."),

	spec.ReasonCrashLoopBackOff:     withName("See why it ends: muxlet logs %[1]s. An edit of its file, or muxlet resume %[1]s, tries again at once."),
	spec.ReasonStartFailed:          withName("See the message and: muxlet logs %[1]s. It is tried again by itself; an edit of the file tries at once."),
	spec.ReasonStartTimeout:         withName("See what the start waits for: muxlet attach %[1]s or muxlet logs %[1]s. A shell profile that asks or hangs is the usual cause; shellMode None does without one."),
	spec.ReasonAttemptAbandoned:     withName("It is tried again by itself. See what the start left behind: muxlet logs %[1]s"),
	spec.ReasonWaitingForBudget:     always("Wait: other sessions are starting. starts.maxInFlight in the settings sets how many may."),
	spec.ReasonTooManyTerminals:     always("End what uses the terminals of this system, or raise kernel.pty.max; it is tried again by itself. What runs is not touched."),
	spec.ReasonTooManyOpenFiles:     always("Raise the limit that the message names; it is tried again by itself. What runs is not touched."),
	spec.ReasonResourcesUnsupported: withName("Limits need a systemd manager of this user: see that it runs (systemctl --user status) and stays (loginctl enable-linger), and that the settings do not say scopes: Never. Or take spec.resources.limits out of %[1]s, or set its onUnsupported: Ignore. It is tried again by itself when the manager is there."),
	spec.ReasonNameConflict:         adviseNameConflict,
	spec.ReasonPaneTaken:            always("Wait: what was started in the pane goes on there, and the client comes back beside it."),
	spec.ReasonDuplicateClient:      always("More than one client of this session runs, and none is the recorded one: end those that should not be."),
	spec.ReasonClientIgnoresKill:    always("The client does not end, even by SIGKILL: it most likely waits for a device or a network file system. Nothing is started until it is gone."),
	spec.ReasonOrphan:               always("Wait: a client without its pane is ended first."),
	spec.ReasonEngineGone:           withName("Wait: the wrapper is ended and the client comes back. What it has shown last: muxlet logs %[1]s"),

	spec.ReasonLivenessProbeUnknown: always("The liveness probe gives no answer, and so guards nothing: run its command by hand in the session's directory, and mend it or correct spec.livenessProbe."),

	spec.ReasonWorkspaceMissing:      adviseDirectory("Create the directory (mkdir -p %[1]s), or edit spec.workspace.directory; it is tried again by itself."),
	spec.ReasonWorkspaceNotDirectory: adviseDirectory("%[1]s is there and is no directory: move it away, or edit spec.workspace.directory; it is tried again by itself."),
	spec.ReasonWorkspaceInaccessible: adviseDirectory("Give this user access to %[1]s (ls -ld shows who has it), or edit spec.workspace.directory; it is tried again by itself."),
	spec.ReasonCommandNotFound:       adviseCommand,
	spec.ReasonCommandNotExecutable:  always("Mend or replace the program as the message says, or correct spec.client.command; it is tried again by itself."),
	spec.ReasonEnvFileMissing:        always("Create the file that the message names, or set optional: true on it; it is tried again by itself."),
	spec.ReasonEnvFileUnreadable:     always("Give this user access to the file that the message names (ls -l shows who has it); it is tried again by itself."),
	spec.ReasonEnvFileInvalid:        always("Correct the file that the message names (envFrom takes lines of NAME=value); it is tried again by itself."),
	spec.ReasonExecFailed:            always("See what the system said in the message; an edit of spec.client or of the program tries again."),
	spec.ReasonLeaseHeld:             always("Another client of this session still runs and holds its lease; it is tried again when that one ends."),
	spec.ReasonShellUnsupported:      always("Nothing is needed: /bin/sh is used. spec.client.shellMode None does without a shell."),
	spec.ReasonStateUnwritable:       always("Make room on the disk of the state directory, or make it writable; starts go on by themselves."),
	spec.ReasonRecordQuarantined:     withName("The session's record was damaged and put aside. Begin anew: muxlet resume %[1]s --fresh, or name its conversation in spec.conversation.id"),
	spec.ReasonRecordTooNew:          always("The session's record was written by a newer muxlet: run that one again."),

	spec.ReasonNotReady:           withName("Wait: the client has just started. What it shows: muxlet logs %[1]s"),
	spec.ReasonTrustRequired:      withName("The client asks whether the directory is to be trusted. Answer it: muxlet attach %[1]s. Nothing is typed meanwhile."),
	spec.ReasonLoginRequired:      withName("The client asks for a login or a key. Answer it: muxlet attach %[1]s. Nothing is typed meanwhile."),
	spec.ReasonPermissionRequired: withName("The client asks whether it may do something. Answer it: muxlet attach %[1]s. Nothing is typed meanwhile."),
	spec.ReasonHookTrustRequired:  withName("The client asks whether its hooks are to be trusted; the one that is listed reports to muxlet. Answer it once: muxlet attach %[1]s."),
	spec.ReasonUpdateOffered:      withName("The client offers a new version of itself. Answer it: muxlet attach %[1]s. Nothing is typed meanwhile."),
	spec.ReasonChoiceRequired:     withName("The client asks how to go on with a conversation. Answer it: muxlet attach %[1]s. Nothing is typed meanwhile."),
	spec.ReasonQuestion:           withName("The client shows something that its class does not know. See and answer it: muxlet attach %[1]s."),

	spec.ReasonClassNotFound:         always("Declare the ClientClass, or correct spec.clientClassName (muxlet get clientclasses lists what there is)."),
	spec.ReasonConversationMissing:   withName("Put the file back that the message names, or begin a new conversation: muxlet resume %[1]s --fresh"),
	spec.ReasonConversationElsewhere: withName("Give the client the config directory again that the message names, or begin a new conversation: muxlet resume %[1]s --fresh"),
	spec.ReasonConversationInUse:     always("End the session or the process that the message names, or give this session another spec.conversation.id; it is tried again by itself."),
	spec.ReasonConversationUnknown:   always("Wait: the client's files could not be read and are read again by themselves. Nothing is started meanwhile."),
	spec.ReasonAuthenticationFailed:  withName("Renew the credential (log in, or correct the key), then: muxlet resume %[1]s. The sessions that share it follow."),
	spec.ReasonUsageLimited:          withName("Wait: it goes on by itself at the time that is stated. muxlet resume %[1]s tries at once."),

	spec.ReasonSuspended:     withName("Run: muxlet resume %[1]s"),
	spec.ReasonTerminated:    withName("It stays down until it is asked for: muxlet resume %[1]s"),
	spec.ReasonNotRecovered:  withName("Its client was lost while nobody looked, and recoveryPolicy is Dormant. Bring it back: muxlet resume %[1]s"),
	spec.ReasonDormant:       withName("Nothing is wrong: its client comes when it is asked for, by a turn (muxlet send %[1]s TEXT), muxlet resume %[1]s or muxlet attach %[1]s"),
	spec.ReasonCompleted:     withName("Its client ended by itself and restartPolicy leaves it down. Run it again: muxlet resume %[1]s"),
	spec.ReasonUpdatePending: withName("An edit waits to be applied. Apply it now: muxlet restart %[1]s"),
}

func adviseInvalid(s *spec.Session) string {
	if s.Status.Source == nil || s.Status.Source.File == "" {
		return "Correct the document; it is read again by itself."
	}
	advice := fmt.Sprintf("Correct %s; it is read again by itself.", s.Status.Source.File)
	if s.Status.Client.Pid != 0 {
		advice += " The client goes on with the last good spec meanwhile."
	}
	return advice
}

func adviseNameConflict(s *spec.Session) string {
	if d := s.Status.Decision; d != nil && d.Rule == "Occupied" {
		return "See what runs in the pane that the message names; it may be a client of this session. End it when it is not wanted: the client is then started there."
	}
	return fmt.Sprintf("A tmux session called %[1]s that is not muxlet's is in the way and is left alone: "+
		"rename it (rename-session) or end it, or give this session another metadata.name.", s.Name)
}

func adviseDirectory(format string) hint {
	return func(s *spec.Session) string { return fmt.Sprintf(format, shellWord(directory(s))) }
}

func adviseCommand(s *spec.Session) string {
	if len(s.Spec.Client.Command) == 0 {
		return fmt.Sprintf("Install the program of class %s, or add its directory to PATH in the shell's profile or in spec.client.env; it is tried again by itself.", s.Spec.ClientClassName)
	}
	program := s.Spec.Client.Command[0]
	return fmt.Sprintf("Install %s, or correct spec.client.command (an absolute path needs no PATH; the message says where it was looked for); it is tried again by itself.", program)
}
