// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// newOptions are the flags of new, and what its command line says beside them.
type newOptions struct {
	*globals
	directory, class, promptFile string
	onDemand, attachNow          bool
	labels                       map[string]string
	dryRun, output               string

	// name is empty until it is made from the directory; argv is what follows --.
	name string
	argv []string
}

func newNewCommand(g *globals) *cobra.Command {
	o := &newOptions{globals: g}
	cmd := &cobra.Command{
		Use:   "new [NAME] [-- ARGV...]",
		Short: "Write the manifest of a new session, in the current directory by default",
		Long: "Writes NAME.yaml into the first manifest directory, with what differs from the defaults and the\n" +
			"settings' sessionDefaults alone. A daemon that runs notices by itself and brings the session up.\n" +
			"Without a NAME it is made from the directory's, with a number when that is taken. Nothing is ever\n" +
			"overwritten.\n\n" +
			"What follows -- is the program to run; with a --class that has a program of its own, arguments of it.",
		Example: "  muxlet new\n  muxlet new checkout-bug --attach\n  muxlet new review -C ~/src/shop --class codex --on-demand -l repo=shop\n" +
			"  muxlet new dev -- npm run dev\n  muxlet new triage --prompt-file triage.md --dry-run -o yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.take(args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.directory, "directory", "C", "", "directory that the client runs in (default the current one)")
	flags.StringVar(&o.class, "class", "", "client class (default: as the settings say; exec when a program is given)")
	flags.StringVar(&o.promptFile, "prompt-file", "", "file with the first prompt of each conversation; - for standard input")
	flags.BoolVar(&o.onDemand, "on-demand", false, "have a client only once somebody asks for it (provisioningPolicy: OnDemand)")
	flags.StringToStringVarP(&o.labels, "labels", "l", nil, "labels, such as repo=shop,team=web; may be repeated")
	flags.BoolVarP(&o.attachNow, "attach", "a", false, "attach this terminal at once")
	flags.StringVar(&o.dryRun, "dry-run", "none", "write nothing: none, client or server (the same here)")
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.StringVarP(&o.output, "output", "o", "", "print the document: yaml, json or name")
	g.completeNew(cmd)
	return cmd
}

// completeNew completes what new takes; a new name is the person's to make.
func (g *globals) completeNew(cmd *cobra.Command) {
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	// An error says that somebody else completes the flag.
	_ = cmd.MarkFlagDirname("directory")
	_ = cmd.MarkFlagFilename("prompt-file")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{outputYAML, outputJSON, outputName}, noFiles))
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, noFiles))
	_ = cmd.RegisterFlagCompletionFunc("class", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if names := g.known(cmd, nil, classesWithStatus); len(names) > 0 {
			return names, noFiles
		}
		return spec.ClassNames(nil), noFiles
	})
}

// take reads the arguments: at most a name, and what follows the dash.
func (o *newOptions) take(args []string, dash int) error {
	if dash >= 0 {
		args, o.argv = args[:dash], args[dash:]
		if len(o.argv) == 0 {
			return usagef("what is to be run? A program follows --, as in \"muxlet new dev -- npm run dev\"")
		}
	}
	if len(args) > 1 {
		return usagef("new takes one name; a program to run follows --: muxlet new %s -- %s", shellWord(args[0]), shellWords(args[1:]))
	}
	if len(args) == 1 {
		o.name = strings.TrimPrefix(args[0], "session/")
	}
	switch o.output {
	case "", outputJSON, outputYAML, outputName:
	default:
		return usagef("unknown format %q for -o: it must be yaml, json or name", o.output)
	}
	switch o.dryRun {
	case "none", "client", "server", "true", "false":
	default:
		return usagef("unknown value %q for --dry-run: it must be none, client or server", o.dryRun)
	}
	if o.attachNow && o.dry() {
		return usagef("--attach and --dry-run exclude each other: there is nothing to attach to")
	}
	return nil
}

func (o *newOptions) dry() bool { return o.dryRun != "none" && o.dryRun != "false" }

func (o *newOptions) run(ctx context.Context) error {
	if o.attachNow && !o.interactive() {
		return errors.New("standard input is not a terminal, so nothing was made: leave --attach out")
	}
	settings, err := o.settings()
	if err != nil {
		return err
	}
	roots, err := o.manifestRoots(ctx)
	if err != nil {
		return err
	}
	editor := manifest.NewEditor(roots)
	change, text, err := o.work(editor, settings)
	if err != nil {
		return err
	}
	if o.dry() {
		err = change.Check()
	} else {
		err = editor.Write(change)
	}
	if err != nil {
		return editError(o.name, err)
	}
	if err := o.tell(change, text); err != nil || o.dry() {
		return err
	}
	return o.goOn(ctx, settings)
}

