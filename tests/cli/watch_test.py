#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: watch_test.py PATH_OF_DROVER FOLDER_OF_THE_FALSE_DRIVER: `drover inspect --watch` in tmux."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import driver
from watch_tmux import Terminal, alive, wait_until

fake_folder = sys.argv.pop(2)
SIZES = ((80, 24), (200, 50))
HEAD = r"\A drover inspect  "
PROMPT_AGAIN = r"ready>\s*\Z"


def watch(*args):
    return " ".join([driver.program, "inspect", "--watch", *args])


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="watch-")
        self.addCleanup(shutil.rmtree, self.folder)

    def with_driver(self, situation):
        path = pathlib.Path(self.folder) / "situation"
        path.write_text(situation)
        return {"LD_LIBRARY_PATH": fake_folder, "DROVER_FAKE_NVML": str(path)}


class Screen(Case):
    def test_situations_at_both_sizes(self):
        shown = {"spinning-odd-rank-out": [r"(?m)^ WARNING: GPU 0 SPINNING", r"(?m)^   3 \[ +\]   0%", r"(?m)^ +4003 user1000"],
                 "gpu-lost": [r"(?m)^ CRITICAL: GPU 1 FAULT", r"(?m)^   1 the GPU is lost +!! FAULT", r"(?m)^>CRIT FAULT"],
                 "healthy-node": [r"(?m)^ OK: nothing is wrong", r"(?m)^ none"],
                 "no-gpu": [r"(?m)^ OK: .*no GPU"],
                 "unknown-mig": [r"(?m)^ UNKNOWN: ", r"(?m)^>UNKN"]}
        for columns, rows in SIZES:
            with Terminal(columns, rows) as terminal:
                for demo, patterns in shown.items():
                    with self.subTest(demo=demo, columns=columns):
                        terminal.run(watch("--demo", demo))
                        for pattern in [HEAD + "demo  DEMO " + demo, *patterns, r"(?m)^ q quit .* help"]:
                            terminal.wait_for(pattern)
                        self.assertRegex(terminal.lines()[rows - 1], r"^ q quit")
                        terminal.press("q")
                        terminal.wait_for(PROMPT_AGAIN)

    def test_this_machine_and_that_it_goes_on(self):
        with Terminal(80, 24) as terminal:
            terminal.run(watch("--interval", "0.2s"))
            first = int(terminal.wait_for(r"watched .*, (\d+) looks")[1])
            wait_until(lambda: int(terminal.wait_for(r"watched .*, (\d+) looks")[1]) >= first + 5)
            terminal.wait_for(r"(?m)^ CPU \[[| ]{20}\] +\d+%  load")
            terminal.wait_for(r"(?m)^ Mem \[[| ]{20}\] +\d+%  ")
            terminal.press("q")
            terminal.wait_for(PROMPT_AGAIN)

    def test_enter_shows_the_evidence(self):
        for columns, rows in SIZES:
            with self.subTest(columns=columns), Terminal(columns, rows) as terminal:
                terminal.run(watch("--demo", "spinning-odd-rank-out"))
                terminal.wait_for(r"(?m)^>WARN SPINNING")
                terminal.press("Enter")
                for pattern in (r"WARN  SPINNING, NO PROGRESS  \(R6", r"(?m)^ because +- ", r"(?m)^ not because", r"(?m)^ do +1\. "):
                    terminal.wait_for(pattern)
                terminal.press("End")
                terminal.wait_for(r"(?m)^ limits +r6\.")
                terminal.press("Escape")
                terminal.wait_for(r"(?m)^>WARN SPINNING")
                terminal.press("Tab", "Enter")
                terminal.wait_for(r"(?m)^ Process 4000")
                terminal.press("Enter", "BTab", "BTab", "Enter")
                terminal.wait_for(r"(?m)^ GPU 0  NVIDIA")
                terminal.press("BSpace", "h")
                terminal.wait_for(r"(?m)^ Keys")

    def test_the_selection_moves(self):
        with Terminal(80, 24) as terminal:
            terminal.run(watch("--demo", "spinning-odd-rank-out"))
            terminal.wait_for(r"(?m)^>WARN .* pid 4000")
            terminal.press("Down", "j")
            terminal.wait_for(r"(?m)^>WARN .* pid 4002")
            terminal.press("Down", "Down", "Down")
            terminal.wait_for(r"(?m)^> +4001 ")
            terminal.press("End")
            terminal.wait_for(r"(?m)^> +4003 ")
            terminal.press("Home", "Up", "k")
            terminal.wait_for(r"(?m)^>WARN .* pid 4002")

    def test_sort_keys(self):
        def pids(terminal):
            return [int(pid) for pid in re.findall(r"(?m)^[ >] +(400\d) user", terminal.screen())]

        with Terminal(80, 24) as terminal:
            terminal.run(watch("--demo", "spinning-odd-rank-out"))
            terminal.wait_for(r"\*GPU")
            self.assertEqual(pids(terminal), [4000, 4001, 4002, 4003])
            terminal.press("p", "p")
            terminal.wait_for(r"\^pid")
            self.assertEqual(pids(terminal), [4003, 4002, 4001, 4000])
            terminal.press("u", "u")
            terminal.wait_for(r"\^GPU")
            self.assertEqual(pids(terminal)[0], 4003)
            for key, mark in (("m", r"\*VRAM"), ("c", r"\*CPU"), ("a", r"\*age"), ("p", r"\*pid")):
                terminal.press(key)
                terminal.wait_for(mark)

    def test_resizing_draws_anew(self):
        with Terminal(80, 24) as terminal:
            terminal.run(watch("--demo", "spinning-odd-rank-out", "--interval", "1h"))
            terminal.wait_for(r"(?m)^>WARN")
            for columns, rows in ((200, 50), (100, 30), (20, 5), (3, 2), (1, 1), (40, 12), (80, 24)):
                terminal.tmux("resize-window", "-x", str(columns), "-y", str(rows))
                last = r"q" if columns < 8 or rows < 8 else r"^ q quit"
                wait_until(lambda: rows < 8 or re.search(last, terminal.lines()[rows - 1]), terminal.screen)
            terminal.wait_for(r"(?m)^   0 \[\|{10}\] 100% .*SPINNING")
            terminal.press("q")
            terminal.wait_for(PROMPT_AGAIN)

    def test_a_tiny_window_from_the_start(self):
        with Terminal(20, 5) as terminal:
            terminal.run(watch("--demo", "gpu-lost"))
            terminal.wait_for(r">CRIT FAULT")
            terminal.press("Enter")
            terminal.wait_for(r"CRIT  FAULT")
            terminal.press("PageDown", "q")
            terminal.wait_for(PROMPT_AGAIN)


