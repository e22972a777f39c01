// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditioned makes a Session with conditions written as Type=Status/Reason.
func conditioned(conditions ...string) *Session {
	var s Session
	for _, c := range conditions {
		name, rest, _ := strings.Cut(c, "=")
		status, reason, _ := strings.Cut(rest, "/")
		s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{
			Type: name, Status: metav1.ConditionStatus(status), Reason: reason,
		})
	}
	return &s
}

func TestStatusWordIsComputedFromTheConditions(t *testing.T) {
	const seen = "Observed=True/Observed"
	for name, c := range map[string]struct {
		conditions []string
		want       Status
	}{
		"never visited":                    {nil, StatusUnknown},
		"not observed yet":                 {[]string{"Observed=Unknown/NotYetObserved", "ClientAlive=True/Running", "Ready=True/Running"}, StatusUnknown},
		"tmux is mute":                     {[]string{"Observed=False/TmuxTimeout", "ClientAlive=Unknown/TmuxTimeout", "Ready=Unknown/TmuxTimeout"}, StatusUnknown},
		"invalid and not observed":         {[]string{"Accepted=False/Invalid", "Observed=False/TmuxTimeout"}, StatusUnknown},
		"observed without a judgement":     {[]string{seen}, StatusUnknown},
		"process table unreadable":         {[]string{seen, "ClientAlive=Unknown/ProcessUnknown"}, StatusUnknown},
		"running":                          {[]string{seen, "ClientAlive=True/Running", "Ready=True/Running"}, StatusRunning},
		"running on the last good spec":    {[]string{seen, "Accepted=False/Invalid", "ClientAlive=True/Running", "Ready=True/Running"}, StatusRunning},
		"running, named twice":             {[]string{seen, "Accepted=False/DuplicateName", "ClientAlive=True/Running", "Ready=True/Running"}, StatusRunning},
		"running, removal held":            {[]string{seen, "Accepted=False/RemovalHeld", "ClientAlive=True/Running", "Ready=True/Running"}, StatusRunning},
		"running, edit pending":            {[]string{seen, "UpToDate=False/UpdatePending", "ClientAlive=True/Running", "Ready=True/Running"}, StatusRunning},
		"alive and not ready yet":          {[]string{seen, "ClientAlive=True/Running", "Ready=False/Starting"}, StatusStarting},
		"being stopped":                    {[]string{seen, "ClientAlive=True/Stopping", "Ready=False/Stopping"}, StatusStopping},
		"being suspended":                  {[]string{seen, "Suspended=True/Suspended", "ClientAlive=True/Running", "Ready=True/Running"}, StatusStopping},
		"being restarted":                  {[]string{seen, "ClientAlive=True/Running", "Ready=False/Restarting"}, StatusStopping},
		"an orphan":                        {[]string{seen, "ClientAlive=True/PaneGone", "Ready=False/Orphan"}, StatusStopping},
		"a client that outlives SIGKILL":   {[]string{seen, "ClientAlive=True/Stopping", "Ready=False/Stopping", "Stalled=True/ClientIgnoresKill"}, StatusStopping},
		"about to start":                   {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/Progressing", "Stalled=False/Progressing"}, StatusStarting},
		"attempt in flight":                {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/Starting"}, StatusStarting},
		"waiting for its turn to start":    {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/WaitingForBudget"}, StatusStarting},
		"died a moment ago":                {[]string{seen, "ClientAlive=False/Died", "Ready=False/Died"}, StatusStarting},
		"starting on the last good spec":   {[]string{seen, "Accepted=False/Invalid", "ClientAlive=False/NoClient", "Ready=False/Starting"}, StatusStarting},
		"pane being removed":               {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/Removed"}, StatusStopping},
		"invalid":                          {[]string{seen, "Accepted=False/Invalid", "ClientAlive=False/NoClient", "Ready=False/Invalid", "Stalled=True/Invalid"}, StatusInvalid},
		"declared twice":                   {[]string{seen, "Accepted=False/DuplicateName", "ClientAlive=False/NoClient", "Ready=False/DuplicateName"}, StatusConflict},
		"a foreign tmux session":           {[]string{seen, "Accepted=True/Accepted", "ClientAlive=False/NoClient", "Ready=False/NameConflict", "Stalled=True/NameConflict"}, StatusConflict},
		"suspended":                        {[]string{seen, "Suspended=True/Suspended", "ClientAlive=False/NoClient", "Ready=False/Suspended", "Stalled=True/Suspended"}, StatusSuspended},
		"not suspended":                    {[]string{seen, "Suspended=False/NotSuspended", "ClientAlive=True/Running", "Ready=True/Running"}, StatusRunning},
		"terminated":                       {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/Terminated", "Stalled=True/Terminated"}, StatusTerminated},
		"completed":                        {[]string{seen, "ClientAlive=False/Completed", "Ready=False/Completed"}, StatusCompleted},
		"lost with recoveryPolicy Dormant": {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/NotRecovered", "Stalled=True/NotRecovered"}, StatusDormant},
		"waiting for a demand":             {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/Dormant", "Stalled=False/Progressing"}, StatusDormant},
		"woken from its rest":              {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/Starting", "Stalled=False/Progressing"}, StatusStarting},
		"waiting for a demand and invalid": {[]string{seen, "Accepted=False/Invalid", "ClientAlive=False/NoClient", "Ready=False/Dormant"}, StatusInvalid},
		"backing off":                      {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/CrashLoopBackOff"}, StatusCrashLoopBackOff},
		"backing off after a failed start": {[]string{seen, "ClientAlive=False/StartFailed", "Ready=False/StartFailed"}, StatusCrashLoopBackOff},
		"backing off after a timeout":      {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/StartTimeout"}, StatusCrashLoopBackOff},
		"attempt given up":                 {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/AttemptAbandoned"}, StatusCrashLoopBackOff},
		"tmux cannot be started":           {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/TmuxServerFailed"}, StatusCrashLoopBackOff},
		"start failed for good":            {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/StartFailed", "Stalled=True/StartFailed"}, StatusBlocked},
		"directory missing":                {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/WorkspaceMissing", "Stalled=True/WorkspaceMissing"}, StatusBlocked},
		"program missing":                  {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/CommandNotFound", "Stalled=True/CommandNotFound"}, StatusBlocked},
		"record damaged":                   {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/Progressing", "Stalled=True/RecordQuarantined"}, StatusBlocked},
		"many died at once":                {[]string{seen, "ClientAlive=False/NoClient", "Ready=False/Confirming"}, StatusUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, DisplayStatus(conditioned(c.conditions...)))
		})
	}
}

// C8: what an earlier daemon wrote is not shown as true until it was observed.
func TestStatusOfAnEarlierDaemonIsNotShownAsTrue(t *testing.T) {
	s := conditioned("Observed=True/Observed", "ClientAlive=True/Running", "Ready=True/Running")
	s.Status.Conditions[0].Status = metav1.ConditionUnknown
	assert.Equal(t, StatusUnknown, DisplayStatus(s))
}

func TestEveryConditionTypeIsListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range ConditionTypes {
		assert.False(t, seen[name], name)
		seen[name] = true
	}
	assert.Len(t, seen, 10)
}
