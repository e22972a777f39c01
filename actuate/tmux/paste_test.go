// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/observe/tmux"
	"github.com/muxlet/muxlet/spec"
)

// strange has whatever tmux, a shell or a terminal could take for its own.
const strange = "first 'line' \"quoted\" `x` $HOME ~ \\\n\n\ttab; ; #{pid} #(touch f) %if {a} \U0001f600 e\u0301 日本 \\n -t %0 C-c;\nlast \\"

// pastes is the hand-over of prompt to a pane.
func (h *host) pastes(p observe.Pane, prompt string) actuate.Action {
	h.Helper()
	path := filepath.Join(h.dir, "prompt")
	require.NoError(h, os.WriteFile(path, []byte(prompt), 0o600))
	return actuate.Action{
		Kind: actuate.ActionPaste, Server: h.listing().Server, Pane: p,
		Turn: actuate.Turn{Name: "shop-1", PromptFile: path},
	}
}

// cursor is where the program's cursor is now.
func (h *host) cursor(p observe.Pane) *observe.Cursor {
	h.Helper()
	screen, err := h.conn.Capture(h.Context(), p.PaneID, 0)
	require.NoError(h, err)
	return &screen.Cursor
}

// noBuffers asserts that tmux keeps nothing of any prompt.
func (h *host) noBuffers() {
	h.Helper()
	assert.Empty(h, h.tmux("list-buffers"))
}

// bracketed is reader of a program that asks for bracketed pastes.
func (h *host) bracketed(p observe.Pane, file string) observe.Pane {
	h.Helper()
	p = h.reader(p, file)
	require.NoError(h, os.Remove(file))
	h.tmux("respawn-pane", "-k", "-t", p.PaneID, "--", "sh", "-c",
		`stty raw -echo; printf '\033[?2004h\033[3;5H'; : >"$1"; exec cat >>"$1"`, "sh", file)
	require.Eventually(h, func() bool {
		_, err := os.Stat(file)
		return err == nil && h.tmux("display-message", "-p", "-t", p.PaneID, "#{cursor_x} #{cursor_y}") == "4 2"
	}, 20*time.Second, 5*time.Millisecond)
	return h.byID(p.PaneID)
}

func (h *host) byID(id string) observe.Pane {
	h.Helper()
	for _, p := range h.listing().Panes {
		if p.PaneID == id {
			return p
		}
	}
	require.Fail(h, "the pane is gone")
	return observe.Pane{}
}

// F1, F3: lines stay lines, and nothing is added at the end.
func TestAPromptIsPastedAsItIs(t *testing.T) {
	h := newServer(t)
	file := filepath.Join(h.dir, "typed")
	p := h.reader(h.create("shop"), file)
	h.done(h.pastes(p, strange))
	h.eventuallyReads(file, strange)

	p = h.bracketed(p, file)
	h.done(h.pastes(p, strange))
	h.eventuallyReads(file, "\x1b[200~"+strange+"\x1b[201~")
	h.noBuffers()
}

