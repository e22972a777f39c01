// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"os/user"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// globals is what every verb works with: the flags that all of them have, and
// the world outside, so that a test can give another one.
type globals struct {
	flags struct {
		config     string
		manifests  []string
		stateDir   string
		runtimeDir string
		tmuxServer string
		// metricsListen is the loopback address of metrics.
		metricsListen string
		verbosity     int32
	}

	in          io.Reader
	out, errOut io.Writer
	now         func() time.Time
	lookupEnv   func(string) (string, bool)
	environ     func() []string
	home        string
	uid         int
	// account is that of the person; nil when nobody asks for it.
	account func() (*user.User, error)
	// lookupUser finds another account, called the path of this program as it was called, and
	// root is put before the paths of the system that install reads and writes.
	lookupUser func(name string) (*user.User, error)
	called     func() (string, error)
	root       string
	// stays says whether a program is there after the next boot, reachable why other users
	// cannot execute it.
	stays     func(path string) bool
	reachable func(path string) error
	// interactive says whether in is a terminal, colour whether out shows colours;
	// nil is no.
	interactive, colour func() bool
	// progress says whether errOut is a terminal, where a person reads how far a thing is,
	// and screen whether out is one, that can be drawn anew; nil is no.
	progress, screen func() bool
	// exec replaces this process.
	exec func(path string, argv, env []string) error
	// pollPeriod is the time between two looks at what is waited for, patience
	// how long bad news is believed to be old news, notice when a person is told
	// what is waited for, blindness how long tmux may be unknown before that is an
	// answer, waitLimit the end of every wait for a session, and handOver how long a turn
	// may take from its deadline until it is delivered or over.
	pollPeriod, patience, notice, blindness, waitLimit, handOver time.Duration

	// writing is held while a line is written.
	writing sync.Mutex
	// started is set once the command line was understood.
	started bool
	command *cobra.Command
}

// newGlobals is the world as it is.
func newGlobals() *globals {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // the settings say what they miss, if they miss it
	}
	return &globals{
		in: os.Stdin, out: os.Stdout, errOut: os.Stderr,
		now:         time.Now,
		lookupEnv:   os.LookupEnv,
		environ:     os.Environ,
		home:        home,
		uid:         os.Getuid(),
		account:     user.Current,
		lookupUser:  user.Lookup,
		called:      calledAs,
		stays:       staying,
		reachable:   reachable,
		interactive: func() bool { return term.IsTerminal(int(os.Stdin.Fd())) },
		colour:      func() bool { return colourful(os.Stdout, os.LookupEnv) },
		progress:    func() bool { return term.IsTerminal(int(os.Stderr.Fd())) },
		screen:      func() bool { return term.IsTerminal(int(os.Stdout.Fd())) },
		exec:        syscall.Exec,
		pollPeriod:  50 * time.Millisecond,
		patience:    time.Second,
		notice:      3 * time.Second,
		blindness:   5 * time.Second,
		waitLimit:   2 * time.Minute,
		handOver:    time.Minute,
	}
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, g *globals, args []string) int {
	root := newRootCommand(g)
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	command, err := root.ExecuteContextC(ctx)
	g.command = command
	return g.report(g.withVerb(root, err, args))
}

// verbosityFlag is --v, and -v for short.
const verbosityFlag = "v"

func newRootCommand(g *globals) *cobra.Command {
	root := &cobra.Command{
		Use:   "muxlet",
		Short: "A kubelet for terminal sessions",
		Long: "muxlet keeps the terminal sessions that YAML files declare alive inside tmux.\n" +
			"Without a command it lists them.",
		Example:       "  muxlet\n  muxlet daemon\n  muxlet apply -f shop.yaml\n  muxlet attach checkout-bug",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			g.started, g.command = true, cmd
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return (&getOptions{globals: g}).run(cmd.Context(), nil)
		},
	}
	root.SetIn(g.in)
	root.SetOut(g.out)
	root.SetErr(g.errOut)
	flags := root.PersistentFlags()
	flags.StringVar(&g.flags.config, "config", "", "file with the settings (default $XDG_CONFIG_HOME/muxlet/config.yaml)")
	flags.StringArrayVar(&g.flags.manifests, "manifests", nil, "directory or file with sessions; may be repeated (default $XDG_CONFIG_HOME/muxlet/sessions)")
	flags.StringVar(&g.flags.stateDir, "state-dir", "", "directory of the state (default $XDG_STATE_HOME/muxlet)")
	flags.StringVar(&g.flags.runtimeDir, "runtime-dir", "", "directory of the sockets (default $XDG_RUNTIME_DIR/muxlet)")
	flags.Int32VarP(&g.flags.verbosity, verbosityFlag, "v", 0, "verbosity of the log: 0 changes and faults, 1 decisions, 2 traces")
	root.AddCommand(
		newDaemonCommand(g), newValidateCommand(g), newGetCommand(g), newDescribeCommand(g),
		newNewCommand(g), newApplyCommand(g), newDiffCommand(g), newEditCommand(g), newSuspendCommand(g), newResumeCommand(g), newRestartCommand(g), newTerminateCommand(g), newDeleteCommand(g),
		newSendCommand(g), newCancelCommand(g),
		newEventsCommand(g), newPruneCommand(g), newAttachCommand(g), newLogsCommand(g), newConfigCommand(g), newStateCommand(g), newExplainCommand(g), newDoctorCommand(g), newVersionCommand(g), newHookCommand(),
		newWaitCommand(g),
		newTopCommand(g),
		newNextCommand(g), newPickCommand(g),
		newInstallCommand(g), newUninstallCommand(g), newTmuxFreeCommand(g),
	)
	g.addCompletion(root)
	addHelp(root)
	return root
}
