// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindTurn is the kind of a Turn.
const KindTurn = "Turn"

const (
	// DefaultTurnDeadline is how long after its creation the hand-over of a turn has to
	// begin.
	DefaultTurnDeadline = 2 * time.Minute
	// MaxTurnDeadline is the longest time that can be asked for.
	MaxTurnDeadline = 30 * 24 * time.Hour
	// MaxPromptBytes is the length of the longest prompt.
	MaxPromptBytes = 1 << 20
	// MaxArgumentBytes is the length of the longest prompt that a class takes as an
	// argument of its client; Linux has 128 KiB for one.
	MaxArgumentBytes = 100 << 10
)

// Turn is one prompt that a person or a program sends to a session. It is an object of
// the API and never a file of a person's.
//
// +kubebuilder:object:root=true
type Turn struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TurnSpec   `json:"spec"`
	Status TurnStatus `json:"status,omitempty"`
}

// TurnList is a list of Turns. Their prompts are left out: they come with one Turn
// alone.
//
// +kubebuilder:object:root=true
type TurnList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Turn `json:"items"`
}

// TurnRequestAnnotation makes a request known when it comes twice: a second Turn of
// one session with the same value is not made, and the first one is the answer.
const TurnRequestAnnotation = "muxlet.dev/request-id"

// TurnSpec is what is sent. Nothing of it can be changed.
type TurnSpec struct {
	// SessionName is the session's name.
	SessionName string `json:"sessionName"`
	// Prompt is the text, in UTF-8, at most 1 MiB (see CheckPrompt). Newlines at its end
	// are dropped. It is left out of lists, and once it was dropped by the retention.
	Prompt string `json:"prompt,omitempty"`
	// Deadline by which the hand-over has to begin: a turn that has not come to it then
	// fails, and is never handed over later. Default two minutes after the creation. An
	// initial turn has none: it ends with its client.
	Deadline *metav1.Time `json:"deadline,omitempty"`
}

