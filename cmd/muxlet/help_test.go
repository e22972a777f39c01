// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// everyCommand walks all commands that a person can find.
func everyCommand(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, cmd := range root.Commands() {
		if !cmd.Hidden {
			all = append(all, everyCommand(cmd)...)
		}
	}
	return all
}

func newRoot() *cobra.Command { return newRootCommand(newGlobals()) }

func TestEveryCommandSaysWhatItIsAndHowItIsUsed(t *testing.T) {
	for _, cmd := range everyCommand(newRoot()) {
		path := cmd.CommandPath()
		assert.NotEmpty(t, cmd.Short, "%s has no Short", path)
		assert.False(t, strings.HasSuffix(cmd.Short, "."), "%s: Short is no sentence", path)
		assert.True(t, unicode.IsUpper([]rune(cmd.Short + "x")[0]), "%s: Short begins with a capital", path)
		assert.NotEmpty(t, cmd.Long, "%s has no Long", path)
		assert.NotEmpty(t, cmd.Example, "%s has no Example", path)
		cmd.Flags().VisitAll(func(f *pflag.Flag) { assert.NotEmpty(t, f.Usage, "%s: --%s says nothing", path, f.Name) })
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 120, "%s: a line of its help is too long: %s", path, line)
		}
	}
}

// Each example of each command is right: its verbs, flags and arguments exist, and running
// it is no error of usage.
func TestEveryExampleIsRight(t *testing.T) {
	f := eventful(queue())
	for _, cmd := range everyCommand(newRoot()) {
		path, own := cmd.CommandPath(), false
		for line := range strings.Lines(cmd.Example) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(strings.TrimSpace(line), "#") || strings.TrimSpace(line) == "" {
				continue
			}
			assert.True(t, strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   "), "%s: two blanks before %q", path, line)
			calls := callsIn(line)
			assert.NotEmpty(t, calls, "%s: %q calls no muxlet", path, line)
			for _, args := range calls {
				found := parseExample(t, path, args)
				own = own || found == path || strings.HasPrefix(found, path+" ")
				runExample(t, f, found, args)
			}
		}
		assert.True(t, own, "%s: no example is of this command", path)
	}
}

// parseExample gives the path of the command that the words are for.
func parseExample(t *testing.T, path string, args []string) string {
	t.Helper()
	root := newRoot()
	cmd, rest, err := root.Find(args)
	require.NoError(t, err, "%s: %q", path, args)
	require.NoError(t, cmd.ParseFlags(rest), "%s: %q", path, args)
	require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), "%s: %q", path, args)
	require.NoError(t, cmd.ValidateRequiredFlags(), "%s: %q", path, args)
	return cmd.CommandPath()
}

// runExample runs an example for a moment. What it needs may not be there; that it is
// understood is what counts.
func runExample(t *testing.T, f *fakeDaemon, path string, args []string) {
	t.Helper()
	if slices.Contains([]string{"muxlet daemon", "muxlet doctor", "muxlet install", "muxlet uninstall"}, path) {
		return // these look at more than the test's own directories
	}
	c := newCLI(t, f)
	c.stdin = "a prompt\n"
	ctx, stop := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("long enough"))
	defer stop()
	c.runIn(ctx, args...)
	// The exit code alone would not do: that of a diff that cannot be made is the same.
	assert.NotContains(t, c.errOut, "--help\".\n", "%q is not understood", args)
}

// callsIn are the words of each call of muxlet in a line of a shell.
func callsIn(line string) [][]string {
	var calls [][]string
	var words []string
	end := func() {
		if i := slices.Index(words, "muxlet"); i >= 0 {
			call := words[i+1:]
			if slices.Contains(words[:i], "xargs") {
				call = append(call, "given-by-xargs")
			}
			calls = append(calls, call)
		}
		words = nil
	}
	for _, word := range shellSplit(line) {
		if word == "#" {
			break
		}
		switch {
		case slices.Contains([]string{"|", ";", "&&", ")", "<("}, word):
			end()
		case strings.HasPrefix(word, "<"), strings.HasPrefix(word, ">"):
		default:
			words = append(words, strings.TrimPrefix(word, "\x00"))
		}
	}
	end()
	return calls
}

// shellSplit splits as a shell does, as far as examples need it. A quoted word begins with
// NUL, so that it is no operator.
func shellSplit(line string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	began := false
	end := func() {
		if began {
			words = append(words, word.String())
		}
		word.Reset()
		began = false
	}
	runes := []rune(line)
	for i, r := range runes {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			if !began {
				word.WriteByte(0)
			}
			quote, began = r, true
		case unicode.IsSpace(r):
			end()
		case r == '(' && i > 0 && runes[i-1] == '<':
			word.WriteRune(r)
			end()
		case r == '|' || r == ';' || r == ')':
			end()
			words = append(words, string(r))
		default:
			word.WriteRune(r)
			began = true
		}
	}
	end()
	return words
}

