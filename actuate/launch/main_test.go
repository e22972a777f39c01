// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/client"
)

// programs are what the test binary is as well, when its first argument says so.
var programs = map[string]func(args []string) error{"launch": launchMain}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		fmt.Fprintln(os.Stderr, programs[os.Args[1]](os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const (
	testUID     = "2f1c"
	testAttempt = "a77e-1"
)

// stored is what these tests keep in place of a record.
type stored struct {
	Order actuate.Order
	Fence actuate.Fence
	Error string
}

func launchMain(args []string) error {
	o := Options{Environ: os.Environ(), Evidence: new(client.Eyes).Evidence, Now: time.Now}
	flags := flag.NewFlagSet("launch", flag.ExitOnError)
	flags.StringVar(&o.StateDir, "state", "", "")
	flags.StringVar(&o.RuntimeDir, "runtime", "", "")
	flags.StringVar(&o.UID, "uid", "", "")
	flags.StringVar(&o.Attempt, "attempt", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.RuntimeDir, "begun"), nil, 0o600); err != nil {
		return err
	}
	o.Reports = filepath.Join(o.RuntimeDir, "reports.sock")
	o.ReadOrder = func(string) (actuate.Order, actuate.Fence, error) {
		var s stored
		data, err := os.ReadFile(filepath.Join(o.StateDir, "order"))
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if s.Error != "" {
			err = errors.New(s.Error)
		}
		return s.Order, s.Fence, err
	}
	return Run(o)
}

// pane is where a launcher of these tests runs.
type pane struct {
	t                    *testing.T
	state, runtime, work string
	stored               stored
	// environ is what the launcher finds; before is what executes it.
	environ, before []string
	stdout, stderr  strings.Builder
}

func newPane(t *testing.T, command ...string) *pane {
	t.Helper()
	root := t.TempDir()
	p := &pane{
		t: t, state: filepath.Join(root, "state"), runtime: filepath.Join(root, "run"),
		work: filepath.Join(root, "work"), environ: os.Environ(),
	}
	for _, dir := range []string{p.state, p.runtime, p.work} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	p.stored = stored{Fence: actuate.FenceOpen, Order: actuate.Order{
		Instance: "1257", UID: testUID, Session: "shop", Incarnation: 3,
		Attempt: testAttempt, Command: command, Directory: p.work,
	}}
	return p
}

// store writes the order as a whole.
func (p *pane) store() {
	p.t.Helper()
	data, err := json.Marshal(p.stored)
	require.NoError(p.t, err)
	path := filepath.Join(p.state, "order")
	require.NoError(p.t, os.WriteFile(path+".new", data, 0o600))
	require.NoError(p.t, os.Rename(path+".new", path))
}

// start runs the launcher; the process is killed at the end of the test.
func (p *pane) start() *exec.Cmd {
	p.t.Helper()
	p.store()
	self, err := os.Executable()
	require.NoError(p.t, err)
	argv := append(p.before, self, "launch", "--state", p.state, "--runtime", p.runtime,
		"--uid", testUID, "--attempt", testAttempt)
	cmd := exec.CommandContext(p.t.Context(), argv[0], argv[1:]...)
	cmd.Env = p.environ
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	cmd.WaitDelay = time.Second
	require.NoError(p.t, cmd.Start())
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// run runs the launcher to its end and returns the exit status.
func (p *pane) run() int {
	p.t.Helper()
	p.stdout.Reset()
	p.stderr.Reset()
	err := p.start().Wait()
	var exited *exec.ExitError
	if !errors.As(err, &exited) {
		require.NoError(p.t, err)
		return 0
	}
	return exited.ExitCode()
}

func (p *pane) receipt() observe.Receipt {
	p.t.Helper()
	r, err := ReadReceipt(p.state, testAttempt)
	require.NoError(p.t, err)
	return r
}

// refused asserts that the launcher ended with this reason, in its receipt and,
// as one sentence, in the pane.
func (p *pane) refused(reason string) observe.Receipt {
	p.t.Helper()
	assert.Equal(p.t, 1, p.run())
	assert.Empty(p.t, p.stdout.String(), "no client ran")
	r := p.receipt()
	assert.Equal(p.t, observe.StageFailed, r.Stage)
	assert.Equal(p.t, reason, r.Reason)
	assert.Equal(p.t, r.Message+"\n", p.stderr.String())
	assert.NotContains(p.t, r.Message, "\n")
	return r
}

func (p *pane) eventually(what string, condition func() bool) {
	p.t.Helper()
	require.Eventually(p.t, condition, 20*time.Second, 5*time.Millisecond, what)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
