// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/actuate/process"
	"github.com/muxlet/muxlet/actuate/prompt"
	"github.com/muxlet/muxlet/observe"
	observeprocess "github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
)

// queueDrain is how long is waited, after the end of the command, for those that it has
// left behind with its standard input.
const queueDrain = 200 * time.Millisecond

// notForOthers are the variables by which a client, its hooks, and what runs in its
// pane are known: the command is none of them.
var notForOthers = []string{observe.EnvClient, observe.EnvReports, observe.EnvSession, "TMUX", "TMUX_PANE"}

// queue runs the command that puts a prompt into the client's own queue: with the
// client's environment, for that is where its configuration is found, in its directory,
// in a session of its own. What the command prints goes nowhere, since the prompt may
// be in it. Refused and Failed say that nothing was executed; a command that was, and
// did not end with 0, may have queued the prompt all the same: that is Unclear.
func queue(ctx context.Context, turn actuate.Turn) actuate.Outcome {
	if err := process.Itself(turn.Client)(turn.Client.PID); errors.Is(err, process.ErrGone) {
		return ended(turn)
	}
	environment, err := observeprocess.Environment(turn.Client)
	if err != nil {
		if errors.Is(process.Itself(turn.Client)(turn.Client.PID), process.ErrGone) {
			return ended(turn)
		}
		return failed(spec.ReasonProcessUnknown, fmt.Sprintf("Turn %s was not handed over: %v; it is tried again.", turn.Name, err))
	}
	text, err := prompt.Read(turn.PromptFile, spec.MaxPromptBytes)
	if err != nil {
		return failed(spec.ReasonPromptLost, fmt.Sprintf("Turn %s was not handed over: %v; send it again.", turn.Name, err))
	}
	words, input := queueWords(turn, text)
	if len(words) == 0 {
		return failed(spec.ReasonCommandNotFound, fmt.Sprintf("Turn %s was not handed over: its class names no command; give submit.command.", turn.Name))
	}
	environment = forCommand(environment, turn.Directory)
	program, err := observeprocess.LookPath(words[0], turn.Directory, environment)
	if err != nil {
		return failed(spec.ReasonCommandNotFound, fmt.Sprintf("Turn %s was not handed over: %v; install it, or correct submit.command.", turn.Name, err))
	}
	if _, err := os.Stat(turn.Directory); errors.Is(err, fs.ErrNotExist) {
		return failed(spec.ReasonWorkspaceMissing, fmt.Sprintf("Turn %s was not handed over: the directory %s does not exist; make it.", turn.Name, turn.Directory))
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin = words, environment, turn.Directory, input
	return run(ctx, cmd, turn)
}

// run executes the command. At the deadline its whole process group is killed.
func run(ctx context.Context, cmd *exec.Cmd, turn actuate.Turn) actuate.Outcome {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = queueDrain
	if err := cmd.Start(); err != nil {
		return failed(spec.ReasonExecFailed, fmt.Sprintf("Turn %s was not handed over: %s could not be executed (%v); mend that, or correct submit.command.", turn.Name, cmd.Path, reasonOf(err)))
	}
	// What is left is said by the state: an error may be about what it left behind.
	_ = cmd.Wait()
	why := "how it ended is not known"
	switch state := cmd.ProcessState; {
	case state == nil:
	case state.Success():
		return actuate.Outcome{Result: actuate.ResultDone}
	case ctx.Err() != nil:
		why = "it was ended at its deadline"
	default:
		why = "it ended with " + state.String()
	}
	return actuate.Outcome{Result: actuate.ResultUnclear, Reason: spec.ReasonNotConfirmed, Message: fmt.Sprintf(
		"%s was run for turn %s, and %s: whether it has queued the prompt is not known.", cmd.Path, turn.Name, why)}
}

// reasonOf is what the system said, without the words of the command.
func reasonOf(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func ended(turn actuate.Turn) actuate.Outcome {
	return actuate.Outcome{Result: actuate.ResultRefused, Reason: spec.ReasonUnknown, Message: fmt.Sprintf(
		"The client for which turn %s was has ended; it is looked at again.", turn.Name)}
}

// queueWords expands the command. Without the prompt in its words it reads it. The
// name of the program is told to people, and so is never made of the prompt.
func queueWords(turn actuate.Turn, text string) (words []string, input io.Reader) {
	named := false
	for i, word := range turn.Command {
		words = append(words, spec.Expand(word, func(name string) (string, bool) {
			if name == spec.VarPrompt && i > 0 {
				named = true
				return text, true
			}
			value, known := turn.Variables[name]
			return value, known
		}))
	}
	if named {
		return words, nil
	}
	return words, strings.NewReader(text)
}

// forCommand is a client's environment for a command that is not the client.
func forCommand(environment []string, directory string) []string {
	var kept []string
	for _, pair := range environment {
		name, _, isPair := strings.Cut(pair, "=")
		if isPair && name != "PWD" && !slices.Contains(notForOthers, name) {
			kept = append(kept, pair)
		}
	}
	return append(kept, "PWD="+directory)
}