func TestExamplesAreSplitAsAShellDoes(t *testing.T) {
	assert.Equal(t, [][]string{{"send", "a", "x | y"}, {"get", "-o", "name"}}, callsIn("  git diff | muxlet send a 'x | y' <f && muxlet get -o name >f"))
	assert.Equal(t, [][]string{{"completion", "bash"}}, callsIn("  source <(muxlet completion bash)"))
	assert.Equal(t, [][]string{{"cancel", "given-by-xargs"}}, callsIn("  cat | xargs muxlet cancel"))
}

func TestTheVerbsAreInGroups(t *testing.T) {
	root := newRoot()
	for _, cmd := range root.Commands() {
		if !cmd.Hidden {
			assert.NotEmpty(t, cmd.GroupID, "%s is in no group: give it one in help.go", cmd.Name())
		}
	}
	c := newCLI(t, nil)
	assert.Equal(t, 0, c.run("--help"))
	assert.NotContains(t, c.out, "Additional Commands")
	last := 0
	for _, group := range groups {
		at := strings.Index(c.out, group.Title)
		assert.Greater(t, at, last, group.Title)
		last = at
	}
}

func TestMistypedWordsAreAnsweredWithTheNearest(t *testing.T) {
	f := newFakeDaemon(runningSession("checkout-bug", 1, 5), runningSession("docs", 1, 6))
	f.setTurn(pendingTurn("checkout-bug", 1))
	f.setClass(spec.ClientClass{ObjectMeta: metav1.ObjectMeta{Name: "gemini"}})
	c := newCLI(t, f)
	for _, test := range []struct {
		line string
		code int
		want string
	}{
		{"gett", exitUsage, "Did you mean this?\n\tget\n"},
		{"ls", exitUsage, "Did you mean this?\n\tget\n"},
		{"stop", exitUsage, "\tterminate\n"},
		{"rm checkout-bug", exitUsage, "\tdelete\n"},
		{"checkout-bug", exitUsage, "unknown command \"checkout-bug\" for \"muxlet\": it is the name of a session, and a verb comes before it, such as \"muxlet attach checkout-bug\"\n"},
		{"config veiw", exitUsage, "Error: unknown command \"veiw\" for \"muxlet config\": it has test-notification, view (did you mean \"view\"?)\n"},
		{"completion bahs", exitUsage, "(did you mean \"bash\"?)"},
		{"get --selektor=a", exitUsage, "Error: unknown flag: --selektor (did you mean \"--selector\"?)\n"},
		{"logs a --folow", exitUsage, "(did you mean \"--follow\"?)"},
		{"get --zzz", exitUsage, "Error: unknown flag: --zzz\n"},
		{"describe chekout-bug", exitNotFound, "Error: session \"chekout-bug\" not found (did you mean \"checkout-bug\"?): \"muxlet get\" lists those that exist\n"},
		{"suspend docs2", exitNotFound, "(did you mean \"docs\"?)"},
		{"wait dosc", exitNotFound, "(did you mean \"docs\"?)"},
		{"send dosc hello", exitNotFound, "(did you mean \"docs\"?)"},
		{"get sesions", exitNotFound, "Error: session \"sesions\" not found (did you mean the kind \"sessions\"?)"},
		{"get turn checkot-bug-1", exitNotFound, "(did you mean \"checkout-bug-1\"?)"},
		{"get turn checkout-bug-2", exitNotFound, "Error: turn \"checkout-bug-2\" not found: "},
		{"get cc gemni", exitNotFound, "(did you mean \"gemini\"?)"},
		{"get dcos -o json", exitNotFound, "\"session \\\"dcos\\\" not found (did you mean \\\"docs\\\"?)"},
		{"get sesion/docs", exitUsage, "\"sesion/docs\" names no session: write NAME or sessions/NAME (did you mean \"session\"?)"},
		{"describe nothing-like-it", exitNotFound, "Error: session \"nothing-like-it\" not found: "},
	} {
		assert.Equal(t, test.code, c.run(strings.Fields(test.line)...), "%s: %s%s", test.line, c.out, c.errOut)
		assert.Contains(t, c.errOut, test.want, test.line)
	}
	assert.Equal(t, 0, c.run("config"), "a command that has others only shows its help")
	assert.Contains(t, c.out, "muxlet config [command]")
}
