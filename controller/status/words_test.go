// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// saidReasons are the constants of spec that the plan's rules say.
func saidReasons(t *testing.T) []string {
	t.Helper()
	constants := constantsOf(t, "../../spec/conditions.go")
	files, err := filepath.Glob("../plan/*.go")
	require.NoError(t, err)
	var said []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			name, isMethod := call.Fun.(*ast.SelectorExpr)
			reason, isConstant := call.Args[0].(*ast.SelectorExpr)
			if isMethod && isConstant && name.Sel.Name == "say" && strings.HasPrefix(reason.Sel.Name, "Reason") && constants[reason.Sel.Name] != "" {
				said = append(said, constants[reason.Sel.Name])
			}
			return true
		})
	}
	require.Greater(t, len(said), 20)
	return said
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	return f
}

func constantsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	found := map[string]string{}
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if ok && len(v.Names) == 1 && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				found[v.Names[0].Name] = strings.Trim(lit.Value, `"`)
			}
		}
		return true
	})
	return found
}

// The word of the STATUS column for whatever the plan can say.
func TestEveryVerdictHasAWord(t *testing.T) {
	orphans := func(in *Input) { in.Seen.Clients = []observe.MarkedProcess{{}} }
	rows := []struct {
		in   Input
		want spec.Status
	}{
		{up(spec.ReasonRunning), spec.StatusRunning},
		{up(spec.ReasonStarted, executed(observe.Running)), spec.StatusRunning},
		{up(spec.ReasonAdopted), spec.StatusRunning},
		{up(spec.ReasonStopping, stopping(client)), spec.StatusStopping},
		{up(spec.ReasonClientIgnoresKill, stopping(client)), spec.StatusStopping},
		{up(spec.ReasonStopping, suspendedSpec, stopping(client)), spec.StatusStopping},
		{down(spec.ReasonStopping, stopping(another), orphans), spec.StatusStopping},
		{down(spec.ReasonStarting, attempted), spec.StatusStarting},
		{down(spec.ReasonStarting), spec.StatusStarting},
		{down(spec.ReasonServerStarting), spec.StatusStarting},
		{down(spec.ReasonWaitingForBudget), spec.StatusStarting},
		{up(spec.ReasonDied, judged(observe.Gone)), spec.StatusStarting},
		{up(spec.ReasonStarted, executed(observe.Gone)), spec.StatusStarting},
		{down(spec.ReasonConfirming), spec.StatusUnknown},
		{up(spec.ReasonProcessUnknown, judged(observe.LivenessUnknown)), spec.StatusUnknown},
		{up("", blind), spec.StatusUnknown},
		{down("", suspendedSpec, blind), spec.StatusUnknown},
		{down(spec.ReasonCrashLoopBackOff), spec.StatusCrashLoopBackOff},
		{down(spec.ReasonTmuxServerFailed), spec.StatusCrashLoopBackOff},
		{down(spec.ReasonSuspended, suspendedSpec), spec.StatusSuspended},
		{down(spec.ReasonTerminated), spec.StatusTerminated},
		{down(spec.ReasonCompleted), spec.StatusCompleted},
		{down(spec.ReasonNotRecovered), spec.StatusDormant},
		{down(spec.ReasonDormant, onDemand), spec.StatusDormant},
		{down(spec.ReasonSuspended, onDemand, suspendedSpec), spec.StatusSuspended},
		{down(spec.ReasonStarting, onDemand, attempted), spec.StatusStarting},
		{down(spec.ReasonInvalid, refused(spec.ReasonInvalid)), spec.StatusInvalid},
		{down(spec.ReasonDuplicateName, refused(spec.ReasonDuplicateName)), spec.StatusConflict},
		{down(spec.ReasonNameConflict), spec.StatusConflict},
		{up(spec.ReasonRunning, refused(spec.ReasonInvalid)), spec.StatusRunning},
		{down(spec.ReasonDuplicateClient, orphans), spec.StatusBlocked},
		{down(spec.ReasonCommandNotFound), spec.StatusBlocked},
		{down(spec.ReasonWorkspaceMissing, obstructed(spec.ReasonWorkspaceMissing)), spec.StatusBlocked},
		{down(spec.ReasonWorkspaceNotDirectory, obstructed(spec.ReasonWorkspaceNotDirectory)), spec.StatusBlocked},
		{down(spec.ReasonWorkspaceInaccessible, obstructed(spec.ReasonWorkspaceInaccessible)), spec.StatusBlocked},
		{down(spec.ReasonResourcesUnsupported), spec.StatusBlocked},
		{down(spec.ReasonEnvFileMissing), spec.StatusBlocked},
		{down(spec.ReasonEnvFileInvalid), spec.StatusBlocked},
		{down(spec.ReasonStateUnwritable), spec.StatusBlocked},
		{down(spec.ReasonTooManyTerminals), spec.StatusBlocked},
		{down(spec.ReasonTooManyOpenFiles), spec.StatusBlocked},
		{down(spec.ReasonRecordTooNew), spec.StatusBlocked},
		{down(spec.ReasonRecordQuarantined), spec.StatusBlocked},
		{down(spec.ReasonRemoved), spec.StatusStopping},
		{up(spec.ReasonReady, agent), spec.StatusRunning},
		{up(spec.ReasonNotReady, agent), spec.StatusStarting},
		{up(spec.ReasonEngineGone, agent), spec.StatusStopping},
		{up(spec.ReasonQuestion, agent), spec.StatusRunning},
		{up(spec.ReasonTrustRequired, agent, asking(spec.ReasonTrustRequired)), spec.StatusRunning},
		{down(spec.ReasonClassNotFound, func(in *Input) { in.Class = nil }), spec.StatusBlocked},
		{down(spec.ReasonConversationMissing, agent), spec.StatusBlocked},
		{down(spec.ReasonConversationElsewhere, agent), spec.StatusBlocked},
		{down(spec.ReasonConversationInUse, agent), spec.StatusBlocked},
		{down(spec.ReasonConversationUnknown, agent), spec.StatusBlocked},
		{down(spec.ReasonUsageLimited, agent), spec.StatusBlocked},
		{down(spec.ReasonAuthenticationFailed, agent), spec.StatusBlocked},
	}
	covered := map[string]bool{
		// The record is archived in the same pass; nobody is shown it.
		spec.ReasonOrphaned: true,
	}
	for _, r := range rows {
		reason := r.in.Plan.Verdict.Reason
		covered[reason] = true
		t.Run(reason+" is "+string(r.want), func(t *testing.T) {
			require.Equal(t, r.want, spec.DisplayStatus(&spec.Session{Status: Summarize(r.in)}))
		})
	}
	for _, reason := range saidReasons(t) {
		require.True(t, covered[reason], "the plan says %s, and no row here does", reason)
	}
}