class Leaving(Case):
    def check(self, end, code, *args, environment=None):
        """`end` ends it; the terminal must be as before, and the shell see `code`."""
        with Terminal(80, 24, environment) as terminal:
            terminal.run("clear; echo this was here")
            terminal.wait_for(r"(?m)^this was here")
            before = terminal.state()
            screen = terminal.screen()
            terminal.run(watch(*args))
            terminal.wait_for(HEAD)
            self.assertNotIn("this was here", terminal.screen())
            terminal.wait_for(r"watched|Looking")
            end(terminal)
            terminal.wait_for(PROMPT_AGAIN)
            terminal.run('echo "code $?"')
            terminal.wait_for(rf"(?m)^code {code}$")
            self.assertTrue(terminal.screen().startswith(screen.rstrip()), terminal.screen())
            self.assertEqual(terminal.state(), before)

    def test_q(self):
        self.check(lambda terminal: terminal.press("q"), 0, "--demo", "idle-job")

    def test_control_c(self):
        self.check(lambda terminal: terminal.press("C-c"), 130)

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal=number):
                self.check(lambda terminal, number=number: os.kill(terminal.child(), number), 128 + number)

    def test_an_error_while_it_runs(self):
        path = pathlib.Path(self.folder) / "history"

        def end(terminal):
            path.unlink()
            path.mkdir()
            terminal.press("q")  # the history is saved then, which fails

        self.check(end, 2, "--history", str(path))

    def test_control_z_and_back(self):
        with Terminal(80, 24) as terminal:
            before = terminal.state()
            terminal.run(watch("--demo", "idle-job"))
            terminal.wait_for(r"(?m)^>WARN IDLE")
            for _ in range(2):
                terminal.press("C-z")
                terminal.wait_for(r"Stopped")
                self.assertEqual(terminal.state(), before)
                terminal.run("clear; fg")
                terminal.wait_for(HEAD + r"[^\0]*\n>WARN IDLE")
            terminal.press("C-z")
            terminal.wait_for(r"Stopped")
            terminal.run("clear; bg")
            wait_until(lambda: "Stopped" in terminal.answer("jobs"))  # it does not take the screen in the background
            terminal.press("C-l")
            self.assertEqual(terminal.state(), before)
            terminal.run("clear; kill %1; wait; jobs; echo over")
            terminal.wait_for(r"(?m)^over")
            self.assertEqual(terminal.state(), before)

    def test_a_stop_that_nobody_asked_it_about(self):
        with Terminal(80, 24) as terminal:
            terminal.run(watch("--demo", "idle-job"))
            terminal.wait_for(r"(?m)^>WARN IDLE")
            os.kill(terminal.child(), signal.SIGSTOP)
            terminal.wait_for(r"Stopped")
            terminal.run("clear; fg")
            terminal.wait_for(HEAD + r"[^\0]*\n>WARN IDLE")
            terminal.press("q")
            terminal.wait_for(PROMPT_AGAIN)


    def test_the_background_is_not_drawn_in(self):
        with Terminal(80, 24) as terminal:
            before = terminal.state()
            terminal.run(watch("--demo", "idle-job", "--interval", "0.1s"))
            terminal.wait_for(r"(?m)^>WARN IDLE")
            os.kill(terminal.child(), signal.SIGSTOP)
            terminal.wait_for(r"Stopped")
            terminal.run("clear; bg")
            wait_until(lambda: "Stopped" in terminal.answer("jobs"))  # as by SIGTTOU
            self.assertNotRegex(terminal.screen(), HEAD)
            terminal.run("clear; fg")
            terminal.wait_for(HEAD + r"[^\0]*\n>WARN IDLE")
            terminal.press("q")
            terminal.wait_for(PROMPT_AGAIN)
            self.assertEqual(terminal.state(), before)


