// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Command mockmodel stands in for the model of a coding agent: it speaks Anthropic's
// Messages and OpenAI's Responses on loopback, as far as the clients need it. To
// each prompt it answers how many prompts it was sent and which was the first,
// turns=2 first=…, so that a test can see which conversation a client goes on with.
//
// PUT /control says how it behaves from then on (see Control), GET /control what
// was said, GET /requests what it was asked. It never checks a key, never keeps or
// shows one, and never connects to anything.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mockmodel", flag.ContinueOnError)
	flags.SetOutput(out)
	addr := flags.String("addr", "127.0.0.1:0", "listen on this `address`, which is on loopback")
	addrFile := flags.String("addr-file", "", "write the address to this `file` once it is listened on")
	saveDir := flags.String("save", "", "write the body of each request into this `folder`, to see what a new version of a client sends")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read the command line: %w", err)
	}
	listener, err := listen(*addr)
	if err != nil {
		return err
	}
	if err := announce(*addrFile, listener.Addr().String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	_, _ = fmt.Fprintln(out, "Listening on", listener.Addr())
	return serve(ctx, listener, NewServer(*saveDir))
}

// listen on loopback only: whoever reaches the control switches what all get.
func listen(addr string) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", addr, err)
	}
	if !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%s is not on loopback: give 127.0.0.1:0 for any free port", addr)
	}
	listener, err := net.ListenTCP("tcp", tcp)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return listener, nil
}

// announce writes the address in one step: who sees the file sees all of it.
func announce(file, addr string) error {
	if file == "" {
		return nil
	}
	temporary := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".tmp")
	if err := os.WriteFile(temporary, []byte(addr+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the address: %w", err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return fmt.Errorf("write the address: %w", err)
	}
	return nil
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	// What hangs on purpose ends with the server.
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
