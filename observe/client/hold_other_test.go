// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package client

func hold(string) {}
