// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/muxlet/muxlet/spec"
)

// CreateTurn sends a turn. When the connection breaks (ErrBroken) it may have been made:
// with the same spec.TurnRequestAnnotation it can be sent again without being made twice.
func (c *Client) CreateTurn(ctx context.Context, turn *spec.Turn) (*spec.Turn, error) {
	// JSON would have another character for each byte that is none.
	if !utf8.ValidString(turn.Spec.Prompt) {
		return nil, NewTurnError(ReasonInvalid, "", "the prompt is not UTF-8: convert the text")
	}
	asked := *turn
	asked.TypeMeta = turnTypeMeta
	body, err := encode(asked)
	if err != nil {
		return nil, err
	}
	var made spec.Turn
	return &made, c.send(ctx, http.MethodPost, turnsPath, nil, body, &made)
}

// Turn is one turn, with its prompt as long as that is kept.
func (c *Client) Turn(ctx context.Context, name string) (*spec.Turn, error) {
	var turn spec.Turn
	return &turn, c.onTurn(ctx, http.MethodGet, name, "", nil, &turn)
}

// Turns lists the turns that match the selectors, without their prompts; empty: all.
func (c *Client) Turns(ctx context.Context, labelSelector, fieldSelector string) (*spec.TurnList, error) {
	var list spec.TurnList
	return &list, c.call(ctx, http.MethodGet, turnsPath, selection(labelSelector, fieldSelector), &list)
}

// TurnsOf is the field selector of the turns of one session; none for an empty name.
func TurnsOf(session string) string {
	if session == "" {
		return ""
	}
	return fields.OneTermEqualSelector(fieldSession, session).String()
}

// CancelTurn takes a turn back before its hand-over.
func (c *Client) CancelTurn(ctx context.Context, name string) (*spec.Turn, error) {
	var turn spec.Turn
	return &turn, c.onTurn(ctx, http.MethodPost, name, "cancel", nil, &turn)
}

// DeleteTurn forgets a turn that is over.
func (c *Client) DeleteTurn(ctx context.Context, name string) error {
	return c.onTurn(ctx, http.MethodDelete, name, "", nil, nil)
}

// Answer is the last lines of what the client has answered to a turn. It is NotFound where
// the class does not give that.
func (c *Client) Answer(ctx context.Context, name string, lines int) (string, error) {
	var text plainText
	err := c.onTurn(ctx, http.MethodGet, name, "answer", query("tailLines", strconv.Itoa(lines)), &text)
	return string(text), err
}

// Attach asks for a client to attach to.
func (c *Client) Attach(ctx context.Context, name string) error {
	return c.onSession(ctx, http.MethodPost, name, "attach", nil, nil)
}

// FollowTurns is FollowSessions for turns, which come without their prompts.
func (c *Client) FollowTurns(ctx context.Context, labelSelector, fieldSelector string, f Follower[spec.Turn]) error {
	return follow(ctx, c, turnsPath, selection(labelSelector, fieldSelector), f, func(ctx context.Context, parameters url.Values) ([]spec.Turn, string, error) {
		var list spec.TurnList
		err := c.call(ctx, http.MethodGet, turnsPath, parameters, &list)
		return list.Items, list.ResourceVersion, err
	})
}

// FollowNewTurns is FollowTurns for one who waits for turns that are sent from now on, of
// one session or, for an empty name, of any. What is over already is not listed, at the
// beginning and after a gap: a turn that is over after a gap is told as Deleted.
func (c *Client) FollowNewTurns(ctx context.Context, session string, f Follower[spec.Turn]) error {
	unfinished := fields.OneTermEqualSelector(fieldFinished, "")
	if session != "" {
		unfinished = fields.AndSelectors(unfinished, fields.OneTermEqualSelector(fieldSession, session))
	}
	return follow(ctx, c, turnsPath, selection("", TurnsOf(session)), f, func(ctx context.Context, _ url.Values) ([]spec.Turn, string, error) {
		list, err := c.Turns(ctx, "", unfinished.String())
		return list.Items, list.ResourceVersion, err
	})
}

func (c *Client) onTurn(ctx context.Context, method, name, subresource string, parameters url.Values, into any) error {
	if !sendable(name) {
		return NewTurnNotFound(name)
	}
	path := turnsPath + "/" + name
	if subresource != "" {
		path += "/" + subresource
	}
	return c.call(ctx, method, path, parameters, into)
}
