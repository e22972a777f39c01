// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The resources of the API and where they are.
const (
	resourceSessions = "sessions"
	resourceClasses  = "clientclasses"
	groupPath        = "/apis/muxlet.dev/v1alpha1"
	sessionsPath     = groupPath + "/namespaces/default/sessions"
	allSessionsPath  = groupPath + "/sessions"
	classesPath      = groupPath + "/" + resourceClasses
	eventsPath       = "/api/v1/namespaces/default/events"
	allEventsPath    = "/api/v1/events"
	prunePath        = groupPath + "/prune"
	statusPath       = "/statusz"
	healthPath       = "/healthz"
	readyPath        = "/readyz"
	versionPath      = "/version"
)

// call is one request on its way: the request and the name in its path.
type call struct {
	*http.Request
	name string
}

// verb answers one call with an object that is sent as JSON, or with plainText.
type verb func(call) (any, error)

// plainText is an answer that is sent as it is.
type plainText string

// route is one place of the API and what can be done there, by HTTP method.
type route struct {
	segments []string
	verbs    map[string]verb
}

const (
	nameSegment      = "{name}"
	namespaceSegment = "{namespace}"
)

func newRoute(pattern string, verbs map[string]verb) route {
	pattern = strings.Replace(pattern, "/namespaces/default/", "/namespaces/"+namespaceSegment+"/", 1)
	return route{segments: split(pattern), verbs: verbs}
}

func split(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// match says whether path is at this route, and which name and namespace it
// has.
func (r route) match(path []string) (name, namespace string, ok bool) {
	if len(path) != len(r.segments) {
		return "", "", false
	}
	for i, segment := range r.segments {
		switch segment {
		case nameSegment:
			name = path[i]
		case namespaceSegment:
			namespace = path[i]
		case path[i]:
		default:
			return "", "", false
		}
	}
	return name, namespace, true
}

// dispatch finds the route of a request and lets its verb answer. The second
// result lists the methods that are allowed there when this one is not.
func dispatch(routes []route, r *http.Request) (value any, allow []string, err error) {
	path, err := segmentsOf(r.URL)
	if err != nil {
		return nil, nil, err
	}
	for _, candidate := range routes {
		name, namespace, ok := candidate.match(path)
		if !ok {
			continue
		}
		if namespace != "" && namespace != metav1.NamespaceDefault {
			return nil, nil, NewError(ReasonNotFound, "",
				fmt.Sprintf("namespace %q not found: the only namespace is %q", namespace, metav1.NamespaceDefault))
		}
		act, ok := candidate.verbs[r.Method]
		if !ok {
			return nil, candidate.methods(), NewError(metav1.StatusReasonMethodNotAllowed, "",
				fmt.Sprintf("%s is not possible on %s: use %s", r.Method, r.URL.Path, strings.Join(candidate.methods(), " or ")))
		}
		value, err = act(call{Request: r, name: name})
		return value, nil, err
	}
	return nil, nil, NewError(ReasonNotFound, "", fmt.Sprintf("there is nothing at %s: sessions are at %s", r.URL.Path, sessionsPath))
}

func (r route) methods() []string {
	var methods []string
	for method := range r.verbs {
		methods = append(methods, method)
	}
	slices.Sort(methods)
	return methods
}

// segmentsOf splits before it unescapes, so that an escaped slash stays within
// its segment.
func segmentsOf(u *url.URL) ([]string, error) {
	path := split(u.EscapedPath())
	for i, segment := range path {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return nil, badRequest("the path %s is not well formed: %v", u.EscapedPath(), err)
		}
		path[i] = plain
	}
	return path, nil
}
