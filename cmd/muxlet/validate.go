// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// stdinName stands for standard input, as an argument and in positions.
const (
	stdinArgument = "-"
	stdinName     = "<stdin>"
)

func newValidateCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE|DIRECTORY|-]...",
		Short: "Check manifests; no daemon is needed",
		Long: "Checks files, directories and standard input (-), or the manifest directories of the settings.\n" +
			"Each problem is one line that starts with file:line:column. Exits 1 if there is any.",
		RunE: func(_ *cobra.Command, args []string) error {
			return g.validate(args)
		},
	}
}

func (g *globals) validate(args []string) error {
	check, err := g.readForCheck(args)
	if err != nil {
		return err
	}
	for _, warning := range check.warnings {
		g.complain("Warning: %s", warning)
	}
	for _, problem := range check.problems {
		g.complain("%s", problem)
	}
	if n := len(check.problems); n > 0 {
		return fmt.Errorf("%s in %s: correct what is named above", count(n, "problem"), strings.Join(check.where, ", "))
	}
	return g.say("%s valid", count(check.valid(), "session"))
}

// count is 1 session, 2 sessions.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// check is what validate found.
type check struct {
	where              []string
	warnings, problems []string
	// declared has the places of each name.
	declared map[string][]spec.Position
}

func (g *globals) readForCheck(args []string) (*check, error) {
	found := &check{declared: map[string][]spec.Position{}}
	roots, explicit := args, true
	if len(args) == 0 {
		settings, err := g.settings()
		if err != nil {
			return nil, err
		}
		roots, explicit = settings.Manifests, false
	}
	found.where = roots
	if slices.Contains(roots, stdinArgument) {
		data, err := io.ReadAll(io.LimitReader(g.in, spec.MaxFileBytes+1))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		found.documents(spec.DecodeFile(stdinName, data))
		roots = slices.DeleteFunc(slices.Clone(roots), func(root string) bool { return root == stdinArgument })
	}
	found.reading(manifest.Read(roots), explicit)
	found.duplicates()
	return found, nil
}

// reading takes what the roots hold. A directory that is missing may yet come;
// a file that was asked for by name should be there.
func (c *check) reading(r manifest.Reading, explicit bool) {
	for _, root := range r.Roots {
		switch root.Access {
		case manifest.Readable:
		case manifest.Missing:
			if explicit && filepath.Ext(root.Path) != "" {
				c.problems = append(c.problems, root.Path+": the file does not exist")
			} else {
				c.warnings = append(c.warnings, fmt.Sprintf("the directory %s does not exist.", root.Path))
			}
		case manifest.Unreadable, manifest.AccessUnknown:
			c.problems = append(c.problems, fmt.Sprintf("%s: cannot be read: %s", root.Path, root.Message))
		}
	}
	for _, unread := range slices.Concat(r.Unread, r.Special) {
		c.problems = append(c.problems, unread.Problem.Error())
	}
	for _, file := range r.Files {
		c.documents(file.Documents)
	}
}

func (c *check) documents(docs spec.Documents) {
	for _, problem := range docs.Problems {
		c.problems = append(c.problems, problem.Error())
	}
	for _, doc := range docs.Items {
		for _, problem := range doc.Problems {
			c.problems = append(c.problems, problem.Error())
		}
		if doc.Name != "" {
			c.declared[doc.Name] = append(c.declared[doc.Name], doc.Position)
		}
	}
}

// duplicates are problems of every place after the first.
func (c *check) duplicates() {
	for _, name := range c.names() {
		places := c.declared[name]
		for _, place := range places[1:] {
			c.problems = append(c.problems, fmt.Sprintf("%s: metadata.name: session %q is declared at %s already", place, name, places[0]))
		}
	}
}

func (c *check) names() []string {
	var names []string
	for name := range c.declared {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// valid counts the sessions, once there is no problem.
func (c *check) valid() int { return len(c.declared) }
