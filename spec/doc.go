// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package spec says what is wanted: the kinds of API group muxlet.dev, how a
// document is decoded, defaulted and validated, and the words (conditions and
// reasons) in which everything else answers. It is pure: it reads no file,
// asks no process and knows no clock.
//
// +kubebuilder:object:generate=true
// +groupName=muxlet.dev
package spec
