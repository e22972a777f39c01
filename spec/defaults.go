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

// SetDefaults fills in what a person left out. Done again, it changes nothing.
func SetDefaults(s *SessionSpec) {
	if len(s.Client.Command) > 0 {
		setDefault(&s.ClientClassName, ClassExec)
	}
	setDefault(&s.Client.ShellMode, ShellInteractive)
	setDefault(&s.Workspace.Type, WorkspaceDirectory)
	setDefault(&s.RestartPolicy, RestartAlways)
	setDefault(&s.RecoveryPolicy, RecoveryResume)
	setDefault(&s.UpdateStrategy.Type, UpdateWhenIdle)
	setDefault(&s.DeletionPolicy, DeletionDelete)
	setDefault(&s.Terminal.Columns, DefaultColumns)
	setDefault(&s.Terminal.Rows, DefaultRows)
	if s.Terminal.HistoryLimit == nil {
		s.Terminal.HistoryLimit = ptr.To[int32](DefaultHistoryLimit)
	}
	if s.StartupTimeoutSeconds == nil {
		s.StartupTimeoutSeconds = ptr.To[int32](DefaultStartupTimeoutSeconds)
	}
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = ptr.To[int32](DefaultTerminationGracePeriodSeconds)
	}
}

// setDefault replaces a zero value.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
