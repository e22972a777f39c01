// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec/manifest"
)

// applyOptions are the flags of apply.
type applyOptions struct {
	*globals
	files  []string
	dryRun string
	output string
}

func newApplyCommand(g *globals) *cobra.Command {
	o := &applyOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIRECTORY|-...",
		Short: "Make the manifest directory declare what files say",
		Long: "Edits the documents that declare the sessions and client classes so that they say what the files\n" +
			"say: as little of them as possible, with comments, order and everything around them kept. What a\n" +
			"file does not say is removed. What no document declares gets a file NAME.yaml in the first\n" +
			"manifest directory. No daemon is needed; one that runs notices by itself.",
		Example: "  muxlet apply -f shop.yaml\n  muxlet apply -f sessions/ --dry-run\n  generate | muxlet apply -f -",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file, directory or - for standard input; may be repeated")
	flags.StringVar(&o.dryRun, "dry-run", "none", "say what would be done and write nothing: none, client or server (the same here)")
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.StringVarP(&o.output, "output", "o", "", "format: json, yaml or name")
	return cmd
}

func (o *applyOptions) validate(args []string) error {
	switch {
	case len(args) > 0:
		return usagef("apply takes its files by -f: muxlet apply -f %s", shellWords(args))
	case len(o.files) == 0:
		return usagef("apply needs -f FILE, -f DIRECTORY or -f -")
	}
	switch o.output {
	case "", outputJSON, outputYAML, outputName:
	default:
		return usagef("unknown format %q for -o: it must be json, yaml or name", o.output)
	}
	switch o.dryRun {
	case "none", "client", "server", "true", "false":
		return nil
	}
	return usagef("unknown value %q for --dry-run: it must be none, client or server", o.dryRun)
}

func (o *applyOptions) dry() bool { return o.dryRun != "none" && o.dryRun != "false" }

// run applies every document that is valid, and ends in an error if one is not.
func (o *applyOptions) run(ctx context.Context, args []string) error {
	if err := o.validate(args); err != nil {
		return err
	}
	in, err := o.readInput(o.files)
	if err != nil {
		return err
	}
	for _, problem := range in.problems {
		o.complain("%s", problem)
	}
	var failed error
	if len(in.problems) > 0 {
		failed = &reportedError{exitError}
	} else if len(in.documents) == 0 {
		return fmt.Errorf("there is nothing to apply: no document in %s", shellWords(o.files))
	}
	if len(in.documents) == 0 {
		return failed
	}
	roots, err := o.manifestRoots(ctx)
	if err != nil {
		return err
	}
	return worse(failed, o.applyAll(manifest.NewEditor(roots), in.documents, o.effects(ctx, manifest.NewEditor(roots), in.documents)))
}

// effects are what a dry run says of each session. What cannot be worked out is told
// when it is applied.
func (o *applyOptions) effects(ctx context.Context, editor *manifest.Editor, documents []manifest.Declaration) foreseen {
	if !o.dry() || o.output != "" {
		return nil
	}
	for _, want := range documents {
		if change, err := editor.Apply(want); err == nil {
			editor.Pretend(change)
		}
	}
	return o.effectsOf(ctx, editor.Pretended())
}

func (o *applyOptions) applyAll(editor *manifest.Editor, documents []manifest.Declaration, effects foreseen) error {
	classes, err := o.classesIn(editor.Reading())
	if err != nil {
		return err
	}
	byName := map[string]manifest.Declaration{}
	var names []string
	for _, d := range documents {
		name := argumentOf(manifest.RefOf(&d.Document))
		byName[name] = d
		names = append(names, name)
		if d.Class != nil {
			classes.Declared[d.Name] = d.Class
		}
	}
	var done []runtime.Object
	created := false
	named, others := effects.split(names)
	failed := o.each(names, func(name string) error {
		want := byName[name]
		if problems := classes.Judge(&want.Document); len(problems) > 0 {
			return server.NewError(server.ReasonInvalid, want.Name, problems[0].Error())
		}
		change, err := o.applyOne(editor, want)
		if err != nil {
			return editError(want.Name, err)
		}
		o.warn(name, change, want, classes)
		created = created || change.Outcome == manifest.Created
		if o.output != "" {
			done = append(done, objectOf(want.Document))
			return nil
		}
		suffix := ""
		if o.dry() {
			words, warning := named.words(name)
			if suffix = " (dry run)" + words; warning != "" {
				o.complain("Warning: %s: %s.", name, warning)
			}
		}
		return o.say("%s %s%s", name, change.Outcome, suffix)
	})
	if failed == nil {
		failed = o.sayAll(others)
	}
	if created {
		o.warnOfUnread(editor.Reading())
	}
	if len(done) > 0 {
		if err := (&getOptions{globals: o.globals, output: o.output}).print(done, len(documents) > 1); err != nil {
			return err
		}
	}
	return failed
}

