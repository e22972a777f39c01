// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/lazyregexp"
	"github.com/muxlet/muxlet/spec/manifest"
)

// The exit codes of diff that are its own, as those of kubectl diff are.
const (
	exitDifferent = 1
	// exitDiffError is what has code 1 elsewhere.
	exitDiffError = 2
)

// diffOptions are the flags of diff.
type diffOptions struct {
	*globals
	files []string
}

func newDiffCommand(g *globals) *cobra.Command {
	o := &diffOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "diff [-f FILE|DIRECTORY|-]...",
		Short: "Tell what an edit would change, and what it means for each live conversation",
		Long: "With -f: compares what files say with what is in force, as if they were applied, and says what\n" +
			"would become of each session's client and conversation. Without -f: what the manifests say and\n" +
			"the clients that run do not have yet, removals that are held, and files that are not valid.\n" +
			"Nothing is changed. Without a daemon only what would change in the files is known.\n\n" +
			"Exits 0 without a difference, 1 with one, and with more after an error: 2 for what is 1 elsewhere.",
		Example:           "  muxlet diff\n  muxlet diff -f shop.yaml\n  muxlet diff -f sessions/ || muxlet apply -f sessions/",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.run(cmd.Context(), args)
			if err != nil && exitCode(err) == exitError && !errors.Is(err, errDifferent) {
				o.show(err)
				return &reportedError{exitDiffError}
			}
			if errors.Is(err, errDifferent) {
				return &reportedError{exitDifferent}
			}
			return err
		},
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file, directory or - for standard input; may be repeated")
	return cmd
}

// errDifferent says that there is a difference.
var errDifferent = errors.New("there is a difference")

func (o *diffOptions) run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		return usagef("diff takes its files by -f: muxlet diff -f %s", shellWords(args))
	}
	if len(o.files) == 0 {
		result, err := o.foresee(ctx, nil)
		if err != nil {
			return err
		}
		return o.print(result)
	}
	in, err := o.readInput(o.files)
	if err != nil {
		return err
	}
	var failed error
	for _, problem := range in.problems {
		o.complain("%s", problem)
		failed = &reportedError{exitDiffError}
	}
	if failed == nil && len(in.documents) == 0 {
		return fmt.Errorf("there is nothing to compare: no document in %s", shellWords(o.files))
	}
	changes, files, err := o.pretend(ctx, in.documents)
	failed = worse(failed, err)
	if len(changes) == 0 {
		return failed
	}
	result, err := o.foresee(ctx, files)
	if err != nil {
		if reason := server.ReasonOf(err); reason == server.ReasonInvalid || errors.Is(err, server.ErrNoDaemon) {
			o.complain("What it means for the clients is not known: %s", sentence(err.Error()))
			return worse(failed, o.printFiles(changes))
		}
		return err
	}
	return worse(failed, o.print(result))
}

// pretend works out what apply would write. It gives the changes, and the files as they
// would be.
func (g *globals) pretend(ctx context.Context, documents []manifest.Declaration) ([]*manifest.Change, map[string][]byte, error) {
	roots, err := g.manifestRoots(ctx)
	if err != nil {
		return nil, nil, err
	}
	editor := manifest.NewEditor(roots)
	classes, err := g.classesIn(editor.Reading())
	if err != nil {
		return nil, nil, err
	}
	byName := map[string]manifest.Declaration{}
	var names []string
	for _, d := range documents {
		name := argumentOf(manifest.RefOf(&d.Document))
		byName[name], names = d, append(names, name)
		if d.Class != nil {
			classes.Declared[d.Name] = d.Class
		}
	}
	var changes []*manifest.Change
	failed := g.each(names, func(name string) error {
		want := byName[name]
		if problems := classes.Judge(&want.Document); len(problems) > 0 {
			return server.NewError(server.ReasonInvalid, want.Name, problems[0].Error())
		}
		change, err := editor.Apply(want)
		if err != nil {
			return editError(want.Name, err)
		}
		if change.Outcome != manifest.Unchanged {
			editor.Pretend(change)
			changes = append(changes, change)
		}
		return nil
	})
	return changes, editor.Pretended(), failed
}

