// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import "time"

// MaxNotificationTimeout is the longest that a command may ever run which notifies a
// person.
const MaxNotificationTimeout = 10 * time.Minute

// NotificationEvent is what a person is notified of.
// +kubebuilder:validation:Enum=InputRequired;Stalled;TurnCompleted
type NotificationEvent string

// The notification events, the most urgent first.
const (
	// NotifyInputRequired: a client asks a person something (condition InputRequired).
	NotifyInputRequired NotificationEvent = "InputRequired"
	// NotifyStalled: nothing will change until a person or the world acts (condition
	// Stalled, or a credential that was refused).
	NotifyStalled NotificationEvent = "Stalled"
	// NotifyTurnCompleted: a client has ended its work, well or not, and waits for more.
	NotifyTurnCompleted NotificationEvent = "TurnCompleted"
)

// NotificationEvents are all of them, the most urgent first.
var NotificationEvents = []NotificationEvent{NotifyInputRequired, NotifyStalled, NotifyTurnCompleted}

// TerminalNotification is a way in which a terminal tells its person something.
// +kubebuilder:validation:Enum=Bell;OSC9;OSC777
type TerminalNotification string

// The ways of terminals.
const (
	// TerminalBell rings the bell.
	TerminalBell TerminalNotification = "Bell"
	// TerminalOSC9 is a notification of iTerm2, which WezTerm, kitty, Ghostty, foot and
	// Windows Terminal know too.
	TerminalOSC9 TerminalNotification = "OSC9"
	// TerminalOSC777 is one of rxvt-unicode, with a title, which VTE of some
	// distributions, WezTerm, Ghostty and foot know too.
	TerminalOSC777 TerminalNotification = "OSC777"
)

// TerminalNotifications are all of them.
var TerminalNotifications = []TerminalNotification{TerminalBell, TerminalOSC9, TerminalOSC777}
