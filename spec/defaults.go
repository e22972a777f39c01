// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import "k8s.io/utils/ptr"

// The defaults of SessionSpec that are numbers.
const (
	DefaultStartupTimeoutSeconds         = 60
	DefaultTerminationGracePeriodSeconds = 10
	DefaultColumns                       = 200
	DefaultRows                          = 50
	DefaultHistoryLimit                  = 50_000
)

// DefaultReadyTimeoutSeconds is the default of a ClientClass's ready.timeoutSeconds.
const DefaultReadyTimeoutSeconds = 30

// DefaultStopSignal is the polite end of a client.
const DefaultStopSignal = "SIGTERM"

// The defaults of a ClientClass's submit.
const (
	DefaultSettleMilliseconds = 300
	DefaultSubmitKey          = "Enter"
)

// SetDefaults fills in what a person left out. Done again, it changes nothing.
func SetDefaults(s *SessionSpec) {
	if len(s.Client.Command) > 0 {
		setDefault(&s.ClientClassName, ClassExec)
	}
	setDefault(&s.Client.ShellMode, ShellInteractive)
	setDefault(&s.Workspace.Type, WorkspaceDirectory)
	setDefault(&s.ProvisioningPolicy, ProvisioningEager)
	setDefault(&s.RestartPolicy, RestartAlways)
	setDefault(&s.RecoveryPolicy, RecoveryResume)
	setDefault(&s.UpdateStrategy.Type, UpdateWhenIdle)
	setDefault(&s.DeletionPolicy, DeletionDelete)
	setDefault(&s.Conversation.MissingPolicy, MissingStartFresh)
	setDefault(&s.Resources.OnUnsupported, UnsupportedFail)
	setDefault(&s.Terminal.Columns, DefaultColumns)
	setDefault(&s.Terminal.Rows, DefaultRows)
	if s.Terminal.HistoryLimit == nil {
		s.Terminal.HistoryLimit = ptr.To[int32](DefaultHistoryLimit)
	}
	setProbeDefaults(s.LivenessProbe)
	if s.StartupTimeoutSeconds == nil {
		s.StartupTimeoutSeconds = ptr.To[int32](DefaultStartupTimeoutSeconds)
	}
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = ptr.To[int32](DefaultTerminationGracePeriodSeconds)
	}
}

// SetClassDefaults fills in what a person left out of a client class. Done again, it
// changes nothing.
func SetClassDefaults(c *ClientClassSpec) {
	setDefault(&c.Conversation.Identity, IdentityNone)
	setDefault(&c.Reports, ReportsNone)
	if c.Ready.TimeoutSeconds == nil {
		c.Ready.TimeoutSeconds = ptr.To[int32](DefaultReadyTimeoutSeconds)
	}
	if len(c.Stop.Keys) == 0 {
		setDefault(&c.Stop.Signal, DefaultStopSignal)
	}
	for i := range c.Failures {
		setDefault(&c.Failures[i].Retry, RetryAgain)
	}
	setSubmitDefaults(&c.Submit, c.Reports)
}

func setSubmitDefaults(s *ClassSubmit, reports ReportsType) {
	setDefault(&s.Method, SubmitPaste)
	if s.SettleMilliseconds == nil {
		s.SettleMilliseconds = ptr.To[int32](DefaultSettleMilliseconds)
	}
	setDefault(&s.Key, DefaultSubmitKey)
	if reports == ReportsNone {
		setDefault(&s.Confirm, ConfirmScreen)
	}
	setDefault(&s.Confirm, ConfirmReport)
	setDefault(&s.WhileWorking, WhileWorkingWait)
	if s.Method == SubmitArgument && len(s.Arguments) == 0 {
		s.Arguments = []string{"$(" + VarPrompt + ")"}
	}
}

// setDefault replaces a zero value.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
