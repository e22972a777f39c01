// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// LaunchDiff gives the paths of the fields in which two specs differ and which
// a running client was started from: its class, its argv, its environment, its
// directory, its limits and the conversation that it adopted. Policies, the liveness probe, the
// terminal, startArgs and initialPrompt (which are for fresh starts alone) and the way in
// which a directory comes to exist are not among them: an edit of those restarts nothing. Defaults do not count, nor
// where command ends and args begin, nor that a conversation.id is gone: it was taken
// up once. Neither spec is changed.
func LaunchDiff(launched, wanted *SessionSpec) []string {
	a, b := launched.DeepCopy(), wanted.DeepCopy()
	SetDefaults(a)
	SetDefaults(b)
	sameArgv := slices.Equal(argv(&a.Client), argv(&b.Client))
	var paths []string
	for _, f := range []struct {
		path string
		same bool
	}{
		{"spec.clientClassName", a.ClientClassName == b.ClientClassName},
		{"spec.client.command", sameArgv || slices.Equal(a.Client.Command, b.Client.Command)},
		{"spec.client.args", sameArgv || slices.Equal(a.Client.Args, b.Client.Args)},
		{"spec.client.env", equality.Semantic.DeepEqual(a.Client.Env, b.Client.Env)},
		{"spec.client.envFrom", equality.Semantic.DeepEqual(a.Client.EnvFrom, b.Client.EnvFrom)},
		{"spec.client.shellMode", a.Client.ShellMode == b.Client.ShellMode},
		{"spec.resources.limits", equality.Semantic.DeepEqual(a.Resources.Limits, b.Resources.Limits)},
		{"spec.workspace.directory", a.Workspace.Directory == b.Workspace.Directory},
		{"spec.conversation.id", b.Conversation.ID == "" || a.Conversation.ID == b.Conversation.ID},
	} {
		if !f.same {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// ClassDiff names the client class if the one that is wanted has another revision
// than the one from which a running client was started; see ClassRevision. It belongs
// to a LaunchDiff of two specs with the same clientClassName.
func ClassDiff(launched, wanted string) []string {
	if launched == wanted {
		return nil
	}
	return []string{"the client class"}
}

// argv is what class exec runs.
func argv(c *ClientSpec) []string { return slices.Concat(c.Command, c.Args) }

// LaunchedAs is wanted as a client has it that was started from launched: with the
// fields of that one that LaunchDiff compares. Neither is changed.
func LaunchedAs(launched, wanted *SessionSpec) *SessionSpec {
	was, is := launched.DeepCopy(), wanted.DeepCopy()
	SetDefaults(was)
	is.ClientClassName, is.Workspace.Directory, is.Conversation.ID = was.ClientClassName, was.Workspace.Directory, was.Conversation.ID
	startArgs := is.Client.StartArgs
	is.Client = was.Client
	is.Client.StartArgs = startArgs
	is.Resources.Limits = was.Resources.Limits
	return is
}
