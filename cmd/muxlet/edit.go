// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

func newEditCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "edit (NAME | clientclass NAME)",
		Short: "Edit the document that declares a session or a client class in your editor",
		Long: "Opens $MUXLET_EDITOR, $VISUAL, $EDITOR or vi on a copy of the document and puts what you save in\n" +
			"its place, once it is valid. Nothing else in the file changes. What you wrote is never lost: when it cannot be\n" +
			"used, its copy is kept and named. No daemon is needed.",
		Example: "  muxlet edit checkout-bug\n  muxlet edit clientclass gemini\n  muxlet edit cc/gemini",
		RunE: func(cmd *cobra.Command, args []string) error {
			refs, err := documentRefs(args)
			if err != nil {
				return err
			}
			if len(refs) != 1 {
				return usagef("edit needs the name of one session or client class")
			}
			return g.edit(cmd.Context(), refs[0])
		},
	}
}

func (g *globals) edit(ctx context.Context, target manifest.Ref) error {
	roots, err := g.manifestRoots(ctx)
	if err != nil {
		return err
	}
	editor := manifest.NewEditor(roots)
	original, err := editor.Copy(target)
	if errors.Is(err, manifest.ErrNotDeclared) {
		return notDeclared(target, roots)
	}
	if err == nil {
		err = original.Check()
	}
	if err != nil {
		return editError(target.Name, err)
	}
	classes, err := g.classesIn(editor.Reading())
	if err != nil {
		return err
	}
	original.Judge = classes.Judge
	path, err := temporaryCopy(original)
	if err != nil {
		return err
	}
	e := &editing{globals: g, original: original, path: path, last: original.Text}
	return e.run(ctx)
}

// notDeclared is the error about what no file declares. A built-in class has no
// document, and how it gets one is not to be guessed.
func notDeclared(target manifest.Ref, roots []string) error {
	message := fmt.Sprintf("%s not found: no file in %s declares it", target, strings.Join(roots, ", "))
	if target.Kind == spec.KindClientClass && spec.IsBuiltInClass(target.Name) {
		message = fmt.Sprintf("client class %q is built in: to override it, put the output of \"muxlet get clientclass %[1]s -o yaml\" into a file, change that and apply it", target.Name)
	}
	return server.NewError(server.ReasonNotFound, target.Name, message)
}

// temporaryCopy makes a private file for the editor.
func temporaryCopy(original manifest.Copy) (string, error) {
	kind := filepath.Ext(original.File)
	if kind != ".json" {
		kind = ".yaml"
	}
	f, err := os.CreateTemp("", "muxlet-edit-"+original.Name+"-*"+kind)
	if err != nil {
		return "", fmt.Errorf("make a copy to edit: %w", err)
	}
	return f.Name(), f.Close()
}

// editing is one run of edit, from the first look at the text to the end.
type editing struct {
	*globals
	original manifest.Copy
	// path of the copy, and what the editor was given in it last.
	path string
	last []byte
	// above is the number of lines above the text in what was saved last.
	above int
}

// run opens the editor until what it saves is valid or a person gives up.
func (e *editing) run(ctx context.Context) error {
	head := e.head(nil)
	for {
		text, err := e.open(head)
		if err != nil {
			return err
		}
		switch {
		case sameText(text, e.original.Text):
			return e.cancelled("no changes made.")
		case len(bytes.TrimSpace(text)) == 0:
			return e.cancelled("saved file was empty.")
		}
		change, err := e.original.Replace(text)
		invalid, isInvalid := errors.AsType[*manifest.InvalidError](err)
		switch {
		case !isInvalid:
			return e.finish(ctx, change, err)
		case sameText(text, e.last):
			return e.kept(fmt.Errorf("edit cancelled, no valid changes were saved: %w", e.inCopy(e.placed(invalid, text, e.above))))
		}
		e.last = text
		head = e.head(e.placed(invalid, text, len(e.head(invalid))))
	}
}

// sameText passes over the line end that editors put at the end of a file.
func sameText(a, b []byte) bool {
	return bytes.Equal(bytes.TrimRight(a, "\r\n"), bytes.TrimRight(b, "\r\n"))
}

// headMark begins the lines that are for the person alone.
const headMark = "#muxlet: "

// head is what stands above the text.
func (e *editing) head(invalid *manifest.InvalidError) []string {
	lines := []string{
		"Edit the document of " + e.original.What() + " " + e.original.Name + " below and save it. Leave it as it is to cancel.",
		"Lines that begin like this one are removed; all other comments are kept.",
		"It is put into " + e.original.File,
	}
	if invalid == nil {
		return lines
	}
	lines = append(lines, "", "What was saved is not valid yet. Save it again without a change to give up.")
	for _, problem := range invalid.Problems {
		line := problem.Line
		problem.Line, problem.File = 0, ""
		lines = append(lines, fmt.Sprintf("line %d%s", line, strings.ReplaceAll(problem.Error(), "\n", " ")))
	}
	return lines
}

