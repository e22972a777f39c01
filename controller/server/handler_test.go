// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

func readStatus(t *testing.T, r *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var status metav1.Status
	require.NoError(t, json.Unmarshal(r.Body.Bytes(), &status), r.Body.String())
	assert.Equal(t, "Status", status.Kind)
	assert.Equal(t, "v1", status.APIVersion)
	assert.Equal(t, metav1.StatusFailure, status.Status)
	assert.Equal(t, int32(r.Code), status.Code)
	assert.Equal(t, "application/json", r.Header().Get("Content-Type"))
	assert.NotEmpty(t, status.Message)
	return status
}

func TestListsAreObjectsThatKubernetesToolsUnderstand(t *testing.T) {
	for _, path := range []string{sessionsPath, allSessionsPath, sessionsPath + "/"} {
		answer := ask(t, newFake("a", "b"), http.MethodGet, path)
		require.Equal(t, http.StatusOK, answer.Code, path)
		var list spec.SessionList
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
		assert.Equal(t, metav1.TypeMeta{APIVersion: "muxlet.dev/v1alpha1", Kind: "SessionList"}, list.TypeMeta)
		assert.NotEmpty(t, list.ResourceVersion)
		require.Len(t, list.Items, 2)
		assert.Equal(t, metav1.TypeMeta{APIVersion: "muxlet.dev/v1alpha1", Kind: "Session"}, list.Items[0].TypeMeta)
	}
}

func TestAnEmptyListHasItemsAndNotNull(t *testing.T) {
	assert.Contains(t, ask(t, newFake(), http.MethodGet, sessionsPath).Body.String(), `"items":[]`)
	assert.Contains(t, ask(t, newFake(), http.MethodGet, eventsPath+"?fieldSelector=reason=None").Body.String(), `"items":[]`)
}

func TestTheVersionOfAListChangesWithItsContentOnly(t *testing.T) {
	version := func(f *fakeBackend) string {
		var list spec.SessionList
		require.NoError(t, json.Unmarshal(ask(t, f, http.MethodGet, sessionsPath).Body.Bytes(), &list))
		return list.ResourceVersion
	}
	f := newFake("a", "b")
	first := version(f)
	assert.Equal(t, first, version(f))
	f.change("a", func(s *spec.Session) { s.Status.Client.Pid = 7 })
	assert.NotEqual(t, first, version(f))
}

func TestListsAreSelectedByLabelAndField(t *testing.T) {
	for query, want := range map[string][]string{
		"":                                   {"a", "b", "c"},
		"labelSelector=number%3D1":           {"b"},
		"labelSelector=number+in+(0,2)":      {"a", "c"},
		"labelSelector=!number":              nil,
		"fieldSelector=metadata.name%3Dc":    {"c"},
		"fieldSelector=metadata.name!%3Dc":   {"a", "b"},
		"watch=false&labelSelector=number=0": {"a"},
	} {
		var list spec.SessionList
		answer := ask(t, newFake("a", "b", "c"), http.MethodGet, sessionsPath+"?"+query)
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
		var names []string
		for _, s := range list.Items {
			names = append(names, s.Name)
		}
		assert.Equal(t, want, names, query)
	}
}

func TestEventsAreSelectedByTheObjectTheyAreAbout(t *testing.T) {
	f := newFake()
	for query, want := range map[string]int{
		"":                                       3,
		"?fieldSelector=involvedObject.name%3Da": 2,
		"?fieldSelector=involvedObject.name%3Da,reason%3DReason2": 1,
		"?fieldSelector=type%3DWarning":                           0,
	} {
		for _, path := range []string{eventsPath, allEventsPath} {
			answer := ask(t, f, http.MethodGet, path+query)
			var list corev1.EventList
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
			assert.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, list.TypeMeta)
			assert.Len(t, list.Items, want, query)
			for _, event := range list.Items {
				assert.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, event.TypeMeta)
			}
		}
	}
	assert.Contains(t, f.calls(), "Events:a", "a selection by name is the backend's to make")
}

func TestOneSessionIsAnObject(t *testing.T) {
	answer := ask(t, newFake("a"), http.MethodGet, sessionsPath+"/a")
	var session spec.Session
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &session))
	assert.Equal(t, "Session", session.Kind)
	assert.Equal(t, "muxlet.dev/v1alpha1", session.APIVersion)
	assert.Equal(t, "a", session.Name)
}

