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
		Example: "  muxlet validate\n  muxlet validate shop.yaml sessions/\n  muxlet validate - <shop.yaml",
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
	return g.say("%s valid", check.valid())
}

// count is 1 session, 2 sessions.
func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// check is what validate found.
type check struct {
	where              []string
	warnings, problems []string
	// declared has the places of each kind and name.
	declared map[manifest.Ref][]spec.Position
	// sessions are to be judged by their classes, once all of those are known.
	sessions []spec.Document
	classes  manifest.Classes
}

func (g *globals) readForCheck(args []string) (*check, error) {
	found := &check{declared: map[manifest.Ref][]spec.Position{}}
	settings, err := g.settings()
	if err != nil && len(args) == 0 {
		return nil, err
	}
	roots, explicit := args, true
	if len(args) == 0 {
		roots, explicit = settings.Manifests, false
	}
	if settings != nil {
		found.classes.Default, found.classes.Defaults = settings.DefaultClientClassName, settings.Sessions
	}
	found.where = roots
	if slices.Contains(roots, stdinArgument) {
		data, err := io.ReadAll(io.LimitReader(g.in, spec.MaxFileBytes+1))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		found.documents(spec.DecodeFile(stdinName, data).Under(found.classes.Defaults))
		roots = slices.DeleteFunc(slices.Clone(roots), func(root string) bool { return root == stdinArgument })
	}
	reader := manifest.Reader{Defaults: found.classes.Defaults}
	found.reading(reader.Read(roots), explicit)
	found.duplicates()
	if explicit && settings != nil && found.unknown() {
		// A session alone may be checked before it joins those that have its class.
		found.classes.AddReading(manifest.Read(settings.Manifests))
	}
	found.judge()
	return found, nil
}

func (c *check) unknown() bool {
	return slices.ContainsFunc(c.sessions, func(d spec.Document) bool { return c.classes.Unknown(&d) != "" })
}

// judge checks each session by its class.
func (c *check) judge() {
	for _, doc := range c.sessions {
		for _, problem := range c.classes.Judge(&doc) {
			c.problems = append(c.problems, problem.Error())
		}
		if unknown := c.classes.Unknown(&doc); unknown != "" {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: session %q %s.", doc.ClassPlace(), doc.Name, unknownClass(unknown, &c.classes)))
		}
	}
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
			c.declared[manifest.RefOf(&doc)] = append(c.declared[manifest.RefOf(&doc)], doc.Position)
		}
		if doc.Session != nil {
			c.sessions = append(c.sessions, doc)
		}
	}
	c.classes.Add(docs.Items...)
}

// duplicates are problems of every place after the first.
func (c *check) duplicates() {
	for _, target := range sortedRefs(c.declared) {
		places := c.declared[target]
		for _, place := range places[1:] {
			c.problems = append(c.problems, fmt.Sprintf("%s: metadata.name: %s is declared at %s already", place, target, places[0]))
		}
	}
}

// valid counts what is declared, once there is no problem.
func (c *check) valid() string {
	classes := 0
	for target := range c.declared {
		if target.Kind == spec.KindClientClass {
			classes++
		}
	}
	sessions := len(c.declared) - classes
	switch {
	case classes == 0:
		return count(sessions, "session")
	case sessions == 0:
		return count(classes, "client class")
	}
	return count(sessions, "session") + " and " + count(classes, "client class")
}
