// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// diffPath takes a DiffRequest by POST and answers with a DiffResult. It changes
// nothing.
const diffPath = groupPath + "/diff"

// maxDiffBodyBytes bounds the files of one request.
const maxDiffBodyBytes = 64 << 20

// DiffRequest is what manifests would say.
type DiffRequest struct {
	// Files as they would be written. Without any, what the files say now is compared with
	// what the clients that run were started from.
	Files []DiffFile `json:"files,omitempty"`
}

// DiffFile is one manifest.
type DiffFile struct {
	// Path as the daemon reads it.
	Path string `json:"path"`
	// Content of the whole file.
	Content []byte `json:"content"`
}

// DiffResult is what would be different, by name.
type DiffResult struct {
	Sessions []SessionDiff `json:"sessions"`
	Classes  []ClassDiff   `json:"classes,omitempty"`
}

// SessionDiff is what would be different of one session.
type SessionDiff struct {
	Name string `json:"name"`
	// File and Line of its document, or of the last one.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// InForce is what counts now and Wanted what would: name, labels and spec, with
	// defaults. Nil for none.
	InForce *spec.Session `json:"inForce,omitempty"`
	Wanted  *spec.Session `json:"wanted,omitempty"`
	// Effect on its client and its conversation.
	Effect spec.Effect `json:"effect"`
}

// ClassDiff is what would be different of one client class.
type ClassDiff struct {
	Name    string            `json:"name"`
	InForce *spec.ClientClass `json:"inForce,omitempty"`
	Wanted  *spec.ClientClass `json:"wanted,omitempty"`
}

func (a api) diff(c call) (any, error) {
	data, err := io.ReadAll(c.Body)
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, NewError(metav1.StatusReasonRequestEntityTooLarge, "", fmt.Sprintf("the files have more than %d bytes in all: compare fewer at a time", tooLong.Limit))
	}
	if err != nil {
		return nil, badRequest("the files could not be read: %v", err)
	}
	var request DiffRequest
	if err := json.Unmarshal(data, &request); err != nil {
		return nil, badRequest("the request cannot be decoded: %v", err)
	}
	return a.backend.Diff(c.Context(), request)
}

// Diff tells what would be different, and what that means for each session.
func (c *Client) Diff(ctx context.Context, request DiffRequest) (DiffResult, error) {
	var result DiffResult
	body, err := json.Marshal(request)
	if err != nil {
		return result, fmt.Errorf("encode the request: %w", err)
	}
	return result, c.send(ctx, http.MethodPost, diffPath, nil, body, &result)
}