// work makes the document and works out where it goes.
func (o *newOptions) work(editor *manifest.Editor, settings *config.Effective) (*manifest.Change, []byte, error) {
	directory, err := o.workspace()
	if err != nil {
		return nil, nil, err
	}
	if o.name == "" {
		if err := o.nameAfter(directory, editor, settings); err != nil {
			return nil, nil, err
		}
	}
	classes, err := o.classesIn(editor.Reading())
	if err != nil {
		return nil, nil, err
	}
	text, err := o.document(directory, settings, classes)
	if err != nil {
		return nil, nil, err
	}
	want, err := o.judged(text, classes)
	if err != nil {
		return nil, nil, err
	}
	if err := o.free(editor); err != nil {
		return nil, nil, err
	}
	change, err := editor.Apply(want)
	if err != nil {
		return nil, nil, editError(o.name, err)
	}
	if name := filepath.Base(change.File); name != o.name+".yaml" {
		taken := filepath.Join(filepath.Dir(change.File), o.name+".yaml")
		return nil, nil, server.NewError(server.ReasonConflict, o.name, fmt.Sprintf(
			"%s exists already and declares no session %q; nothing was written: give another name, or move that file away", taken, o.name))
	}
	return change, text, nil
}

// judged is the document as it will be read, or what is wrong with it.
func (o *newOptions) judged(text []byte, classes *manifest.Classes) (manifest.Declaration, error) {
	declarations, problems := manifest.Declarations("", text)
	if len(problems) == 0 && len(declarations) == 1 {
		problems = classes.Judge(&declarations[0].Document)
	}
	if len(problems) > 0 {
		p := problems[0]
		message := fmt.Sprintf("cannot be made: %s: %s", p.Path, p.Message)
		if p.Suggestion != "" {
			message += fmt.Sprintf(" (did you mean %q?)", p.Suggestion)
		}
		return manifest.Declaration{}, server.NewError(server.ReasonInvalid, o.name, fmt.Sprintf("session %q %s", o.name, message))
	}
	if len(declarations) != 1 {
		return manifest.Declaration{}, fmt.Errorf("session %q cannot be made: its document would be %d documents", o.name, len(declarations))
	}
	if unknown := classes.Unknown(&declarations[0].Document); unknown != "" {
		message := fmt.Sprintf("session %q %s", o.name, unknownClass(unknown, classes))
		if near := spec.Nearest(unknown, spec.ClassNames(classes.Declared)); near != "" {
			message += fmt.Sprintf("; did you mean %q?", near)
		}
		return manifest.Declaration{}, server.NewError(server.ReasonInvalid, o.name, message)
	}
	return declarations[0], nil
}

// free says that no document declares the name, nor one that cannot be understood.
func (o *newOptions) free(editor *manifest.Editor) error {
	file, err := editor.Locate(manifest.SessionRef(o.name))
	switch {
	case errors.Is(err, manifest.ErrNotDeclared):
		return nil
	case err != nil:
		return editError(o.name, err)
	}
	return server.NewError(server.ReasonConflict, o.name, fmt.Sprintf(
		"session %q is declared in %s already; nothing was written: give another name, or change that one with \"muxlet edit %[1]s\"", o.name, file))
}

// tell says what was made and where, or prints the document.
func (o *newOptions) tell(change *manifest.Change, text []byte) error {
	switch o.output {
	case outputYAML:
	case outputJSON:
		data, err := yaml.YAMLToJSON(text)
		if err != nil {
			return fmt.Errorf("print as JSON: %w", err)
		}
		text = append(data, '\n')
	case outputName:
		return o.say("session/%s", o.name)
	default:
		end := ""
		if o.dry() {
			end = " (dry run)"
		}
		return o.say("session/%s created (%s)%s", o.name, change.File, end)
	}
	if _, err := o.out.Write(text); err != nil {
		return fmt.Errorf("print the document: %w", err)
	}
	return nil
}

// goOn attaches, or says what is missing for the session to come up.
func (o *newOptions) goOn(ctx context.Context, settings *config.Effective) error {
	client := server.NewClient(settings.Paths.APISocket())
	defer client.Close()
	_, err := client.Status(ctx)
	if errors.Is(err, server.ErrNoDaemon) {
		if o.attachNow {
			return fmt.Errorf("session %q is written, and comes up once a daemon runs: %w", o.name, err)
		}
		o.complain("No muxlet daemon runs: start one with \"%s\", and the session comes up.", o.serviceOf(settings).starter())
		return nil
	}
	if !o.attachNow {
		return o.known(ctx, client)
	}
	if err := o.noticed(ctx, client); err != nil {
		return err
	}
	return o.attach(ctx, o.name)
}

// knownLimit is how long new waits for the daemon to know of the session, so that the next
// verb finds it.
const knownLimit = 2 * time.Second