// applyOne works the edit out and makes it. Where somebody else wrote the file
// in the same moment it is worked out anew.
func (o *applyOptions) applyOne(editor *manifest.Editor, want manifest.Declaration) (*manifest.Change, error) {
	const tries = 5
	for n := 1; ; n++ {
		change, err := editor.Apply(want)
		switch {
		case err != nil:
		case o.dry():
			return change, change.Check()
		default:
			err = editor.Write(change)
		}
		if n == tries || !errors.Is(err, manifest.ErrChanged) {
			return change, err
		}
	}
}

// warn of what a person may not expect.
func (o *applyOptions) warn(name string, c *manifest.Change, want manifest.Declaration, classes *manifest.Classes) {
	if unknown := classes.Unknown(&want.Document); unknown != "" {
		o.complain("Warning: %s %s.", name, unknownClass(unknown, classes))
	}
	if c.Replaced != "" {
		o.complain("Warning: %s: in %s this was written anew, with the comments in it, and not only what differs: %s.", name, c.File, c.Replaced)
	}
	if c.Before != nil && c.Before.Spec.Suspend && !want.Session.Spec.Suspend {
		o.complain("Warning: %s was suspended and is no longer: what was applied does not say spec.suspend: true.", name)
	}
}

// warnOfUnread names what may hold documents that were not found.
func (o *applyOptions) warnOfUnread(r manifest.Reading) {
	const unknown = "Warning: %s; whether one of the new documents is declared there already is not known."
	for _, root := range r.Roots {
		if root.Access == manifest.Unreadable {
			o.complain(unknown, root.Path+": cannot be read: "+root.Message)
		}
	}
	for _, unread := range r.Unread {
		o.complain(unknown, unread.Problem)
	}
}

// manifestRoots are the roots of the daemon that runs, unless the command line
// names others; without a daemon those of the settings.
func (g *globals) manifestRoots(ctx context.Context) ([]string, error) {
	settings, err := g.settings()
	if err != nil {
		return nil, err
	}
	if g.given("manifests", "") != nil {
		return settings.Manifests, nil
	}
	client := server.NewClient(g.apiSocket(settings))
	defer client.Close()
	status, err := client.Status(ctx)
	switch {
	case err == nil && len(status.Manifests) > 0:
		return status.Manifests, nil
	case err != nil && !errors.Is(err, server.ErrNoDaemon):
		g.complain("Warning: %s The manifest directories of the settings are used.", sentence(err.Error()))
	}
	return settings.Manifests, nil
}

// editError gives an error of an edit its stable reason.
func editError(name string, err error) error {
	switch {
	case errors.Is(err, manifest.ErrReadOnly):
		return server.NewError(server.ReasonForbidden, name, err.Error())
	case errors.Is(err, manifest.ErrDeclaredTwice), errors.Is(err, manifest.ErrChanged):
		return server.NewError(server.ReasonConflict, name, err.Error())
	case errors.Is(err, manifest.ErrNotDeclared):
		return server.NewError(server.ReasonConflict, name, err.Error()+"; its document was moved in the same moment: try again")
	case errors.Is(err, manifest.ErrNotEditable):
		return server.NewError(server.ReasonInvalid, name, err.Error())
	}
	return err
}
