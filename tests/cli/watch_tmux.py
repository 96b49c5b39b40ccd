# SPDX-License-Identifier: Apache-2.0
"""A terminal for the tests of the live view: a tmux server of its own with one window, in which a shell runs."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

LIMIT = 60.0  # seconds for anything to appear
PROMPT = "ready> "


class Terminal:
    """Close it by `with`: the server and what runs in it are gone then."""

    def __init__(self, columns, rows, environment=None):
        self.folder = tempfile.mkdtemp(prefix="watch-tmux-")
        self.socket = os.path.join(self.folder, "socket")
        inherited = {name: value for name, value in os.environ.items() if name not in ("TMUX", "NO_COLOR", "LINES", "COLUMNS")}
        self.environment = {**inherited, "HISTFILE": "/dev/null", "LC_ALL": "C.UTF-8", **(environment or {})}
        rc = pathlib.Path(self.folder) / "rc"
        rc.write_text(f"PS1='{PROMPT}'\n")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  f"exec bash --rcfile {rc} -i")
        try:
            self.wait_for(r"(?m)^ready> *$")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pid = int(self.show("#{pid}"))
        shell = int(self.show("#{pane_pid}"))
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False, capture_output=True)
        wait_until(lambda: not alive(pid) and not alive(shell))
        shutil.rmtree(self.folder)

    def tmux(self, *args):
        result = subprocess.run(["tmux", "-S", self.socket, *args], capture_output=True, text=True, env=self.environment,
                                timeout=LIMIT, check=False)
        if result.returncode != 0:
            raise AssertionError(f"tmux {args}: {result.stderr}")
        return result.stdout

    def show(self, what):
        return self.tmux("display-message", "-p", what).strip()

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def lines(self):
        return self.screen().split("\n")

    def run(self, command):
        """Types a command line."""
        self.tmux("send-keys", "-l", command)
        self.press("Enter")

    def press(self, *keys):
        """By tmux' names: Enter, Down, C-z; or characters."""
        self.tmux("send-keys", *keys)

    def wait_for(self, pattern):
        """Until the screen has something like that; gives the match."""
        return wait_until(lambda: re.search(pattern, self.screen()), lambda: f"{pattern!r} not on the screen:\n{self.screen()}")

    def wait_until_gone(self, pattern):
        wait_until(lambda: not re.search(pattern, self.screen()), lambda: f"{pattern!r} still on the screen:\n{self.screen()}")

    def answer(self, command):
        """What a command prints, in the shell."""
        path = pathlib.Path(self.folder) / "answer"
        path.unlink(missing_ok=True)
        self.run(f"{command} > {path}.part 2>&1; mv {path}.part {path}")
        wait_until(path.exists, lambda: f"no answer to {command!r}:\n{self.screen()}")
        return path.read_text()

    def state(self):
        """What the program must leave as it was: the terminal's mode, the cursor, which screen is shown."""
        return (self.answer("stty -a"), self.show("#{cursor_flag} #{alternate_on} #{wrap_flag} #{keypad_cursor_flag}"))

    def child(self):
        """The pid of what runs in the shell."""
        path = pathlib.Path(f"/proc/{self.show('#{pane_pid}')}/task/{self.show('#{pane_pid}')}/children")
        return int(wait_until(lambda: path.read_text().split())[0])


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(question, otherwise=lambda: "not so in time"):
    end = time.monotonic() + LIMIT
    while not (answer := question()):
        if time.monotonic() > end:
            raise AssertionError(otherwise())
        time.sleep(0.02)  # between two questions, not for something to happen
    return answer
