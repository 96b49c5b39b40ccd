# SPDX-License-Identifier: Apache-2.0
"""Runs the program `drover` for the tests beside this file, in pipes or in a pseudo-terminal."""
import contextlib
import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest
import uuid

LIMIT = 60.0  # seconds for any one run
program = ""  # set by main()


def main():
    """The main program of each test: FILE_test.py PATH_OF_DROVER [unittest's arguments]."""
    global program
    program = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(module="__main__")


def run(*args, **kwargs):
    """To its end, with everything captured."""
    return subprocess.run([program, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
                          **kwargs)


def wait_for(question):
    """Asks until the answer is true, and gives it."""
    end = time.monotonic() + LIMIT
    while not (answer := question()):
        if time.monotonic() > end:
            raise AssertionError(f"not so after {LIMIT} s")
        time.sleep(0.005)
    return answer


def marked_processes(mark):
    """Pids of the living processes that carry `mark` in their environment. A zombie has none, so it does not count."""
    pids = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                pids.append(int(folder.name))
    return pids


class Session:
    """The program as the leader of a new session whose terminal is a pty of the given width. Close it by `with`."""

    def __init__(self, columns, *args, environment=None):
        self.mark = "DROVER_CLI_TEST=" + uuid.uuid4().hex
        self.columns = columns
        self.output = b""
        name, value = self.mark.split("=")
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.settings = termios.tcgetattr(slave)
        self.slave = slave  # kept open, so that the terminal can be looked at when the program is gone
        self.process = subprocess.Popen(
            [program, *args], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", name: value, **(environment or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in marked_processes(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def read_until(self, condition):
        """Reads the terminal until condition(output so far) holds."""
        end = time.monotonic() + LIMIT
        while not condition(self.output):
            if time.monotonic() > end:
                raise AssertionError(f"not seen in {LIMIT} s; output so far: {self.output!r}")
            self._read(0.02)

    def type(self, keys):
        os.write(self.master, keys)

    def finish(self):
        """Reads to the end of the program, and gives its exit status: negative for a signal."""
        self.read_until(lambda _: self.process.poll() is not None)
        while self._read(0):
            pass
        return self.process.returncode

    def wait_until_alone(self, limit=2.0):
        """The processes that are left after `limit` seconds; [] as soon as there are none."""
        end = time.monotonic() + limit
        while (left := marked_processes(self.mark)) and time.monotonic() < end:
            time.sleep(0.01)
        return left

    def screen(self):
        """The lines that a terminal of that width would show at the end; raises when one ran over the edge."""
        return replay(self.output.decode(), self.columns)

    def _read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        self.output += os.read(self.master, 65536)
        return True


def replay(text, columns):
    """A terminal that knows printable characters, CR and LF, which is all that drover may use for progress."""
    lines, column = [""], 0
    for character in text:
        if character == "\r":
            column = 0
        elif character == "\n":
            lines.append("")
        elif character.isprintable():
            if column >= columns:
                raise AssertionError(f"a line is longer than {columns} columns: {lines[-1]!r}")
            lines[-1] = lines[-1][:column].ljust(column) + character + lines[-1][column + 1:]
            column += 1
        else:
            raise AssertionError(f"unexpected character {character!r}")
    return [line.rstrip() for line in lines]