func TestEachSubresourceIsOneIntent(t *testing.T) {
	for path, want := range map[string][]string{
		"suspend":           {"SetSuspend:a:true"},
		"resume":            {"Resume:a:false"},
		"resume?fresh=true": {"Resume:a:true"},
		"restart":           {"Restart:a"},
		"terminate":         {"Terminate:a"},
		"attach":            {"Attach:a"},
	} {
		f := newFake("a")
		answer := ask(t, f, http.MethodPost, sessionsPath+"/a/"+path)
		assert.Equal(t, http.StatusOK, answer.Code, path)
		assert.Equal(t, want, f.calls(), path)
		assert.Contains(t, answer.Body.String(), `"kind":"Session"`, "the session is the answer")
	}
}

func TestResumeLiftsASuspensionBeforeItAsksForAClient(t *testing.T) {
	f := newFake("a")
	f.sessions["a"].Spec.Suspend = true
	assert.Equal(t, http.StatusOK, ask(t, f, http.MethodPost, sessionsPath+"/a/resume").Code)
	assert.Equal(t, []string{"SetSuspend:a:false", "Resume:a:false"}, f.calls())
}

func TestASessionThatComesUpByLiftingItsSuspensionIsResumed(t *testing.T) {
	f := newFake("a")
	f.sessions["a"].Spec.Suspend = true
	f.failResume = NewError(ReasonAlreadyRunning, "a", "it runs")
	assert.Equal(t, http.StatusOK, ask(t, f, http.MethodPost, sessionsPath+"/a/resume").Code)
	assert.Equal(t, http.StatusConflict, ask(t, f, http.MethodPost, sessionsPath+"/a/resume").Code, "one that was not suspended ran before")
}

func TestResumeAsksForNoClientWhenTheSuspensionCannotBeLifted(t *testing.T) {
	f := newFake("a")
	f.sessions["a"].Spec.Suspend = true
	f.fail = NewError(ReasonForbidden, "a", "the file /m/a.yaml is read-only")
	status := readStatus(t, ask(t, f, http.MethodPost, sessionsPath+"/a/resume"))
	assert.Equal(t, ReasonForbidden, status.Reason)
	assert.Equal(t, []string{"SetSuspend:a:false"}, f.calls())
}

func TestResumeOfAnUnknownSessionIsNotFound(t *testing.T) {
	f := newFake()
	assert.Equal(t, ReasonNotFound, readStatus(t, ask(t, f, http.MethodPost, sessionsPath+"/a/resume")).Reason)
	assert.Empty(t, f.calls())
}

func TestDeleteAnswersWhatWasDeleted(t *testing.T) {
	f := newFake("a")
	answer := ask(t, f, http.MethodDelete, sessionsPath+"/a")
	require.Equal(t, http.StatusOK, answer.Code)
	var status metav1.Status
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &status))
	assert.Equal(t, metav1.StatusSuccess, status.Status)
	assert.Equal(t, "a", status.Details.Name)
	assert.EqualValues(t, "uid-0", status.Details.UID)
	assert.Equal(t, []string{"Delete:a"}, f.calls())
}

func TestDeleteNeverGoesFurtherThanItsOptions(t *testing.T) {
	for body, want := range map[string]int{
		`{"preconditions":{"uid":"uid-0"}}`:  http.StatusOK,
		`{"propagationPolicy":"Background"}`: http.StatusOK,
		`{"preconditions":{"uid":"other"}}`:  http.StatusConflict,
		`{"dryRun":["All"]}`:                 http.StatusBadRequest,
		`{"dryRun":`:                         http.StatusBadRequest,
		strings.Repeat(" ", maxBodyBytes+1):  http.StatusBadRequest,
	} {
		f := newFake("a")
		recorder := httptest.NewRecorder()
		Handler(f).ServeHTTP(recorder, httptest.NewRequest(http.MethodDelete, sessionsPath+"/a", strings.NewReader(body)))
		assert.Equal(t, want, recorder.Code, "%.40s", body)
		if want != http.StatusOK {
			readStatus(t, recorder)
			assert.Empty(t, f.calls(), "%.40s", body)
		}
	}
	f := newFake("a")
	assert.Equal(t, http.StatusBadRequest, ask(t, f, http.MethodDelete, sessionsPath+"/a?dryRun=All").Code)
	assert.Empty(t, f.calls())
}