class Robust(Case):
    def test_keys_are_heard_while_the_driver_hangs(self):
        environment = self.with_driver("gpu 0\ngpu 1 stuck=nvmlDeviceGetPowerUsage\n")
        with Terminal(80, 24, environment) as terminal:
            terminal.run(watch("--deadline", "20s"))
            terminal.wait_for(r"this look has taken \d+s so far")
            begin = time.monotonic()
            terminal.press("h")
            terminal.wait_for(r"(?m)^ Keys")
            terminal.press("Escape")
            terminal.wait_for(r"Looking at this machine")
            pid = terminal.child()
            terminal.press("q")
            wait_until(lambda: not alive(pid))
            self.assertLess(time.monotonic() - begin, 10)
            terminal.wait_for(PROMPT_AGAIN)

    def test_a_gpu_that_hangs_has_its_line_and_the_others_go_on(self):
        environment = self.with_driver("gpu 0 power=100\ngpu 1 stuck=nvmlDeviceGetPowerUsage\n")
        with Terminal(80, 24, environment) as terminal:
            terminal.run(watch("--deadline", "1s", "--interval", "0.2s"))
            terminal.wait_for(r"(?m)^   1 does not answer \(in nvmlDeviceGetPowerUsage\) +!! FAULT")
            first = int(terminal.wait_for(r"(\d+) looks")[1])
            wait_until(lambda: int(terminal.wait_for(r"(\d+) looks")[1]) >= first + 5)
            terminal.press("q")
            terminal.wait_for(PROMPT_AGAIN)

    def test_a_driver_that_never_starts_delays_the_first_look_only(self):
        environment = self.with_driver("gpu 0\nhost hang=nvmlInit_v2\n")
        with Terminal(80, 24, environment) as terminal:
            terminal.run(watch("--deadline", "1s", "--interval", "0.2s"))
            terminal.wait_for(r"(?m)^ Note: .*did not answer")
            begin = time.monotonic()
            first = int(terminal.wait_for(r"(\d+) looks")[1])
            wait_until(lambda: int(terminal.wait_for(r"(\d+) looks")[1]) >= first + 10)
            self.assertLess(time.monotonic() - begin, 8)  # ten deadlines would be 10 s
            terminal.press("q")
            terminal.wait_for(PROMPT_AGAIN)

    def test_what_processes_call_themselves_cannot_reach_the_terminal(self):
        evil = "evil\x1b]0;owned\x07\x1b[2J\x1b[?1049l\r\n\u202e\u009b31m"
        process = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done", evil])
        try:
            environment = self.with_driver(f"gpu 0 name=\"{evil[:10]}\"\non 0 {process.pid} vram=3 sm=50\n")
            with driver.Session(200, "inspect", "--watch", "--interval", "0.2s", environment={**environment, "NO_COLOR": "1"}) as session:
                session.read_until(lambda output: output.count(b"evil\\x1b]0;owned") >= 1)
                session.type(b"\t\r")
                session.read_until(lambda output: b"command" in output and output.count(b"evil\\x1b") >= 2)
                session.type(b"q")
                self.assertEqual(session.finish(), 0)
                rest = re.sub(rb"\x1b\[(\?(1049|25|7)[hl]|H|2J|\d+;1H|[017]?m)", b"", session.output)
                rest = rest.replace(b"\x18", b"", 1)
                self.assertNotRegex(rest, rb"[^\x20-\x7e]")
        finally:
            process.kill()
            process.wait()

    def test_colours(self):
        for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            with driver.Session(80, "inspect", "--watch", "--demo", "idle-job", environment=environment) as session:
                session.read_until(lambda output: b"IDLE, HOLDS" in output)
                session.type(b"q")
                self.assertEqual(session.finish(), 0)
                self.assertEqual(re.search(rb"\x1b\[(1;)?3\dm", session.output) is not None, coloured)

    def test_frames_after_the_first_one_are_small(self):
        with driver.Session(80, "inspect", "--watch", "--demo", "healthy-node", "--interval", "0.1s") as session:
            session.read_until(lambda output: b"q quit" in output)
            first = len(session.output)
            session.read_until(lambda output: output.count(b"looks") >= 11)
            self.assertLess(len(session.output) - first, 10 * 400)
            session.type(b"q")
            self.assertEqual(session.finish(), 0)

    def test_a_terminal_that_is_gone_ends_it(self):
        with driver.Session(80, "inspect", "--watch") as session:
            session.read_until(lambda output: b"watched" in output)
            os.close(session.master)
            session.master = os.open("/dev/null", os.O_RDWR)
            wait_until(lambda: session.process.poll() is not None)
            self.assertEqual(session.process.returncode, -signal.SIGHUP)
            self.assertEqual(session.wait_until_alone(), [])

    def test_a_terminal_that_takes_nothing_does_not_keep_it(self):
        with driver.Session(200, "inspect", "--watch", "--interval", "0.05s") as session:
            session.read_until(lambda output: b"watched" in output)
            for _ in range(200):  # each one draws all of the screen; nobody reads it any more
                session.type(b"\x0c")
                time.sleep(0.005)  # so that they are not taken together
            session.process.send_signal(signal.SIGTERM)
            wait_until(lambda: session.process.poll() is not None)
            self.assertEqual(session.process.returncode, -signal.SIGTERM)

    def test_history_is_kept(self):
        path = pathlib.Path(self.folder) / "history"
        with Terminal(80, 24) as terminal:
            terminal.run(watch("--history", str(path)))
            terminal.wait_for(r"watched")
            terminal.press("q")
            terminal.wait_for(PROMPT_AGAIN)
        self.assertTrue(path.read_text().endswith("end\n"))
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)


class Mistakes(unittest.TestCase):
    def test_without_a_terminal_it_says_what_to_do(self):
        for arguments in ([], ["--demo", "idle-job"]):
            result = driver.run("inspect", "--watch", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            for option in ("--json", "--check", "--window"):
                self.assertIn(option, result.stderr)
        with driver.Session(80, "inspect", "--watch", environment={"TERM": "dumb"}) as session:
            self.assertEqual(session.finish(), 2)
            self.assertIn(b"--json", session.output)
            self.assertNotIn(b"\x1b", session.output)

    def test_what_does_not_go_together(self):
        for args in (["--json"], ["--prometheus"], ["--check"], ["--window", "5s"], ["--once"], ["--interval", "1ms"], ["--demo", "nosuch"],
                     ["--set", "r8.warm=5h"]):
            with self.subTest(args=args), driver.Session(80, "inspect", "--watch", *args) as session:
                self.assertEqual(session.finish(), 2)
                self.assertNotIn(b"\x1b", session.output)


if __name__ == "__main__":
    driver.main()