// TurnStatus is what became of a turn. The word of the STATUS column is computed from
// it: see DisplayTurnStatus.
type TurnStatus struct {
	// Conditions are Delivered and Completed, always both. Delivered is False until the
	// client has the prompt, with the reason for which it has not; Unknown once it was
	// handed over and as long as nothing confirms that; True then. Completed is Unknown
	// until the client has ended the turn; False when it has failed or the client has
	// died, and when it never was delivered.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Initial is true for a spec.initialPrompt.
	Initial bool `json:"initial,omitempty"`
	// Incarnation that the turn was handed to; 0 before.
	Incarnation int64 `json:"incarnation,omitempty"`
	// ConversationID that the client had then, as far as it is known.
	ConversationID string `json:"conversationID,omitempty"`
	// Retryable says, of a turn that has failed, whether to send it again can help.
	Retryable bool `json:"retryable,omitempty"`
	// PromptBytes is the length of the prompt, in bytes.
	PromptBytes int64 `json:"promptBytes"`
	// PromptLines is the number of its lines.
	PromptLines int64 `json:"promptLines"`
	// HandedAt is when the hand-over began; nil before.
	HandedAt *metav1.Time `json:"handedAt,omitempty"`
	// DeliveredAt is when it was confirmed; nil before.
	DeliveredAt *metav1.Time `json:"deliveredAt,omitempty"`
	// FinishedAt is when nothing more was to come; nil before.
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// The conditions of a Turn.
const (
	ConditionDelivered = "Delivered"
	ConditionCompleted = "Completed"
)

// TurnConditionTypes lists them in the order in which they are shown.
var TurnConditionTypes = []string{ConditionDelivered, ConditionCompleted}

// TurnPhase is the computed word of the STATUS column of a turn.
type TurnPhase string

// The words of the STATUS column of a turn.
const (
	// TurnPending: it waits for its hand-over.
	TurnPending TurnPhase = "Pending"
	// TurnDelivering: it is being handed over.
	TurnDelivering TurnPhase = "Delivering"
	// TurnDelivered: the client has it.
	TurnDelivered TurnPhase = "Delivered"
	// TurnCompleted: the client has ended it, and it went well.
	TurnCompleted TurnPhase = "Completed"
	// TurnFailed: it was not delivered, or has failed after that.
	TurnFailed TurnPhase = "Failed"
	// TurnUncertain: it was handed over and nothing has confirmed that.
	TurnUncertain TurnPhase = "Uncertain"
	// TurnCancelled: a person took it back before its hand-over.
	TurnCancelled TurnPhase = "Cancelled"
)

// ProvisioningPolicy says when a session has a client.
type ProvisioningPolicy string

// The provisioning policies.
const (
	// ProvisioningEager: always.
	ProvisioningEager ProvisioningPolicy = "Eager"
	// ProvisioningOnDemand: from the next turn, resume or attach until the client ends,
	// whatever ended it.
	ProvisioningOnDemand ProvisioningPolicy = "OnDemand"
)

// ClassSubmit says how a client is given a turn.
type ClassSubmit struct {
	// Method by which the prompt is handed over. Default Paste.
	Method SubmitMethod `json:"method,omitempty"`
	// SettleMilliseconds between the paste and the submit key. Default 300, 0 to 10000.
	SettleMilliseconds *int32 `json:"settleMilliseconds,omitempty"`
	// Key that submits what was pasted, in tmux's notation, such as Enter or C-m. Default
	// Enter.
	Key string `json:"key,omitempty"`
	// Confirm says what proves that the client has the turn. Default Report for a class
	// with reports, else Screen; Report needs reports.
	Confirm SubmitConfirm `json:"confirm,omitempty"`
	// WhileWorking says what is done with a turn that comes while the client works on
	// another. Default Wait.
	WhileWorking SubmitWhileWorking `json:"whileWorking,omitempty"`
	// Composer is what the screen shows of the client's input line.
	Composer ClassComposer `json:"composer,omitempty"`
	// Command of method Queue puts the prompt, which it reads from its standard input or
	// finds for $(PROMPT) in its arguments, into the client's own queue. It is run in the
	// client's environment and directory. Required for method Queue, and for no other.
	// With $(PROMPT) every process of the host can read the prompt while the command
	// runs, and 100 KiB are the longest that is taken; standard input has neither fault.
	Command []string `json:"command,omitempty"`
	// Arguments of method Argument, with $(PROMPT) among them, are appended to the start
	// and resume command of a client that begins with a turn. Every process of the host
	// can read the prompt as long as the client runs, and 100 KiB are the longest that is
	// taken. Default [$(PROMPT)] for that method, and for no other.
	Arguments []string `json:"arguments,omitempty"`
}

// SubmitMethod is how a prompt is handed over.
type SubmitMethod string

// The methods.
const (
	// SubmitPaste pastes it into the client's pane and presses the submit key.
	SubmitPaste SubmitMethod = "Paste"
	// SubmitQueue gives it to the client's own queue by a command, where the client has a
	// conversation that has begun; else it is pasted.
	SubmitQueue SubmitMethod = "Queue"
	// SubmitArgument starts a client with it as an argument, where every process of the
	// host can read it.
	SubmitArgument SubmitMethod = "Argument"
)

// SubmitConfirm is what proves that the client has a turn.
type SubmitConfirm string

// The proofs.
const (
	// ConfirmReport: a hook of the client, or its files, tell.
	ConfirmReport SubmitConfirm = "Report"
	// ConfirmScreen: the client lives and its screen has changed after the submit key.
	ConfirmScreen SubmitConfirm = "Screen"
)

// SubmitWhileWorking says what is done with a turn while the client works.
type SubmitWhileWorking string

// The ways.
const (
	// WhileWorkingWait: it waits until the client does not.
	WhileWorkingWait SubmitWhileWorking = "Wait"
	// WhileWorkingQueue: it is handed over all the same, since the client queues it.
	WhileWorkingQueue SubmitWhileWorking = "Queue"
)

// ClassComposer is what the screen shows of the client's input line.
type ClassComposer struct {
	// Pattern is a regular expression (RE2, multi-line) whose group named text, (?P<text>…),
	// is what stands in the input line, faint text, such as a hint, left out. Without it
	// it is not known whether a pasted text was submitted.
	Pattern string `json:"pattern,omitempty"`
	// Pasted is a regular expression (RE2, multi-line) that what stands for a long paste in
	// the input line matches, such as \[Pasted text #\d+. What its groups (?P<newlines>…)
	// and (?P<characters>…) catch is how many of them the paste has, so that another one is
	// not taken for the prompt. It needs pattern.
	Pasted string `json:"pasted,omitempty"`
	// Continues is a regular expression (RE2, multi-line) that a prompt matches after whose
	// end the client takes the submit key for a new line, such as \\\z. A space is pasted
	// behind such a prompt.
	Continues string `json:"continues,omitempty"`
	// Commands is a regular expression (RE2, multi-line) that a prompt matches which the
	// client takes for a command of its own, such as \A/\w+\z, and of which no report
	// tells: it is delivered once it has left the input line. It needs pattern.
	Commands string `json:"commands,omitempty"`
}

// DisplayTurnStatus computes the word of the STATUS column of a turn.
func DisplayTurnStatus(t *Turn) TurnPhase {
	delivered := meta.FindStatusCondition(t.Status.Conditions, ConditionDelivered)
	completed := meta.FindStatusCondition(t.Status.Conditions, ConditionCompleted)
	over := t.Status.FinishedAt != nil
	switch {
	case delivered == nil || completed == nil:
		return TurnPending
	case delivered.Status == metav1.ConditionFalse && over && delivered.Reason == ReasonCancelled:
		return TurnCancelled
	case delivered.Status == metav1.ConditionFalse && over:
		return TurnFailed
	case delivered.Status == metav1.ConditionFalse:
		return TurnPending
	case delivered.Status == metav1.ConditionUnknown && over:
		return TurnUncertain
	case delivered.Status == metav1.ConditionUnknown:
		return TurnDelivering
	case completed.Status == metav1.ConditionTrue:
		return TurnCompleted
	case completed.Status == metav1.ConditionFalse && over:
		return TurnFailed
	}
	return TurnDelivered
}
