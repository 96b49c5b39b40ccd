#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: hosts_command_test.py PATH_OF_DROVER: `drover inspect --hosts` over a false ssh, and over a real sshd on loopback."""
import contextlib
import getpass
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import driver  # noqa: E402

FALSE = str(pathlib.Path(__file__).resolve().with_name("hosts_false_ssh.sh"))
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


class Hosts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hosts-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.mark = "DROVER_CLI_TEST=" + uuid.uuid4().hex
        self.environment = {**os.environ, "DROVER_CLI_TEST": self.mark.split("=")[1], "COUNT_FOLDER": str(self.folder)}

    def tearDown(self):
        end = time.monotonic() + 5  # what was killed takes a moment to be gone
        while (left := driver.marked_processes(self.mark)) and time.monotonic() < end:
            time.sleep(0.01)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "something was left running")

    def arguments(self, hosts, *args, ssh=FALSE):
        path = self.folder / "hosts.txt"
        path.write_text(hosts)
        return ["inspect", "--hosts", str(path), "--ssh", ssh, "--remote", driver.program, *args]

    def inspect(self, hosts, *args, **kwargs):
        return driver.run(*self.arguments(hosts, *args, **kwargs), env=self.environment)

    def nodes(self, hosts, *args, **kwargs):
        result = self.inspect(hosts, "--json", *args, **kwargs)
        self.assertEqual(result.stderr, "")
        merged = json.loads(result.stdout)
        self.assertEqual(result.returncode, merged["exit_code"])
        return {node["name"]: node for node in merged["nodes"]}

    def test_a_row_for_each_host_whatever_it_does(self):
        hosts = ("good1, user@good2 # two\n# none\nmotd\nunreachable\nmissing\ngarbage\ntruncated\nsilent\nendless\nnoisy\nhanging\nstubborn\n"
                 "leaving\ncrashing\nolder\n")
        begin = time.monotonic()
        nodes = self.nodes(hosts, "--host-deadline", "3s", "--demo", "idle-job")
        self.assertLess(time.monotonic() - begin, 3 + 0.5 + 4)
        expected = {"good1": None, "good2": None, "motd": None, "leaving": None,
                    "unreachable": "ssh: connect to host unreachable port 22: No route to host; the remote shell exited with code 255",
                    "missing": "sh: 1: drover: not found; the remote shell exited with code 127; if drover is somewhere else there, give its path: --remote",
                    "garbage": "this is no report of drover inspect --json: this is { no ] report",
                    "truncated": "it ends in the middle (line ", "silent": "it printed nothing",
                    "endless": "it printed more than 9 MiB, and no report", "noisy": "no answer within 3.0 s; a complaint",
                    "hanging": "no answer within 3.0 s", "stubborn": "no answer within 3.0 s",
                    "older": "The following argument was not expected: --new; it printed nothing",
                    "crashing": "the remote shell was killed by SIGSEGV (Segmentation fault)"}
        self.assertEqual(set(nodes), set(expected))
        for name, problem in expected.items():
            node = nodes[name]
            if problem is None:
                self.assertIsNone(node["problem"], name)
                self.assertEqual(node["report"]["demo"], "idle-job")
            else:
                self.assertIsNone(node["report"], name)
                self.assertIn(problem, node["problem"], name)

    def test_all_outputs_and_exit_codes(self):
        self.assertRegex(self.inspect("good", "--demo", "healthy-node", "--check").stdout, r"\AOK: .* 1 node")
        for hosts, demo, code in (("good[1-3]", "healthy-node", 0), ("good[1-3]", "idle-job", 1), ("good1,unreachable", "idle-job", 3),
                                  ("good1,unreachable", "gpu-lost", 2)):
            for output in ("--check", "--prometheus", "--json"):
                self.assertEqual(self.inspect(hosts, "--demo", demo, output).returncode, code)
        page = self.folder / "page.html"
        result = self.inspect("good1,unreachable", "--demo", "idle-job", "--html", str(page))
        self.assertIn("No route to host", page.read_text())
        self.assertRegex(result.stdout, r"(?m)^good1 +1 ")
        for line in result.stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_options_reach_the_host_as_they_are(self):
        history = self.folder / "it's a \"history\" $(touch owned) `touch owned` \\ file"
        nodes = self.nodes("good", "--window", "0.4s", "--interval", "0.2s", "--set", "r8.warn=7m", "--history", str(history))
        report = nodes["good"]["report"]
        self.assertEqual((report["once"], report["samples"]), (False, 3))
        self.assertIn("r8.warn=7m", report["limits"])
        self.assertTrue(history.exists())
        self.assertFalse(pathlib.Path("owned").exists())

    def test_at_most_32_at_once(self):
        nodes = self.nodes("counted[001-070]", "--demo", "no-gpu")
        self.assertEqual(len(nodes), 70)
        self.assertEqual([name for name, node in nodes.items() if node["problem"]], [])
        most = max(map(int, (self.folder / "log").read_text().split()))
        self.assertLessEqual(most, 32)
        self.assertGreater(most, 4)

    def test_lists_are_expanded_and_bad_ones_refused(self):
        nodes = self.nodes("good[08-10,2]x, good1\ngood1 # again\n\n", "--demo", "no-gpu")
        self.assertEqual(list(nodes), ["good1", "good2x", "good08x", "good09x", "good10x"])
        for hosts, text in (("-oProxyCommand=x", "line 1: '-oProxyCommand=x' is no name of a host"), ("good\nuser@-x", "line 2"), ("a b", "' '"),
                            ("a\x1bb", "line 1"), ("a;b", "';'"), ("a$(b)", "'$'"), ("n[1-99999]", "more than 10,000"), ("n[5-1]", "makes no sense"),
                            ("n[1-100]m[1-200]", "more than 10,000"), ("n[3-]", "line 1"), ("n[3-", "line 1"),
                            ("# none\n", "there is no host"), ("\u00e9", "line 1")):
            result = self.inspect(hosts)
            self.assertEqual((result.returncode, result.stdout), (2, ""), hosts)
            self.assertIn(text, result.stderr, hosts)
            self.assertNotRegex(result.stderr, "[\x00-\x09\x0b-\x1f]")

    def test_mistakes(self):
        good = self.arguments("good")
        for args, text in ((["inspect", "--hosts", "/nonexistent"], "cannot be read"),
                           (self.arguments("good", ssh="/nonexistent/ssh"), "--ssh"), (self.arguments("good", ssh="'ssh"), "quote"),
                           ([*good, "--set", "r8.warm=1"], "r8.warm"), ([*good, "--watch"], "--watch"), ([*good, "--window", "x"], "--window"),
                           ([*good, "--window", "1e30"], "--window: the window must be"), ([*good, "--interval", "2h"], "--interval: "),
                           ([*good, "--deadline", "1h"], "--deadline: "), ([*good, "--demo", "none"], "--demo: there is no situation 'none'"),
                           ([*good, "--host-deadline", "x"], "--host-deadline: 'x'"),
                           ([*good, "--host-deadline", "0s"], "--host-deadline"), (["inspect", "--remote", "x"], "--hosts")):
            result = driver.run(*args, env=self.environment)
            self.assertEqual((result.returncode, result.stdout), (2, ""), args)
            self.assertIn(text, result.stderr)
        result = driver.run(*self.arguments("good", ssh="no-such-program -x"), env=self.environment)
        self.assertEqual(result.returncode, 2)
        self.assertIn("no-such-program", result.stderr)

    def test_words_of_the_remote_shell(self):
        wrapper = self.folder / "my ssh"
        wrapper.write_text(f"#!/bin/sh\n[ \"$1/$2\" = \"-F/a b\" ] || exit 96\nshift 2\nexec {FALSE} \"$@\"\n")
        wrapper.chmod(0o700)
        self.assertIsNone(self.nodes("good", "--demo", "no-gpu", ssh=f"'{wrapper}' -F \"a b\"")["good"]["problem"])

    def test_an_interrupt_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([driver.program, *self.arguments("hanging[1-3],stubborn[1-3],noisy,good", "--window", "60s")],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment)
            driver.wait_for(lambda: len(driver.marked_processes(self.mark)) >= 14)
            process.send_signal(number)
            begin = time.monotonic()
            out, err = process.communicate(timeout=30)
            self.assertLess(time.monotonic() - begin, 5)
            self.assertEqual((process.returncode, out, err), (-number, b"", b""))
            driver.wait_for(lambda: not driver.marked_processes(self.mark))

    def test_killed_anywhere_it_leaves_nothing(self):
        for point in range(100):
            result = driver.run(*self.arguments("waiting[1-3],silent", "--host-deadline", "0.3s", "--check"),
                                env={**self.environment, "DROVER_FAULT": f"parent:{point}"})
            driver.wait_for(lambda: not driver.marked_processes(self.mark))
            if result.returncode >= 0:
                break
        self.assertEqual(result.returncode, 3)
        process = subprocess.Popen([driver.program, *self.arguments("waiting[1-9]")], stdout=subprocess.DEVNULL, env=self.environment)
        driver.wait_for(lambda: len(driver.marked_processes(self.mark)) == 10)
        process.kill()
        process.wait()
        driver.wait_for(lambda: not driver.marked_processes(self.mark))

    def test_an_interrupt_at_any_moment(self):
        for milliseconds in range(0, 300, 25):
            process = subprocess.Popen([driver.program, *self.arguments("hanging[1-20]", "--window", "60s")], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=self.environment)
            time.sleep(milliseconds / 1000)  # the moment itself is what is varied here
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=30), -signal.SIGTERM)
            driver.wait_for(lambda: not driver.marked_processes(self.mark))


