// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muxlet/muxlet/spec"
)

// TurnBackend is what the API speaks for where turns are concerned, under the rules of
// Backend.
type TurnBackend interface {
	// Turns lists all turns by session and number, without their prompts, as of the list's
	// resourceVersion. Those in Journals have no prompts either.
	Turns() spec.TurnList
	// Turn is one of them, with its prompt as long as that is kept. Error: NotFound.
	Turn(name string) (spec.Turn, error)
	// CreateTurn puts a turn into the queue of its session. Of t spec and the annotation
	// spec.TurnRequestAnnotation alone count. When it returns without an error, the turn is
	// on disk. A turn of the session that has the same annotation already is the answer, and
	// existed is true; nothing is made then. Errors: NotFound about the session, Suspended,
	// Invalid for a prompt or a deadline that cannot be, or a session without a valid document;
	// ServiceUnavailable when too many turns wait; ProvisioningFailed when it could not be
	// written.
	CreateTurn(ctx context.Context, t spec.Turn) (made spec.Turn, existed bool, err error)
	// CancelTurn takes a turn back that nothing was handed over of. One that is cancelled
	// already is the answer. Errors: NotFound, Conflict.
	CancelTurn(ctx context.Context, name string) (spec.Turn, error)
	// DeleteTurn forgets a turn that is over. Errors: NotFound, Conflict for one that is not.
	DeleteTurn(ctx context.Context, name string) error
	// Answer is the last lines of what the client has answered to a turn. Error: NotFound,
	// when the class does not give it or there is none, too.
	Answer(ctx context.Context, name string, lines int) (string, error)
	// Attach records that a person wants to attach to a client: a demand where there is
	// none. It never makes a session. Errors: those of Resume but AlreadyRunning.
	Attach(ctx context.Context, name string) error
}

const (
	resourceTurns = "turns"
	turnsPath     = groupPath + "/namespaces/default/" + resourceTurns
	allTurnsPath  = groupPath + "/" + resourceTurns
	fieldSession  = "spec.sessionName"
	fieldFinished = "status.finishedAt"
)

var (
	turnTypeMeta     = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindTurn}
	turnListTypeMeta = metav1.TypeMeta{APIVersion: spec.GroupVersion.String(), Kind: spec.KindTurn + "List"}
)

func (a api) turnRoutes() []route {
	return []route{
		newRoute(turnsPath, map[string]verb{http.MethodGet: a.listTurns, http.MethodPost: a.createTurn}),
		newRoute(allTurnsPath, map[string]verb{http.MethodGet: a.listTurns}),
		newRoute(turnsPath+"/"+nameSegment, map[string]verb{http.MethodGet: a.getTurn, http.MethodDelete: a.deleteTurn}),
		newRoute(turnsPath+"/"+nameSegment+"/cancel", map[string]verb{http.MethodPost: a.cancelTurn}),
		newRoute(turnsPath+"/"+nameSegment+"/answer", map[string]verb{http.MethodGet: a.answerOfTurn}),
	}
}

// NewTurnError makes the error of a stable reason about a turn, as NewError does about a
// session. The name is empty for one that was not made.
func NewTurnError(reason metav1.StatusReason, name, message string) *apierrors.StatusError {
	return newError(reason, resourceTurns, "turn", name, message)
}

// NewTurnNotFound is the error about a turn that does not exist.
func NewTurnNotFound(name string) *apierrors.StatusError {
	return NewTurnError(ReasonNotFound, name, fmt.Sprintf("turn %q not found: \"muxlet get turns\" lists those that are kept", name))
}

func turnFields(t *spec.Turn) fields.Set {
	finished := ""
	if at := t.Status.FinishedAt; at != nil {
		finished = at.UTC().Format(time.RFC3339)
	}
	return fields.Set{
		"metadata.name":      t.Name,
		"metadata.namespace": spec.Namespace,
		fieldSession:         t.Spec.SessionName,
		"status.phase":       string(spec.DisplayTurnStatus(t)),
		// Empty for a turn that is not over.
		fieldFinished: finished,
	}
}

func (s selectors) matchesTurn(o Object) bool {
	turn, ok := o.(*spec.Turn)
	return ok && s.labels.Matches(labels.Set(turn.Labels)) && (s.fields.Empty() || s.fields.Matches(turnFields(turn)))
}

func (a api) listTurns(c call) (any, error) {
	selector, err := selectorsOf(c, turnFields(&spec.Turn{}))
	if err != nil {
		return nil, err
	}
	if isWatch(c) {
		return a.watch(c, a.backend.Journals().Turns, selector.matchesTurn, func() Object {
			return &spec.Turn{TypeMeta: turnTypeMeta}
		})
	}
	all := a.backend.Turns()
	list := spec.TurnList{TypeMeta: turnListTypeMeta, ListMeta: all.ListMeta, Items: []spec.Turn{}}
	for _, turn := range all.Items {
		if selector.matchesTurn(&turn) {
			list.Items = append(list.Items, served(turn))
		}
	}
	return list, asOf(c, a.backend.Journals().Turns, list.ResourceVersion)
}

// served is a turn as it is answered where nobody has asked for its prompt.
func served(t spec.Turn) spec.Turn {
	t.TypeMeta, t.Spec.Prompt = turnTypeMeta, ""
	return t
}

func (a api) getTurn(c call) (any, error) {
	turn, err := a.backend.Turn(c.name)
	turn.TypeMeta = turnTypeMeta
	return turn, err
}

// createTurn answers 201 for a turn that was made, and 200 for one that was made by the
// same request when it came before.
func (a api) createTurn(c call) (any, error) {
	if c.URL.Query().Has("dryRun") {
		return nil, badRequest("a dry run of a turn is not possible: nothing was sent")
	}
	asked, err := readTurn(c)
	if err != nil {
		return nil, err
	}
	made, existed, err := a.backend.CreateTurn(c.Context(), asked)
	switch {
	case err != nil:
		return nil, err
	case existed:
		return served(made), nil
	}
	return created{served(made)}, nil
}

func (a api) cancelTurn(c call) (any, error) {
	turn, err := a.backend.CancelTurn(c.Context(), c.name)
	return served(turn), err
}

func (a api) deleteTurn(c call) (any, error) {
	options, err := deleteOptions(c)
	if err != nil {
		return nil, err
	}
	turn, err := a.backend.Turn(c.name)
	if err != nil {
		return nil, err
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != turn.UID {
		return nil, NewTurnError(ReasonConflict, c.name,
			fmt.Sprintf("turn %q has uid %s, not %s: look at it again", c.name, turn.UID, *p.UID))
	}
	if err := a.backend.DeleteTurn(c.Context(), c.name); err != nil {
		return nil, err
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Group: spec.GroupVersion.Group, Kind: resourceTurns, Name: c.name, UID: turn.UID},
	}, nil
}

func (a api) answerOfTurn(c call) (any, error) {
	lines, err := tailLines(c)
	if err != nil {
		return nil, err
	}
	answer, err := a.backend.Answer(c.Context(), c.name, lines)
	if answer != "" && !strings.HasSuffix(answer, "\n") {
		answer += "\n"
	}
	return plainText(answer), err
}

func (a api) attach(c call) (any, error) {
	return a.intent(c, func(ctx context.Context) error { return a.backend.Attach(ctx, c.name) })
}
