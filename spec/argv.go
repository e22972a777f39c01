// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import "slices"

// Argv composes what one attempt runs: command, in whose words $(NAME) is still to be
// expanded, and behind it args, which are a person's and stand as they are. A class
// without a start command runs the session's own, which is then in args: nothing in it
// is expanded. A nil class is such a one. Nothing of an earlier attempt is in it; what
// is for a fresh start alone, startArgs among it, is never in a resume.
func Argv(class *ClientClassSpec, session *SessionSpec, resume bool) (command, args []string) {
	c := &session.Client
	switch {
	case class != nil && resume && len(class.Resume.Command) > 0:
		return slices.Clone(class.Resume.Command), slices.Clone(c.Args)
	case class != nil && !resume && len(class.Start.Command) > 0:
		return slices.Clone(class.Start.Command), slices.Concat(c.StartArgs, c.Args)
	case resume:
		return nil, slices.Concat(c.Command, c.Args)
	}
	return nil, slices.Concat(c.Command, c.StartArgs, c.Args)
}