// Claude Code makes a new line of a \ and the submit key, and the prompt stays where it
// is.
func TestASpaceIsPastedBehindAPromptThatWouldGoOn(t *testing.T) {
	h := newServer(t)
	for prompt, want := range map[string]string{`in C:\shop\`: `in C:\shop\ `, "in C:\\\nshop": "in C:\\\nshop"} {
		file := filepath.Join(h.dir, fmt.Sprint(len(want)))
		p := h.reader(h.create(fmt.Sprint("shop-", len(want))), file)
		a := h.pastes(p, prompt)
		a.Turn.Continues = `\\\z`
		h.done(a)
		h.eventuallyReads(file, want)
	}
}

func TestAMegabyteIsPastedByteByByte(t *testing.T) {
	h := newServer(t)
	file := filepath.Join(h.dir, "typed")
	prompt := strings.Repeat(strange+"\n", spec.MaxPromptBytes/len(strange)+1)
	// The last character is whole: the cut is in front of one.
	prompt = strings.TrimRight(strings.ToValidUTF8(prompt[:spec.MaxPromptBytes], ""), "\n")
	p := h.reader(h.create("shop"), file)
	h.done(h.pastes(p, prompt))
	h.eventuallyReads(file, prompt)
	p = h.bracketed(p, file)
	h.done(h.pastes(p, prompt))
	h.eventuallyReads(file, "\x1b[200~"+prompt+"\x1b[201~")
	h.noBuffers()
}

// F4: what does not read its input holds up nothing but itself. A program that is
// stopped by a signal would not do here: tmux makes it go on at once.
func TestAProgramThatDoesNotReadHoldsUpNoOtherSession(t *testing.T) {
	h := newServer(t)
	file, other, goOn := filepath.Join(h.dir, "typed"), filepath.Join(h.dir, "other"), filepath.Join(h.dir, "go")
	p := h.create("shop")
	h.tmux("respawn-pane", "-k", "-t", p.PaneID, "--", "sh", "-c",
		`stty raw -echo; : >"$1"; until [ -e "$2" ]; do sleep 0.05; done; exec cat >>"$1"`, "sh", file, goOn)
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, 20*time.Second, 5*time.Millisecond)
	free := h.reader(h.create("free"), other)
	prompt := strings.Repeat("0123456789abcde\n", spec.MaxPromptBytes/16-1) + "end"
	h.done(h.pastes(h.byID(p.PaneID), prompt))
	for i := range 20 {
		h.done(h.pastes(free, strconv.Itoa(i)+" "))
	}
	h.eventuallyReads(other, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 ")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Zero(t, info.Size())
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	h.eventuallyReads(file, prompt)
	h.noBuffers()
}

func TestAProgramThatDiesWithoutReadingItsPromptIsSeenToBeDead(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	h.done(h.pastes(p, strings.Repeat("x", spec.MaxPromptBytes)))
	dead := h.die(p)
	h.unchanged(h.pastes(dead, "x"))
	h.done(actuate.Action{Kind: actuate.ActionRespawn, Server: h.listing().Server, Pane: dead, Launch: h.launch("shop")})
	h.noBuffers()
}

func TestNothingIsPastedIntoADeadPaneAndTheServerLives(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	before := h.pastes(p, "x")
	h.die(p)
	// As it was seen before the client died.
	h.unchanged(before)
	// As it is.
	h.unchanged(h.pastes(h.pane(p.Labels.Attempt), "x"))
	h.noBuffers()
}

// Between the look and the paste there is always time to die in.
func TestAPaneThatDiesWhileItIsPastedIntoLeavesTheServerAlone(t *testing.T) {
	h := newServer(t)
	server := h.listing().Server
	for range 30 {
		p := h.create("shop")
		action := h.pastes(p, strings.Repeat("x", 100000))
		killed := make(chan error)
		go func() { killed <- syscall.Kill(p.PID, syscall.SIGKILL) }()
		out := h.Do(t.Context(), action)
		require.NoError(t, <-killed)
		require.Contains(t, []actuate.Result{actuate.ResultDone, actuate.ResultRefused}, out.Result, out.Message)
		require.Equal(t, server, h.listing().Server)
		h.tmux("kill-pane", "-t", p.PaneID)
	}
	h.noBuffers()
}

func TestNothingIsPastedIntoWhatIsNotThePaneThatWasMeant(t *testing.T) {
	h := newServer(t)
	file := filepath.Join(h.dir, "typed")
	p := h.reader(h.create("shop"), file)
	good := h.pastes(p, "x")
	for name, change := range map[string]func(*actuate.Action){
		"server":  func(a *actuate.Action) { a.Server.StartTime++ },
		"pid":     func(a *actuate.Action) { a.Pane.PID++ },
		"pane":    func(a *actuate.Action) { a.Pane.PaneID = "%99" },
		"attempt": func(a *actuate.Action) { a.Pane.Labels.Attempt = "another" },
		"uid":     func(a *actuate.Action) { a.Pane.Labels.UID = "another" },
		"foreign": func(a *actuate.Action) { a.Pane.Labels.Instance = "22222222-bbbb" },
	} {
		bad := good
		change(&bad)
		h.unchanged(bad)
		bad.Kind, bad.Keys = actuate.ActionSubmit, []string{"Enter"}
		h.unchanged(bad)
		h.noBuffers()
		assert.NotEqual(t, spec.ReasonCursorMoved, h.Do(t.Context(), bad).Reason, name)
	}
	for _, taken := range [][2][]string{
		{{"set-option", "-w", "-t", p.PaneID, "synchronize-panes", "on"}, {"set-option", "-w", "-u", "-t", p.PaneID, "synchronize-panes"}},
		{{"select-pane", "-d", "-t", p.PaneID}, {"select-pane", "-e", "-t", p.PaneID}},
	} {
		h.tmux(taken[0]...)
		h.tmux("copy-mode", "-t", p.PaneID)
		stop := h.types(p, "Enter")
		submit := stop
		submit.Kind = actuate.ActionSubmit
		for _, a := range []actuate.Action{good, submit, stop} {
			h.unchanged(a)
			assert.Equal(t, spec.ReasonPaneInputTaken, h.Do(t.Context(), a).Reason)
		}
		assert.Equal(t, "1", h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_in_mode}"), "nothing happened")
		h.tmux(taken[1]...)
	}
	h.noBuffers()
	h.done(good)
	h.eventuallyReads(file, "x")
}

// F5: a dialog that has come up since the look moves the cursor.
func TestNothingIsTypedOnceTheCursorHasMoved(t *testing.T) {
	h := newServer(t)
	file := filepath.Join(h.dir, "typed")
	p := h.bracketed(h.create("shop"), file)
	at := h.cursor(p)
	require.Equal(t, observe.Cursor{X: 4, Y: 2}, *at)
	paste, submit := h.pastes(p, "x"), h.types(p, "Enter")
	submit.Kind = actuate.ActionSubmit
	for _, wrong := range []observe.Cursor{{X: 5, Y: 2}, {X: 4, Y: 1}, {X: 4, Y: 2, Hidden: true}} {
		paste.Turn.Cursor, submit.Turn.Cursor = &wrong, &wrong
		h.tmux("copy-mode", "-t", p.PaneID)
		h.unchanged(paste)
		h.unchanged(submit)
		assert.Equal(t, spec.ReasonCursorMoved, h.Do(t.Context(), paste).Reason)
		assert.Equal(t, spec.ReasonCursorMoved, h.Do(t.Context(), submit).Reason)
		assert.Equal(t, "1", h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_in_mode}"), "nothing happened")
	}
	h.noBuffers()
	// It is the program's cursor, and not that of whoever reads in the copy mode.
	h.tmux("send-keys", "-X", "-t", p.PaneID, "history-top")
	paste.Turn.Cursor, submit.Turn.Cursor = at, at
	h.done(paste)
	h.done(submit)
	h.eventuallyReads(file, "\x1b[200~x\x1b[201~\r")
}

func TestAPasteAndItsSubmissionAreForTheClientWhateverAPersonLooksAt(t *testing.T) {
	h := newServer(t)
	file := filepath.Join(h.dir, "typed")
	p := h.bracketed(h.create("shop"), file)
	typed := ""
	for _, mode := range [][]string{{"copy-mode"}, {"choose-tree"}, {"clock-mode"}, {"choose-buffer"}} {
		if mode[0] == "choose-buffer" {
			h.tmux("set-buffer", "-b", "theirs", "of a person")
		}
		h.tmux(append(mode, "-t", p.PaneID)...)
		require.Equal(t, "1", h.tmux("display-message", "-p", "-t", p.PaneID, "#{pane_in_mode}"), mode)
		h.done(h.pastes(p, "q"))
		// The program had asked for brackets, which a mode in front of it does not.
		typed += "\x1b[200~q\x1b[201~"
		h.eventuallyReads(file, typed)
		h.tmux(append(mode, "-t", p.PaneID)...)
		submit := h.types(p, "Enter")
		submit.Kind = actuate.ActionSubmit
		h.done(submit)
		typed += "\r"
		h.eventuallyReads(file, typed)
	}
	assert.Equal(t, "theirs", h.tmux("list-buffers", "-F", "#{buffer_name}"))
}

func TestAPromptThatCannotBeReadIsLostAndNothingIsPasted(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	empty := h.pastes(p, "")
	long := empty
	long.Turn.PromptFile = filepath.Join(h.dir, "long")
	require.NoError(t, os.WriteFile(long.Turn.PromptFile, []byte(strings.Repeat("x", spec.MaxPromptBytes+1)), 0o600))
	keys := long
	keys.Turn.PromptFile = filepath.Join(h.dir, "keys")
	require.NoError(t, os.WriteFile(keys.Turn.PromptFile, []byte("x\x1b[201~\r"), 0o600))
	missing, directory := long, long
	missing.Turn.PromptFile, directory.Turn.PromptFile = filepath.Join(h.dir, "none"), h.dir
	for _, a := range []actuate.Action{empty, long, keys, missing, directory} {
		out := h.Do(t.Context(), a)
		assert.Equal(t, actuate.ResultFailed, out.Result, a.Turn.PromptFile)
		assert.Equal(t, spec.ReasonPromptLost, out.Reason)
		assert.Contains(t, out.Message, "shop-1")
	}
	h.noBuffers()
}

// emptyConn gives tmux nothing to load.
type emptyConn struct{ Conn }

func (c emptyConn) Run(ctx context.Context, _ io.Reader, args ...string) tmux.Result {
	return c.Conn.Run(ctx, strings.NewReader(""), args...)
}

func TestAPromptThatTmuxDidNotLoadIsProvenNotToBePasted(t *testing.T) {
	h := newServer(t)
	p := h.create("shop")
	h.Conn = emptyConn{h.conn}
	out := h.Do(t.Context(), h.pastes(p, "x"))
	assert.Equal(t, actuate.ResultFailed, out.Result, out.Message)
	assert.Equal(t, spec.ReasonTmuxFailed, out.Reason)
	h.unchanged(h.pastes(h.die(p), "x"))
}

// A hook of the person's that fails behind the paste proves nothing.
func TestAPasteBehindWhichAHookFailsIsNotSaidToHaveFailed(t *testing.T) {
	h := newServer(t)
	file := filepath.Join(h.dir, "typed")
	p := h.reader(h.create("shop"), file)
	h.tmux("set-hook", "-g", "after-paste-buffer", "select-window -t nowhere:7")
	out := h.Do(t.Context(), h.pastes(p, "x"))
	assert.Contains(t, []actuate.Result{actuate.ResultDone, actuate.ResultUnclear}, out.Result, out.Message)
	h.eventuallyReads(file, "x")
}

func TestAPasteThatTmuxDoesNotAnswerIsUnclear(t *testing.T) {
	h := newServer(t)
	file := filepath.Join(h.dir, "typed")
	p := h.reader(h.create("shop"), file)
	action := h.pastes(p, "x")
	h.conn.Timeout = 300 * time.Millisecond
	pid := action.Server.Process.PID
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	out := h.Do(t.Context(), action)
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	assert.Equal(t, actuate.ResultUnclear, out.Result)
	assert.Equal(t, spec.ReasonTmuxTimeout, out.Reason)
	h.conn.Timeout = 20 * time.Second
	h.noBuffers()
}

func TestAPasteForWhichThereIsNoServerHasFailed(t *testing.T) {
	h := newServer(t)
	action := h.pastes(h.create("shop"), "x")
	h.stop()
	out := h.Do(t.Context(), action)
	assert.Equal(t, actuate.ResultFailed, out.Result, out.Message)
	assert.Equal(t, spec.ReasonTmuxUnreachable, out.Reason)
}

func TestOnlyATmuxThatRewritesPastesIsToldNotTo(t *testing.T) {
	for version, want := range map[string]bool{
		"3.2a": false, "3.3a": false, "3.6b": false, "3.7": true, "3.7c": true, "3.10": true, "4.0": true,
		"next-3.8": false, "openbsd-7.9": false, "": false,
	} {
		words := pasteBuffer(actuate.Action{Server: observe.Server{Version: version}}, "b")
		assert.Equal(t, want, words[len(words)-1] == "-S", version)
	}
}

// Whatever dies during a hand-over: what is said not to have happened has not.
func TestAPasteThatIsSaidNotToHaveHappenedHasNot(t *testing.T) {
	for i := range 8 {
		h := newServer(t)
		file := filepath.Join(h.dir, "typed")
		p := h.reader(h.create("shop"), file)
		began := ticks(p.PID)
		action := h.pastes(p, strings.Repeat("x", 300000))
		ctx, cancel := context.WithCancel(t.Context())
		end := func() { assert.NoError(t, syscall.Kill(action.Server.Process.PID, syscall.SIGKILL)) }
		if i%2 == 1 {
			end = cancel
		}
		ended := make(chan struct{})
		time.AfterFunc(time.Duration(i)*time.Millisecond, func() { end(); close(ended) })
		out := h.Do(ctx, action)
		<-ended
		cancel()
		h.stop()
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
		program := observe.Process{PID: p.PID, Ticks: began}
		require.Eventually(t, func() bool { return process.State(program) == observe.Gone }, 20*time.Second, 5*time.Millisecond)
		info, err := os.Stat(file)
		require.NoError(t, err)
		if out.Result == actuate.ResultFailed || out.Result == actuate.ResultRefused {
			assert.Zero(t, info.Size(), "%d: %s", i, out.Message)
		}
	}
}

// What was done is said on the pane, so that a daemon that did not live to see it can be
// followed by one that knows.
func TestThePaneSaysHowFarAHandOverHasCome(t *testing.T) {
	h := newServer(t)
	p := h.bracketed(h.create("shop"), filepath.Join(h.dir, "typed"))
	step := func() string { return h.tmux("display-message", "-p", "-t", p.PaneID, "#{"+observe.OptionTurn+"}") }
	require.Empty(t, step())
	paste := h.pastes(p, "hello")
	paste.Turn.Step = observe.TurnStep("shop-1", 0)
	h.done(paste)
	require.Equal(t, "shop-1/0", step())
	key := h.types(p, "Enter")
	key.Kind, key.Turn.Step = actuate.ActionSubmit, observe.TurnStep("shop-1", 1)
	refused := key
	refused.Turn.Cursor = &observe.Cursor{X: 199, Y: 1}
	require.Equal(t, actuate.ResultRefused, h.Do(t.Context(), refused).Result)
	require.Equal(t, "shop-1/0", step(), "a key that was not typed is not told")
	h.done(key)
	require.Equal(t, "shop-1/1", step())
	screen, err := h.conn.CaptureHand(t.Context(), p.PaneID)
	require.NoError(t, err)
	keys, pasted := observe.KeysAfter(screen.Turn, "shop-1")
	require.Equal(t, []any{1, true}, []any{keys, pasted})
}
