// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/muxlet/muxlet/observe"
)

// answered is what the daemon says of a report that needs no second try.
const answered = "ok\n"

// errNotTaken says that the daemon could not handle a report now.
var errNotTaken = errors.New("the daemon did not take the report")

// Send gives one report to the daemon that listens on the socket and waits for its
// answer until the deadline. After an error it may have been handled nevertheless.
func Send(socket string, r observe.Report, deadline time.Time) error {
	line, err := encodeLine(r)
	if err != nil {
		return err
	}
	dialer := net.Dialer{Deadline: deadline}
	conn, err := dialer.Dial("unix", socket)
	if err != nil {
		return fmt.Errorf("send report: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("send report: %w", err)
	}
	if _, err := conn.Write(line); err != nil {
		return fmt.Errorf("send report: %w", err)
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	switch {
	case answer == answered:
		return nil
	case err != nil:
		return fmt.Errorf("wait for the answer to a report: %w", err)
	}
	return errNotTaken
}