// known waits until the daemon has the session. One that takes longer is no failure: the
// document is written.
func (o *newOptions) known(ctx context.Context, client *server.Client) error {
	ctx, cancel := context.WithTimeout(ctx, knownLimit)
	defer cancel()
	for {
		if _, err := client.Session(ctx, o.name); server.ReasonOf(err) != server.ReasonNotFound || !pause(ctx, o.pollPeriod) {
			return nil
		}
	}
}

// noticeLimit is how long the daemon may take to read a file that was just written.
const noticeLimit = 10 * time.Second

// noticed waits until the daemon knows of the session and has looked for its client.
func (o *newOptions) noticed(ctx context.Context, client *server.Client) error {
	ctx, cancel := context.WithTimeout(ctx, noticeLimit)
	defer cancel()
	for {
		s, err := client.Session(ctx, o.name)
		unseen := err == nil && meta.IsStatusConditionPresentAndEqual(s.Status.Conditions, spec.ConditionClientAlive, metav1.ConditionUnknown)
		switch {
		case !unseen && server.ReasonOf(err) != server.ReasonNotFound:
			return err
		case pause(ctx, o.pollPeriod):
		case unseen:
			return nil // attach says what tmux does not answer
		default:
			return server.NewError(server.ReasonDeadlineExceeded, o.name, fmt.Sprintf(
				"session %q is written, and the daemon has not taken it up within %s: see \"muxlet get\", then \"muxlet attach %[1]s\"", o.name, noticeLimit))
		}
	}
}

// workspace is the directory, which must be there.
func (o *newOptions) workspace() (string, error) {
	directory := o.directory
	if directory == "" {
		directory = "."
	}
	if directory == "~" || strings.HasPrefix(directory, "~/") { // -C=~/x, which no shell expands
		directory = o.home + directory[1:]
	}
	absolute, err := filepath.Abs(directory)
	if err != nil {
		return "", fmt.Errorf("find the current directory: %w; name one with -C", err)
	}
	info, err := os.Stat(absolute)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", server.NewError(server.ReasonWorkspaceMissing, o.name, fmt.Sprintf("the directory %s does not exist: make it (mkdir -p), or name another one with -C", absolute))
	case err != nil:
		return "", fmt.Errorf("look at the directory %s: %w", absolute, errors.Unwrap(err))
	case !info.IsDir():
		return "", server.NewError(server.ReasonWorkspaceMissing, o.name, fmt.Sprintf("%s is not a directory: name one with -C", absolute))
	}
	return absolute, nil
}

// mostNumbers is how often a name that is made from a directory's is tried.
const mostNumbers = 1000

// nameAfter makes a name from the directory's, with a number when it is taken.
func (o *newOptions) nameAfter(directory string, editor *manifest.Editor, settings *config.Effective) error {
	base := spec.NameFrom(filepath.Base(directory))
	if base == "" {
		return usagef("no name can be made from the directory %s: give one, as in \"muxlet new checkout-bug\"", directory)
	}
	taken := o.takenNames(settings)
	for n := 1; n <= mostNumbers; n++ {
		name := base
		if n > 1 {
			number := fmt.Sprintf("-%d", n)
			name = strings.TrimRight(base[:min(len(base), maxName-len(number))], "-") + number
		}
		if _, err := editor.Locate(manifest.SessionRef(name)); !errors.Is(err, manifest.ErrNotDeclared) || taken[name] || o.fileOf(name, editor) {
			continue
		}
		o.name = name
		return nil
	}
	return usagef("%d sessions are called after the directory %s: give a name", mostNumbers, directory)
}

// maxName is the longest name of a session.
const maxName = 63

// takenNames are the sessions that a daemon keeps although no document declares them,
// such as one whose removal is held. Without a daemon there is none to ask.
func (o *newOptions) takenNames(settings *config.Effective) map[string]bool {
	client := server.NewClient(settings.Paths.APISocket())
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	names := map[string]bool{}
	if list, err := client.Sessions(ctx, ""); err == nil {
		for i := range list.Items {
			names[list.Items[i].Name] = true
		}
	}
	return names
}

// fileOf says whether a file has the name of the new one in any manifest directory.
func (o *newOptions) fileOf(name string, editor *manifest.Editor) bool {
	for _, root := range editor.Reading().Roots {
		if _, err := os.Lstat(filepath.Join(root.Path, name+".yaml")); err == nil {
			return true
		}
	}
	return false
}

// prompt is the text of the file, as it stands.
func (o *newOptions) prompt() (string, error) {
	if o.promptFile == "" {
		return "", nil
	}
	in := o.in
	if o.promptFile != stdinArgument {
		f, err := os.Open(o.promptFile)
		if err != nil {
			return "", fmt.Errorf("open the file of the prompt: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, spec.MaxFileBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the file of the prompt: %w", err)
	case strings.TrimSpace(string(data)) == "":
		return "", fmt.Errorf("the prompt in %s is empty: write one, or leave --prompt-file out", o.promptFile)
	}
	return string(data), nil
}
