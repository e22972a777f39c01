// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/muxlet/muxlet/spec"
)

// The lines of a screen that log answers.
const (
	// DefaultLogLines are given when tailLines is not.
	DefaultLogLines = 1000
	// MaxLogLines can be asked for.
	MaxLogLines = 20_000
)

// api has the verbs of each route.
type api struct{ backend Backend }

func (a api) getSession(c call) (any, error) { return a.session(c.name) }

func (a api) session(name string) (spec.Session, error) {
	session, err := a.backend.Session(name)
	if err != nil {
		return spec.Session{}, err
	}
	session.TypeMeta = sessionTypeMeta
	return session, nil
}

var sessionTypeMeta = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindSession}

// deleteSession honours the two things in delete options whose neglect would
// destroy what the caller wanted to keep: a dry run and a precondition on uid.
func (a api) deleteSession(c call) (any, error) {
	options, err := deleteOptions(c)
	if err != nil {
		return nil, err
	}
	session, err := a.session(c.name)
	if err != nil {
		return nil, err
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != session.UID {
		return nil, NewError(ReasonConflict, c.name,
			fmt.Sprintf("session %q has uid %s, not %s: it was declared anew; look at it again", c.name, session.UID, *p.UID))
	}
	if err := a.backend.Delete(c.Context(), c.name); err != nil {
		return nil, err
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Group: spec.GroupVersion.Group, Kind: resourceSessions, Name: c.name, UID: session.UID},
	}, nil
}

func deleteOptions(c call) (metav1.DeleteOptions, error) {
	var options metav1.DeleteOptions
	data, err := io.ReadAll(c.Body)
	if err != nil {
		return options, badRequest("the delete options could not be read: %v", err)
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &options); err != nil {
			return options, badRequest("the delete options are not valid: %v", err)
		}
	}
	if c.URL.Query().Has("dryRun") || len(options.DryRun) > 0 {
		return options, badRequest("a dry run of a delete is not possible: nothing was deleted")
	}
	return options, nil
}

func (a api) suspend(c call) (any, error) {
	return a.intent(c, func(ctx context.Context) error { return a.backend.SetSuspend(ctx, c.name, true) })
}

// resume lifts a suspension first: the document is edited, then the demand is
// recorded. A session that comes up by the edit alone, before the demand, is
// what was asked for.
func (a api) resume(c call) (any, error) {
	fresh, err := boolParameter(c, "fresh")
	if err != nil {
		return nil, err
	}
	return a.intent(c, func(ctx context.Context) error {
		session, err := a.backend.Session(c.name)
		if err != nil {
			return err
		}
		if !session.Spec.Suspend {
			return a.backend.Resume(ctx, c.name, fresh)
		}
		if err := a.backend.SetSuspend(ctx, c.name, false); err != nil {
			return err
		}
		err = a.backend.Resume(ctx, c.name, fresh)
		if ReasonOf(err) == ReasonAlreadyRunning && !fresh {
			return nil
		}
		return err
	})
}

func (a api) restart(c call) (any, error) {
	return a.intent(c, func(ctx context.Context) error { return a.backend.Restart(ctx, c.name) })
}

func (a api) terminate(c call) (any, error) {
	return a.intent(c, func(ctx context.Context) error { return a.backend.Terminate(ctx, c.name) })
}

// intent records one and answers with the session as it is then.
func (a api) intent(c call, record func(context.Context) error) (any, error) {
	if err := record(c.Context()); err != nil {
		return nil, err
	}
	return a.session(c.name)
}

// log is the subresource of a pod of that name, with its parameters: tailLines,
// previous and follow. What is followed comes as lines of JSON (LogFrame), since
// no line of text could be told from what the client shows.
func (a api) transcript(c call) (any, error) {
	return a.backend.Transcript(c.Context(), c.name)
}

func (a api) log(c call) (any, error) {
	lines, err := tailLines(c)
	if err != nil {
		return nil, err
	}
	previous, err := boolParameter(c, "previous")
	if err != nil {
		return nil, err
	}
	follow, err := boolParameter(c, "follow")
	if err != nil {
		return nil, err
	}
	switch {
	case previous && follow:
		return nil, badRequest("previous and follow exclude each other: what has ended does not go on")
	case previous:
		screen, err := a.backend.PreviousScreen(c.Context(), c.name, lines)
		return plainText(screen), err
	case follow:
		return logStream(func(ctx context.Context, tell func(LogFrame) error) error {
			return a.backend.Follow(ctx, c.name, lines, tell)
		}), nil
	}
	screen, err := a.backend.Screen(c.Context(), c.name, lines)
	return plainText(screen), err
}

func tailLines(c call) (int, error) {
	text := c.URL.Query().Get("tailLines")
	if text == "" {
		return DefaultLogLines, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > MaxLogLines {
		return 0, badRequest("tailLines is %q: it must be a number from 0 to %d", text, MaxLogLines)
	}
	return n, nil
}

func (a api) prune(c call) (any, error) {
	confirm, err := boolParameter(c, "confirm")
	if err != nil {
		return nil, err
	}
	return a.backend.Prune(c.Context(), confirm)
}

func (a api) status(call) (any, error) { return a.backend.Status(), nil }

func (a api) version(call) (any, error) {
	return version.Info{
		GitVersion: a.backend.Status().Version,
		GoVersion:  runtime.Version(),
		Compiler:   runtime.Compiler,
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}, nil
}

func boolParameter(c call, name string) (bool, error) {
	text := c.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, badRequest("%s is %q: it must be true or false", name, text)
	}
	return value, nil
}