// placed gives problems the lines that they have in the copy, below a head of so
// many lines.
func (e *editing) placed(invalid *manifest.InvalidError, text []byte, head int) *manifest.InvalidError {
	_, err := e.original.Replace(append(bytes.Repeat([]byte("\n"), head), text...))
	if moved, ok := errors.AsType[*manifest.InvalidError](err); ok && len(moved.Problems) == len(invalid.Problems) {
		return moved
	}
	return invalid
}

// inCopy has the copy that is kept as the file of the problems.
func (e *editing) inCopy(invalid *manifest.InvalidError) *manifest.InvalidError {
	problems := slices.Clone(invalid.Problems)
	for i := range problems {
		problems[i].File = e.path
	}
	return &manifest.InvalidError{Problems: problems}
}

// open writes the text, runs the editor and reads what was saved.
func (e *editing) open(head []string) ([]byte, error) {
	var copied bytes.Buffer
	for _, line := range head {
		copied.WriteString(strings.TrimSpace(headMark+line) + "\n")
	}
	copied.Write(e.last)
	if err := os.WriteFile(e.path, copied.Bytes(), 0o600); err != nil {
		return nil, e.kept(fmt.Errorf("write the copy: %w", err))
	}
	if err := e.runEditor(); err != nil {
		return nil, err
	}
	saved, err := os.ReadFile(e.path)
	if err != nil {
		return nil, fmt.Errorf("read what was saved: %w", err)
	}
	text := withoutHead(saved)
	e.above = bytes.Count(saved[:len(saved)-len(text)], []byte("\n"))
	return text, nil
}

// withoutHead drops the lines at the top that are for the person alone.
func withoutHead(text []byte) []byte {
	mark := []byte(strings.TrimSpace(headMark))
	for bytes.HasPrefix(text, mark) {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}

// runEditor waits for the editor. It has the terminal, and signals that are
// meant for it do not end this process.
func (e *editing) runEditor() error {
	argv := e.editor()
	cmd := exec.Command(argv[0], append(argv[1:], e.path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = e.in, e.out, e.errOut, e.environ()
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if cmd.Process == nil && bytes.Equal(e.last, e.original.Text) {
		return errors.Join(fmt.Errorf("start the editor %s: %w; name another one in $EDITOR", shellWords(argv), err), e.discard())
	}
	return e.kept(fmt.Errorf("the editor %s did not end well (%w), so nothing was changed", shellWords(argv), err))
}

// editor is the command line of the person's editor.
func (e *editing) editor() []string {
	for _, name := range []string{"MUXLET_EDITOR", "VISUAL", "EDITOR"} {
		value, _ := e.lookupEnv(name)
		argv := strings.Fields(value)
		switch {
		case len(argv) == 0:
		case strings.ContainsAny(value, "\"'\\"):
			// Only a shell can tell its words: vim -c 'set ft=yaml'. As kubectl and git do.
			return []string{"/bin/sh", "-c", value + ` "$@"`, argv[0]}
		default:
			return argv
		}
	}
	return []string{"vi"}
}

// finish puts the text in its place, and says what comes of it. That is asked before:
// afterwards the daemon is at it.
func (e *editing) finish(ctx context.Context, change *manifest.Change, err error) error {
	var effects foreseen
	if err == nil {
		if _, after := change.Texts(); change.Outcome != manifest.Unchanged {
			effects = e.effectsOf(ctx, map[string][]byte{change.File: after})
		}
		err = change.Write()
	}
	if err != nil {
		return e.kept(err)
	}
	if err := e.discard(); err != nil {
		return err
	}
	if change.Outcome == manifest.Unchanged {
		e.complain("Edit cancelled, no changes made.")
		return nil
	}
	name := argumentOf(e.original.Ref)
	named, others := effects.split([]string{name})
	words, warning := named.words(name)
	if warning != "" {
		e.complain("Warning: %s: %s.", name, warning)
	}
	return errors.Join(e.say("%s edited%s", name, words), e.sayAll(others))
}

func (e *editing) cancelled(why string) error {
	e.complain("Edit cancelled, %s", why)
	return e.discard()
}

func (e *editing) discard() error {
	if err := os.Remove(e.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the copy: %w", err)
	}
	return nil
}

// kept is an error after which the text is still there.
func (e *editing) kept(err error) error {
	if denied := os.Chmod(e.path, 0o600); denied != nil { // an editor may have made it anew
		err = fmt.Errorf("%w (%w)", err, denied)
	}
	return editError(e.original.Name, fmt.Errorf("%w; your text is kept in %s", err, e.path))
}
