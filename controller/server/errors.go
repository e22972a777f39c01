// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// The stable reasons of errors. NotFound, Conflict, Forbidden and Invalid are
// those of Kubernetes.
const (
	// ReasonNotFound (404): there is no such session, turn or client class.
	ReasonNotFound = metav1.StatusReasonNotFound
	// ReasonAlreadyRunning (409): the session has a client.
	ReasonAlreadyRunning metav1.StatusReason = "AlreadyRunning"
	// ReasonWorkspaceMissing (409): the workspace directory does not exist.
	ReasonWorkspaceMissing metav1.StatusReason = "WorkspaceMissing"
	// ReasonSuspended (409): spec.suspend holds the session down.
	ReasonSuspended metav1.StatusReason = "Suspended"
	// ReasonConflict (409): something else holds what is needed.
	ReasonConflict = metav1.StatusReasonConflict
	// ReasonForbidden (403): a file may not be written.
	ReasonForbidden = metav1.StatusReasonForbidden
	// ReasonInvalid (422): the document in force is not valid.
	ReasonInvalid = metav1.StatusReasonInvalid
	// ReasonTmuxUnavailable (503): tmux could not be asked.
	ReasonTmuxUnavailable metav1.StatusReason = "TmuxUnavailable"
	// ReasonProvisioningFailed (503): the client could not be brought up; trying
	// again can help.
	ReasonProvisioningFailed metav1.StatusReason = "ProvisioningFailed"
	// ReasonDeadlineExceeded (504): it did not happen in time.
	ReasonDeadlineExceeded metav1.StatusReason = "DeadlineExceeded"
)

// statusCodes has the HTTP code of each reason; those missing are 500.
var statusCodes = map[metav1.StatusReason]int32{
	metav1.StatusReasonBadRequest:            http.StatusBadRequest,
	metav1.StatusReasonExpired:               http.StatusGone,
	metav1.StatusReasonRequestEntityTooLarge: http.StatusRequestEntityTooLarge,
	ReasonForbidden:                          http.StatusForbidden,
	ReasonNotFound:                           http.StatusNotFound,
	metav1.StatusReasonMethodNotAllowed:      http.StatusMethodNotAllowed,
	ReasonAlreadyRunning:                     http.StatusConflict,
	ReasonWorkspaceMissing:                   http.StatusConflict,
	ReasonSuspended:                          http.StatusConflict,
	ReasonConflict:                           http.StatusConflict,
	ReasonInvalid:                            http.StatusUnprocessableEntity,
	ReasonTmuxUnavailable:                    http.StatusServiceUnavailable,
	ReasonProvisioningFailed:                 http.StatusServiceUnavailable,
	metav1.StatusReasonServiceUnavailable:    http.StatusServiceUnavailable,
	ReasonDeadlineExceeded:                   http.StatusGatewayTimeout,
}

// NewError makes the error of a stable reason. Name is the session's, empty
// when the error is about none. Message is one sentence for a person: the
// reason and the next step. A message that does not name the session gets it
// put in front.
func NewError(reason metav1.StatusReason, name, message string) *apierrors.StatusError {
	return newError(reason, resourceSessions, "session", name, message)
}

func newError(reason metav1.StatusReason, resource, what, name, message string) *apierrors.StatusError {
	code, known := statusCodes[reason]
	if !known {
		code = http.StatusInternalServerError
	}
	if quoted := strconv.Quote(name); name != "" && !strings.Contains(message, quoted) {
		message = what + " " + quoted + ": " + message
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     code,
		Reason:   reason,
		Message:  message,
	}
	if name != "" {
		status.Details = &metav1.StatusDetails{Group: spec.GroupVersion.Group, Kind: resource, Name: name}
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// NewNotFound is the error about a session that does not exist.
func NewNotFound(name string) *apierrors.StatusError {
	return NewError(ReasonNotFound, name, fmt.Sprintf("session %q not found: \"muxlet get\" lists those that exist", name))
}

// ReasonOf is the stable reason of err, empty when it has none.
func ReasonOf(err error) metav1.StatusReason {
	return apierrors.ReasonForError(err)
}

// statusOf is err as it is answered.
func statusOf(err error) metav1.Status {
	if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
		status := known.ErrStatus
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		if status.Code < 400 {
			status.Code = http.StatusInternalServerError
		}
		return status
	}
	return NewError(metav1.StatusReasonInternalError, "", err.Error()).ErrStatus
}

func badRequest(format string, args ...any) error {
	return NewError(metav1.StatusReasonBadRequest, "", fmt.Sprintf(format, args...))
}
