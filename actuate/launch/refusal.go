// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/muxlet/muxlet/spec"
)

// execFault says why the system refused to execute the program. What only a
// change of the program or of its interpreter can mend, and what the daemon can
// see mended, is told apart from what trying again may mend.
func execFault(program string, err error) *fault {
	f := &fault{reason: spec.ReasonExecFailed, lookedFor: program}
	why := fmt.Sprintf("%v; try it in a shell", err)
	switch {
	case errors.Is(err, syscall.E2BIG):
		why = "its arguments and environment are larger than the system takes; put long text into a file"
	case errors.Is(err, syscall.ENOEXEC):
		f.reason = spec.ReasonCommandNotExecutable
		why = unknownFormat(program)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		why = "permission was denied; look at its permissions, at those of the interpreter in its first line, and for a file system mounted noexec"
		if i := interpreterOf(program); i != "" && executable(i) != nil {
			f.reason, f.file = spec.ReasonCommandNotExecutable, i
			why = fmt.Sprintf("permission was denied: the interpreter %s in its first line cannot be executed (%v); correct that line, or mend the interpreter", i, executable(i))
		}
	case errors.Is(err, syscall.ETXTBSY):
		why = "it is being written; wait until that is complete"
	case errors.Is(err, syscall.ENOENT):
		f.reason = spec.ReasonCommandNotExecutable
		why = f.noInterpreter(program)
	}
	f.message = fmt.Sprintf("The system refused to execute %s: %s.", program, why)
	return f
}

// noInterpreter: the program was there a moment ago, so that what is missing is
// what it names itself.
func (f *fault) noInterpreter(program string) (why string) {
	f.file = interpreterOf(program)
	if strings.HasSuffix(f.file, "\r") {
		return "its first line ends with a carriage return, so that the interpreter that it names does not exist; save it with Unix line ends"
	}
	if f.file != "" {
		return fmt.Sprintf("the interpreter that it names does not exist (%s, in its first line); install that, or correct the line", f.file)
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		f.reason = spec.ReasonExecFailed
		return "it was removed at this very moment; it is looked for again"
	}
	return "the interpreter that it names does not exist (its dynamic loader: it was built for another system); install it for this one"
}

// unknownFormat says what the program is if not executable here.
func unknownFormat(program string) (why string) {
	if machine := machineOf(program); machine != "" {
		return fmt.Sprintf("it was built for another processor (%s); install the one for this machine", machine)
	}
	return "it is not in a format that the system executes; a script needs a first line such as #!/bin/sh"
}

// machines are the processors of e_machine in elf(5) that a program may have been
// built for by mistake. debug/elf knows all of them, and would make each start of
// a launcher a third of a millisecond longer.
var machines = map[uint16]string{
	3: "386", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv", 258: "loongarch",
}

// machineOf is the processor that an ELF program was built for; empty for any
// other file.
func machineOf(program string) string {
	header := startOf(program, 20)
	if len(header) < 20 || string(header[:4]) != "\x7fELF" {
		return ""
	}
	var order binary.ByteOrder = binary.LittleEndian
	if header[5] == 2 {
		order = binary.BigEndian
	}
	number := order.Uint16(header[18:])
	if name := machines[number]; name != "" {
		return name
	}
	return fmt.Sprintf("ELF machine %d", number)
}

// startOf is the first n bytes of a file, or as many as can be read.
func startOf(path string, n int) []byte {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	start := make([]byte, n)
	n, _ = io.ReadFull(file, start)
	return start[:n]
}

// maxFirstLine is how much of a first line Linux reads.
const maxFirstLine = 256

// interpreterOf is the program in the first line of a script; empty for anything
// else.
func interpreterOf(program string) string {
	line, _, _ := bytes.Cut(startOf(program, maxFirstLine), []byte("\n"))
	rest, script := bytes.CutPrefix(line, []byte("#!"))
	words := bytes.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' })
	if !script || len(words) == 0 {
		return ""
	}
	return string(words[0])
}