@unittest.skipUnless(SSHD and shutil.which("ssh"), "no sshd")
class RealSsh(unittest.TestCase):
    """A server of its own: keys, configuration and port; it ends with the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sshd-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        self.port = self.start()

    def start(self):
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # where root's sshd locks itself up
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (self.folder / "sshd").write_text(
            f"ListenAddress 127.0.0.1:{port}\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/user.pub\nStrictModes no\nUsePAM no\n"
            f"PidFile none\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n")
        key = (self.folder / "host.pub").read_text().split()
        (self.folder / "known").write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
        (self.folder / "config").write_text(  # the first value of each counts
            f"Host refused\n  HostName 127.0.0.1\n  Port 1\nHost unknown-key\n  HostName 127.0.0.1\n  UserKnownHostsFile /dev/null\n"
            f"Host *\n  Port {port}\n  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {self.folder}/known\n"
            f"  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n")
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", self.folder / "sshd"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (server.terminate(), server.wait(), server.stderr.close()))
        for line in server.stderr:
            if "listening" in line:
                return port
        self.skipTest(f"sshd does not start: {line if 'line' in locals() else ''}")

    def test_over_a_real_server(self):
        (self.folder / "list").write_text(f"{getpass.getuser()}@127.0.0.1\nrefused\nunknown-key\n")
        result = driver.run("inspect", "--hosts", str(self.folder / "list"), "--ssh", f"ssh -F {self.folder}/config", "--remote", driver.program,
                            "--set", "r8.warn=7m", "--json", "--host-deadline", "30s")
        self.assertEqual((result.returncode, result.stderr), (3, ""))
        nodes = {node["name"]: node for node in json.loads(result.stdout)["nodes"]}
        report = nodes["127.0.0.1"]["report"]
        self.assertIsNotNone(report, nodes["127.0.0.1"]["problem"])
        self.assertEqual(report["host"], socket.gethostname())
        self.assertIn("r8.warn=7m", report["limits"])
        self.assertIn("Connection refused", nodes["refused"]["problem"])
        self.assertIn("Host key verification failed", nodes["unknown-key"]["problem"])

    def test_a_late_host_behind_a_real_server(self):
        (self.folder / "list").write_text("127.0.0.1\n")
        begin = time.monotonic()
        result = driver.run("inspect", "--hosts", str(self.folder / "list"), "--ssh", f"ssh -F {self.folder}/config", "--remote", "sleep 5; :",
                            "--check", "--host-deadline", "2s")
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(result.returncode, 3)
        self.assertIn("no answer within 2.0 s", result.stdout)


if __name__ == "__main__":
    driver.main()