// print shows every difference, and ends in errDifferent if there is one.
func (o *diffOptions) print(result server.DiffResult) error {
	for _, d := range result.Classes {
		if err := o.printOne("clientclass/"+d.Name, "", textOf(d.InForce), textOf(d.Wanted), plain); err != nil {
			return err
		}
	}
	for _, d := range result.Sessions {
		if err := o.printOne(argumentOf(manifest.SessionRef(d.Name)), d.Effect.String(), textOf(d.InForce), textOf(d.Wanted), effectColours[d.Effect.Kind]); err != nil {
			return err
		}
		if d.Effect.Warning != "" {
			o.complain("Warning: session/%s: %s.", d.Name, d.Effect.Warning)
		}
	}
	if len(result.Classes)+len(result.Sessions) == 0 {
		return nil
	}
	return errDifferent
}

// effectColours: red is what a person has to look at, yellow what replaces a client.
var effectColours = map[spec.EffectKind]colour{
	spec.EffectUnknown:          moving,
	spec.EffectUntouched:        good,
	spec.EffectRestartsWhenIdle: moving,
	spec.EffectRestartsNow:      moving,
	spec.EffectAtNextRestart:    good,
	spec.EffectStarted:          good,
	spec.EffectStopped:          bad,
	spec.EffectBlocked:          bad,
	spec.EffectRemoved:          bad,
	spec.EffectHeld:             bad,
}

// printFiles shows what would change in the files.
func (o *diffOptions) printFiles(changes []*manifest.Change) error {
	for _, c := range changes {
		before, after := c.Texts()
		if err := o.printOne("", "", string(before), string(after), plain, c.File); err != nil {
			return err
		}
	}
	return errDifferent
}

// printOne shows a heading, what becomes of it, and a unified diff.
func (o *diffOptions) printOne(name, effect, before, after string, as colour, file ...string) error {
	coloured := o.colour != nil && o.colour()
	from, to := name+" (in force)", name+" (wanted)"
	if len(file) > 0 {
		from, to = file[0], file[0]+" (as it would be)"
	}
	var lines []string
	if effect != "" {
		if coloured {
			lines = append(lines, name+": "+as.paint(visibleLines(effect)))
		} else {
			lines = append(lines, name+": "+visibleLines(effect))
		}
	}
	for line := range strings.Lines(numbered(udiff.Unified(from, to, before, after))) {
		line = visibleLines(strings.TrimSuffix(line, "\n"))
		if coloured {
			line = lineColour(line).paint(line)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil
	}
	o.writing.Lock()
	defer o.writing.Unlock()
	if _, err := fmt.Fprintln(o.out, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// hunkHead begins a hunk: where it is in both texts, and how many lines it has of each.
var hunkHead = lazyregexp.New(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(,(\d+))? @@`)

// numbered says where the hunks of a unified diff are in the second text. udiff counts
// wrong after a hunk in which a line stands between two changes.
func numbered(diff string) string {
	var out strings.Builder
	shift := 0
	for line := range strings.Lines(diff) {
		if m := hunkHead.FindStringSubmatch(line); m != nil {
			from, had, has := digits(m[1]), lineCount(m[2]), lineCount(m[5])
			to := digits(m[3])
			if had > 0 && has > 0 {
				to = from + shift
			}
			line = fmt.Sprintf("%s+%d%s @@\n", line[:strings.Index(line, "+")], to, m[4])
			shift += has - had
		}
		out.WriteString(line)
	}
	return out.String()
}

func digits(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// lineCount is one where none is given.
func lineCount(text string) int {
	if text == "" {
		return 1
	}
	return digits(text)
}

func lineColour(line string) colour {
	switch {
	case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
		return quiet
	case strings.HasPrefix(line, "-"):
		return bad
	case strings.HasPrefix(line, "+"):
		return good
	case strings.HasPrefix(line, "@@"):
		return moving
	}
	return plain
}

// textOf is a document as get -o yaml prints it, without what no document declares;
// empty for none.
func textOf[T spec.Session | spec.ClientClass](document *T) string {
	if document == nil {
		return ""
	}
	data, err := yaml.Marshal(document)
	if err != nil {
		return ""
	}
	var fields map[string]any
	if err := yaml.Unmarshal(data, &fields); err != nil {
		return string(data)
	}
	delete(fields, "status")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		for _, served := range []string{"creationTimestamp", "uid", "generation", "resourceVersion", "namespace"} {
			delete(metadata, served)
		}
	}
	if data, err = yaml.Marshal(fields); err != nil {
		return ""
	}
	return string(data)
}
