// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path"
	"time"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// judgeSilent: no receipt yet. The launcher may still be on its way through the
// person's profile, or it will never come.
func (p *pass) judgeSilent(a *record.Attempt) bool {
	pane, found := p.paneOfAttempt(a.ID)
	over := !found || p.spent(pane)
	timeout := startupTimeout(&a.Spec)
	late := p.Now.Sub(a.OpenedAt) >= timeout
	if a.Fence == record.FenceOpen {
		switch reason := p.unwanted(); {
		case reason != "":
			return p.closeFence(reason, "given up before the client was executed")
		case over:
			return p.closeFence(spec.ReasonStartFailed, p.silentSentence(a, pane, found))
		case late:
			return p.closeFence(spec.ReasonStartTimeout, p.lateSentence(a, timeout))
		}
		return p.say(spec.ReasonStarting, fmt.Sprintf("attempt of incarnation %d is in flight", a.Incarnation), p.pollAttempt(a, timeout))
	}
	if !over {
		if pane.Live == observe.LivenessUnknown {
			return p.notJudged(pane)
		}
		return p.beginStop(stopOfAttempt(a.Reason), pane.Process)
	}
	if p.Seen.Lease.State != observe.Gone {
		return p.say(spec.ReasonStarting, "a launcher still holds the lease; waiting for its receipt", poll(p.Now.Sub(a.OpenedAt)))
	}
	if a.Reason == spec.ReasonStartFailed && found && p.collectSilent(a, pane) {
		return true
	}
	if p.Seen.ReceiptState == ReceiptUnknown {
		// It may tell of a client that ran: the number is not used again.
		p.rec.Incarnation = max(p.rec.Incarnation, a.Incarnation)
		p.spendConversation(a)
	}
	p.failAttempt(a.Reason, a.Message)
	return false
}

// collectSilent waits for the status of the shell, as a client's end waits for
// the client's: tmux 3.3a loses most ends on a quiet machine, and a SIGCHLD to
// the server brings them back. The fence is closed meanwhile, so that waiting
// costs a moment and nothing else.
func (p *pass) collectSilent(a *record.Attempt, pane SeenPane) (wait bool) {
	age := p.Now.Sub(a.ClosedAt)
	if pane.StatusKnown() || age >= statusPatience {
		a.Message = p.silentSentence(a, pane, true)
		return false
	}
	p.plan.Action = actuate.Action{Kind: actuate.ActionReap, Server: p.Seen.Server}
	return p.say(spec.ReasonStarting, "the start has failed; waiting for how it ended to be known", max(pollStatus, age/4))
}

// closeFence makes it certain, once the record is on disk, that no launcher of
// this attempt that has not taken the lease will execute anything.
func (p *pass) closeFence(reason, message string) bool {
	a := p.rec.Attempt
	a.Fence, a.Reason, a.Message, a.ClosedAt = record.FenceClosed, reason, message, p.Now
	return p.say(spec.ReasonStarting, "giving the attempt up: "+message, soon)
}

// silentSentence says how an attempt ended of which no launcher told.
func (p *pass) silentSentence(a *record.Attempt, pane SeenPane, found bool) string {
	if !found && p.Seen.StartFailure != "" {
		return p.Seen.StartFailure
	}
	if !found {
		return "the pane was not there"
	}
	how := end{exit: exitOf(pane.Pane)}.sentence()
	if a.Spec.Client.ShellMode == spec.ShellNone {
		return fmt.Sprintf("the launcher ended before it left a receipt (%s); the last screen may say why", how)
	}
	return fmt.Sprintf("the shell ended before it reached the launcher (%s): the shell's profile exits, fails, or executes another program that has ended (the last screen may show it); %s",
		how, p.profileAdvice(a))
}

func (p *pass) lateSentence(a *record.Attempt, timeout time.Duration) string {
	if a.Spec.Client.ShellMode == spec.ShellNone {
		return fmt.Sprintf("the launcher left no receipt within %s", timeout)
	}
	return fmt.Sprintf("the launcher was not reached within %s: the shell's profile may hang, ask a question, or execute another program (the last screen may show it); %s",
		timeout, p.profileAdvice(a))
}

// profileAdvice names the files to look at.
func (p *pass) profileAdvice(a *record.Attempt) string {
	files := profiles(p.Policy.Shell, a.Spec.Client.ShellMode)
	if files == "" {
		return "mend its files, or set shellMode None"
	}
	return fmt.Sprintf("mend what %s reads (%s), or set shellMode None", p.Policy.Shell, files)
}

// profiles names the files of the person's that a login shell reads.
func profiles(shell string, mode spec.ShellMode) string {
	switch path.Base(shell) {
	case "bash":
		return "~/.bash_profile, else ~/.bash_login, else ~/.profile, and what that reads, such as ~/.bashrc"
	case "zsh":
		if mode == spec.ShellLogin {
			return "~/.zshenv, ~/.zprofile, ~/.zlogin, and what they read"
		}
		return "~/.zshenv, ~/.zprofile, ~/.zshrc, ~/.zlogin, and what they read"
	case "fish":
		return "~/.config/fish/config.fish, conf.d beside it, and what they read"
	case "dash", "sh":
		return "~/.profile, and what that reads"
	}
	return ""
}
