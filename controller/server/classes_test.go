// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muxlet/muxlet/spec"
)

func classNamed(name, label string) *spec.ClientClass {
	return &spec.ClientClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"number": label}},
		Spec:       spec.ClientClassSpec{Reports: spec.ReportsNone},
		Status:     spec.ClientClassStatus{BuiltIn: label == "0"},
	}
}

func withClasses() *fakeBackend {
	f := newFake("a")
	f.putClass(classNamed("claude", "0"))
	f.putClass(classNamed("gemini", "1"))
	return f
}

func TestClientClassesAreListedAndGotClusterWide(t *testing.T) {
	f := withClasses()
	answer := ask(t, f, http.MethodGet, "/apis/muxlet.dev/v1alpha1/clientclasses")
	require.Equal(t, http.StatusOK, answer.Code)
	var list spec.ClientClassList
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	assert.Equal(t, "ClientClassList", list.Kind)
	assert.Equal(t, f.journals.Classes.Revision(), list.ResourceVersion)
	require.Len(t, list.Items, 2)
	assert.Equal(t, spec.KindClientClass, list.Items[0].Kind)
	assert.True(t, list.Items[0].Status.BuiltIn)

	answer = ask(t, f, http.MethodGet, "/apis/muxlet.dev/v1alpha1/clientclasses?labelSelector=number%3D1")
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	require.Len(t, list.Items, 1)
	answer = ask(t, f, http.MethodGet, "/apis/muxlet.dev/v1alpha1/clientclasses?fieldSelector=metadata.name%3Dclaude")
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	assert.Equal(t, "claude", list.Items[0].Name)

	answer = ask(t, f, http.MethodGet, "/apis/muxlet.dev/v1alpha1/clientclasses/gemini")
	var class spec.ClientClass
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &class))
	assert.Equal(t, "gemini", class.Name)

	for _, target := range []string{
		"/apis/muxlet.dev/v1alpha1/clientclasses/nobody",
		"/apis/muxlet.dev/v1alpha1/namespaces/default/clientclasses",
		"/apis/muxlet.dev/v1alpha1/namespaces/default/clientclasses/claude",
	} {
		assert.Equal(t, http.StatusNotFound, ask(t, f, http.MethodGet, target).Code, target)
	}
	answer = ask(t, f, http.MethodGet, "/apis/muxlet.dev/v1alpha1/clientclasses/nobody")
	var status metav1.Status
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &status))
	assert.Equal(t, `client class "nobody" not found: "muxlet get clientclasses" lists those that exist`, status.Message)
	assert.Equal(t, "clientclasses", status.Details.Kind)
	assert.Equal(t, http.StatusBadRequest, ask(t, f, http.MethodGet, "/apis/muxlet.dev/v1alpha1/clientclasses?fieldSelector=spec.reports%3DNone").Code)
}

func TestClientClassesAreWatched(t *testing.T) {
	f := withClasses()
	version := f.journals.Classes.Revision()
	w := openWatch(t, serve(t, Handler(f)), "/apis/muxlet.dev/v1alpha1/clientclasses?watch=true&resourceVersion="+version)
	f.put(&spec.Session{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
	f.putClass(classNamed("opencode", "2"))
	f.putClass(classNamed("gemini", "3"))
	f.journals.Classes.Delete("opencode")
	assert.Equal(t, []string{"ADDED opencode", "MODIFIED gemini", "DELETED opencode"}, w.words(3), "and nothing of sessions")
}

func TestTheClientReachesClientClasses(t *testing.T) {
	f := withClasses()
	client := NewClient(serve(t, Handler(f)))
	defer client.Close()
	list, err := client.Classes(t.Context(), "number=1")
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	class, err := client.Class(t.Context(), "claude")
	require.NoError(t, err)
	assert.True(t, class.Status.BuiltIn)
	require.NoError(t, client.DeleteClass(t.Context(), "gemini"))
	assert.Contains(t, f.calls(), "DeleteClass:gemini")
	for _, name := range []string{"nobody", "", "..", "a/b", "a?watch=true"} {
		_, err = client.Class(t.Context(), name)
		assert.Equal(t, ReasonNotFound, ReasonOf(err), name)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	err = client.FollowClasses(ctx, "", "", Follower[spec.ClientClass]{
		Listed: func(all []spec.ClientClass) error {
			f.putClass(classNamed("gemini", "2"))
			return nil
		},
		Changed: func(kind watch.EventType, c *spec.ClientClass) error {
			told = append(told, string(kind)+" "+c.Name)
			cancel()
			return nil
		},
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{"MODIFIED gemini"}, told)
}

func TestADeleteOfAClientClassGoesNoFurtherThanItsOptions(t *testing.T) {
	f := withClasses()
	assert.Equal(t, http.StatusOK, ask(t, f, http.MethodDelete, "/apis/muxlet.dev/v1alpha1/clientclasses/gemini").Code)
	assert.Equal(t, http.StatusBadRequest, ask(t, f, http.MethodDelete, "/apis/muxlet.dev/v1alpha1/clientclasses/gemini?dryRun=All").Code)
	assert.Equal(t, []string{"DeleteClass:gemini"}, f.calls())
}