func TestLogIsTextOfTheAskedLength(t *testing.T) {
	for query, want := range map[string]string{
		"":               "Screen:a:1000",
		"?tailLines=0":   "Screen:a:0",
		"?tailLines=1":   "Screen:a:1",
		"?tailLines=500": "Screen:a:500",
	} {
		f := newFake("a")
		answer := ask(t, f, http.MethodGet, sessionsPath+"/a/log"+query)
		assert.Equal(t, []string{want}, f.calls())
		assert.Equal(t, "<one> & two\n", answer.Body.String())
		assert.Equal(t, "text/plain; charset=utf-8", answer.Header().Get("Content-Type"))
	}
	for _, query := range []string{
		"tailLines=-1", "tailLines=x", "tailLines=20001", "previous=perhaps", "follow=perhaps", "follow=true&previous=true",
	} {
		f := newFake("a")
		assert.Equal(t, metav1.StatusReasonBadRequest, readStatus(t, ask(t, f, http.MethodGet, sessionsPath+"/a/log?"+query)).Reason)
		assert.Empty(t, f.calls())
	}
	f := newFake("a")
	assert.JSONEq(t, `{"conversation":"c1","path":"/t/c1.jsonl","reports":"ClaudeHooks"}`, ask(t, f, http.MethodGet, sessionsPath+"/a/transcript").Body.String())
	assert.Equal(t, ReasonNotFound, readStatus(t, ask(t, f, http.MethodGet, sessionsPath+"/nobody/transcript")).Reason)
	assert.Equal(t, "before\n", ask(t, f, http.MethodGet, sessionsPath+"/a/log?previous=true&tailLines=5").Body.String())
	assert.Equal(t, []string{"PreviousScreen:a:5"}, f.calls())
}

func TestPruneRemovesOnlyWhenItIsConfirmed(t *testing.T) {
	f := newFake()
	assert.Contains(t, ask(t, f, http.MethodPost, prunePath).Body.String(), `"wouldRemove":[{"name":"a"`)
	assert.Contains(t, ask(t, f, http.MethodPost, prunePath+"?confirm=true").Body.String(), `"removed":[{"name":"a"`)
	assert.Equal(t, http.StatusBadRequest, ask(t, f, http.MethodPost, prunePath+"?confirm=perhaps").Code)
	assert.Equal(t, []string{"Prune:false", "Prune:true"}, f.calls())
}

func TestTheDaemonSaysHowItIs(t *testing.T) {
	f := newFake()
	var status DaemonStatus
	require.NoError(t, json.Unmarshal(ask(t, f, http.MethodGet, "/statusz").Body.Bytes(), &status))
	assert.Equal(t, 42, status.PID)
	assert.Contains(t, ask(t, f, http.MethodGet, "/version").Body.String(), `"gitVersion":"v1"`)
}

func TestEveryReasonHasItsCode(t *testing.T) {
	for reason, code := range map[metav1.StatusReason]int{
		ReasonNotFound: 404, ReasonAlreadyRunning: 409, ReasonWorkspaceMissing: 409, ReasonSuspended: 409,
		ReasonConflict: 409, ReasonForbidden: 403, ReasonInvalid: 422, ReasonTmuxUnavailable: 503,
		ReasonProvisioningFailed: 503, ReasonDeadlineExceeded: 504, "Odd": 500,
	} {
		f := newFake("a")
		f.fail = fmt.Errorf("wrap: %w", NewError(reason, "a", "one sentence"))
		status := readStatus(t, ask(t, f, http.MethodPost, sessionsPath+"/a/restart"))
		assert.Equal(t, int32(code), status.Code, reason)
		assert.Equal(t, reason, status.Reason)
		assert.Equal(t, `session "a": one sentence`, status.Message)
		assert.Equal(t, &metav1.StatusDetails{Group: "muxlet.dev", Kind: "sessions", Name: "a"}, status.Details)
	}
}

func TestAnErrorNamesItsSessionOnce(t *testing.T) {
	require.EqualError(t, NewError(ReasonConflict, "a", "it has no pane"), `session "a": it has no pane`)
	require.EqualError(t, NewError(ReasonConflict, "a", `session "a" has no pane`), `session "a" has no pane`)
	require.EqualError(t, NewError(ReasonConflict, "", "it has no pane"), "it has no pane")
}

