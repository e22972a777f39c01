// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package server gives the reconciler a voice: a Kubernetes-shaped API on a
// Unix socket that only its owner can open, and the client for it. It answers
// every request, also a wrong one, with an object or a metav1.Status. It never
// decides, waits for, or stores anything: whatever is asked of it is handed to
// a Backend that returns at once.
package server
