// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// LaunchDiff gives the paths of the fields in which two specs differ and which
// a running client was started from: its class, its argv, its environment and
// its directory. Policies, the terminal and the way in which a directory comes
// to exist are not among them: an edit of those restarts nothing. Defaults do
// not count, nor where command ends and args begin. Neither spec is changed.
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
		{"spec.workspace.directory", a.Workspace.Directory == b.Workspace.Directory},
	} {
		if !f.same {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// argv is what class exec runs.
func argv(c *ClientSpec) []string { return slices.Concat(c.Command, c.Args) }
