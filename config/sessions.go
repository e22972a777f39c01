// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"

	"github.com/muxlet/muxlet/spec"
)

// The settings that are a part of what each session is.
const (
	sessionDefaultsName = "sessionDefaults"
	defaultClassName    = "defaultClientClassName"
)

// OfSessions says whether a setting is a part of what each session is.
func OfSessions(name string) bool { return name == sessionDefaultsName || name == defaultClassName }

// NoFile says that there is no settings file, or one with nothing in it.
func (e *Effective) NoFile() bool { return e.File == "" || e.empty }

// SessionsFromFile says whether the settings file says something of all sessions.
func (e *Effective) SessionsFromFile() bool {
	return e.Sessions != nil || e.Origin[defaultClassName] == OriginFile
}

// WithSessions are the settings with what a file that is gone has given to sessions. They
// count as that file's, so that Reload says that it is gone.
func (e *Effective) WithSessions(file string, defaults spec.SessionSpec, class string) *Effective {
	out := *e
	out.Origin = maps.Clone(e.Origin)
	out.File, out.SessionDefaults, out.DefaultClientClassName = file, defaults, class
	out.Origin[sessionDefaultsName], out.Origin[defaultClassName] = OriginFile, OriginFile
	out.Sessions = spec.NewSessionDefaults(&out.SessionDefaults, out.DefaultClientClassName)
	return &out
}