func TestAnErrorWithoutAReasonIsInternal(t *testing.T) {
	f := newFake("a")
	f.fail = errBoom
	for _, r := range []struct{ method, path string }{
		{http.MethodPost, sessionsPath + "/a/suspend"}, {http.MethodPost, sessionsPath + "/a/resume"},
		{http.MethodPost, sessionsPath + "/a/restart"}, {http.MethodPost, sessionsPath + "/a/terminate"},
		{http.MethodDelete, sessionsPath + "/a"}, {http.MethodGet, sessionsPath + "/a/log"}, {http.MethodPost, prunePath},
	} {
		status := readStatus(t, ask(t, f, r.method, r.path))
		assert.Equal(t, metav1.StatusReasonInternalError, status.Reason, r.path)
		assert.Equal(t, "boom", status.Message)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	for _, path := range []string{
		"/", "/apis", "/nothing", sessionsPath + "/x", sessionsPath + "/a/nothing", sessionsPath + "/a/log/more",
		"/apis/muxlet.dev/v1alpha1/namespaces/other/sessions", "/apis/muxlet.dev/v1alpha1/namespaces/other/sessions/a",
		"/apis/muxlet.dev/v1/namespaces/default/sessions", "/api/v1/namespaces/other/events",
		sessionsPath + "/..", sessionsPath + "/a%2Flog", "//",
	} {
		assert.Equal(t, ReasonNotFound, readStatus(t, ask(t, newFake("a"), http.MethodGet, path)).Reason, path)
	}
	assert.Contains(t, readStatus(t, ask(t, newFake(), http.MethodGet, "/api/v1/namespaces/other/events")).Message,
		`namespace "other" not found: the only namespace is "default"`)
	assert.Contains(t, readStatus(t, ask(t, newFake(), http.MethodGet, sessionsPath+"/x")).Message, `session "x" not found`)
}

func TestAMethodThatIsNotPossibleSaysWhichIs(t *testing.T) {
	for path, allow := range map[string]string{
		sessionsPath:                "GET",
		sessionsPath + "/a":         "DELETE, GET",
		sessionsPath + "/a/suspend": "POST",
		sessionsPath + "/a/log":     "GET",
		eventsPath:                  "GET",
		prunePath:                   "POST",
		"/healthz":                  "GET",
	} {
		answer := ask(t, newFake("a"), http.MethodPut, path)
		assert.Equal(t, metav1.StatusReasonMethodNotAllowed, readStatus(t, answer).Reason, path)
		assert.Equal(t, allow, answer.Header().Get("Allow"), path)
	}
	f := newFake("a")
	assert.Equal(t, http.StatusMethodNotAllowed, ask(t, f, http.MethodGet, sessionsPath+"/a/suspend").Code)
	assert.Equal(t, http.StatusMethodNotAllowed, ask(t, f, http.MethodDelete, sessionsPath).Code)
	assert.Empty(t, f.calls(), "nothing was done")
}

func TestASelectorThatIsNotUnderstoodListsNothing(t *testing.T) {
	for _, query := range []string{"labelSelector=a%3D%3D%3Db", "fieldSelector=a", "fieldSelector=spec.suspend%3Dtrue"} {
		assert.Equal(t, metav1.StatusReasonBadRequest, readStatus(t, ask(t, newFake("a"), http.MethodGet, sessionsPath+"?"+query)).Reason, query)
	}
	assert.Equal(t, metav1.StatusReasonBadRequest, readStatus(t, ask(t, newFake(), http.MethodGet, eventsPath+"?fieldSelector=message%3Dx")).Reason)
}

func TestAPanicIsAStatusAndOneLogLine(t *testing.T) {
	f := newFake("a")
	f.hook = func(method string) { panic("a fault in " + method) }
	var log logLines
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, sessionsPath, http.NoBody)
	Handler(f).ServeHTTP(recorder, request.WithContext(log.in(context.Background())))
	status := readStatus(t, recorder)
	assert.Equal(t, metav1.StatusReasonInternalError, status.Reason)
	assert.NotContains(t, status.Message, "Sessions", "the details are the log's")
	require.Len(t, log.all(), 1)
	assert.Contains(t, log.all()[0], "a fault in Sessions")
}
