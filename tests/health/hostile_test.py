#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: hostile_test.py PATH_OF_DROVER FOLDER_OF_THE_FALSE_DRIVER: names that want to take over a terminal, a parser or a
page, in every place where somebody else chooses the text, through the whole program to every output."""
import json
import os
import pathlib
import re
import sys
import tempfile
import unicodedata
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import driver  # noqa: E402

fake_folder = sys.argv.pop(2)

# Clears the screen; sets the title; colours; C1 as one byte and as UTF-8; writes backwards; moves back over what stands
# there; no UTF-8; a page's script; a label of Prometheus; JSON's end.
EVIL = (b"\x1b[2J\x1b]0;owned\x07\x1b[31m\x9b31m\xc2\x9b31m\xe2\x80\xae\xe2\x81\xa6\x08\x08\r\n\xff\xfe\x7f"
        b"<script>alert(1)</script><img src=x onerror=alert(2)>\"} 1\\\n{\"a\":\x0b\x0c")


class Machine:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def write(self, path, content):
        full = self.root / path.lstrip("/")
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(content if isinstance(content, bytes) else content.encode())

    def link(self, path, target):
        full = self.root / path.lstrip("/")
        full.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, os.fsencode(str(full)))

    def process(self, pid, state="S"):
        folder = f"/proc/{pid}"
        name = EVIL[:15]
        self.write(folder + "/stat", b"%d (%s) %s 1 %d %d 0 -1 0 0 0 0 0 10 0 0 0 20 0 1 0 1 0 0\n" %
                   (pid, name, state.encode(), pid, pid))
        self.write(folder + "/status", "Uid:\t1000\t1000\t1000\t1000\nShdPnd:\t0000000000000100\n")
        self.write(folder + "/cmdline", b"python\0" + EVIL + b"\0")
        self.write(folder + "/cgroup", b"0::/docker-" + EVIL.replace(b"\n", b"") + b".scope\n")
        self.write(folder + "/environ", b"RANK=0\0MASTER_ADDR=" + EVIL + b"\0SLURM_JOB_ID=" + EVIL + b"\0")
        self.write(folder + "/io", "rchar: 1\nwchar: 1\n")
        self.write(f"{folder}/task/{pid}/stat", b"%d (%s) %s 1 1 1 0 -1 0 0 0 0 0 10 0 0 0 20 0 1 0 1 0 0\n" %
                   (pid, name, state.encode()))
        self.write(f"{folder}/task/{pid}/wchan", b"nvidia_" + EVIL.replace(b"\n", b""))

    def fill(self):
        self.link("/proc/self/ns/pid", "pid:[4026531836]")
        self.write("/proc/self/status", "Cpus_allowed_list:\t0\n")
        self.write("/proc/cpuinfo", b"model name\t: " + EVIL)
        self.write("/proc/stat", "cpu 1 0 0 9 0 0 0 0\n")
        self.write("/proc/sys/kernel/osrelease", EVIL)
        self.write("/sys/devices/system/cpu/online", "0\n")
        self.write("/etc/passwd", b"a" + EVIL.replace(b"\n", b"").replace(b":", b"") + b":x:1000:1000::/:/bin/sh\n")
        self.process(4000, "D")
        self.process(4001)
        self.write("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
        self.write("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
        self.write("/dev/kmsg", b"4,1,5,-;NVRM: Xid (PCI:0000:01:00): 79, pid=4000, name=" + EVIL.replace(b"\n", b"") + b"\n")
        card = "/sys/class/drm/card0/device"
        self.write(card + "/vendor", "0x1002\n")
        self.write(card + "/device", b"0x" + EVIL)
        self.write(card + "/uevent", b"DRIVER=" + EVIL + b"\nPCI_SLOT_NAME=0000:03:00.0\n")
        self.write(card + "/product_name", EVIL.replace(b"\n", b""))
        self.write(card + "/unique_id", EVIL)
        self.link("/proc/4001/fd/7", "/dev/dri/renderD128")
        self.write("/proc/4001/fdinfo/7", b"drm-driver: amdgpu\ndrm-client-id: 1\ndrm-pdev: 0000:03:00.0\ndrm-memory-vram: 9 "
                                          b"MiB\ndrm-engine-" + EVIL[:8] + b": 5 ns\n")
        quoted = EVIL.replace(b"\n", b"").replace(b'"', b"").replace(b"#", b"")
        quoted = quoted[:80]  # the driver's own texts have at most 96 bytes
        self.write("/situation", b'gpu 0 name="' + quoted + b'" uuid="' + quoted + b'"\non 0 4000 vram=30\n')


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="health_")
        machine = Machine(cls.folder.name)
        machine.fill()
        cls.environment = {**os.environ, "LD_LIBRARY_PATH": fake_folder, "DROVER_FAKE_NVML": cls.folder.name + "/situation"}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def output(self, *options):
        result = driver.run("inspect", "--root", self.folder.name, *options, env=self.environment, errors="surrogateescape")
        self.assertIn(result.returncode, (0, 1, 2, 3), result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def assert_harmless(self, text, also=""):
        text.encode("utf-8")  # surrogates stand for what is no UTF-8
        for character in text:
            bad = unicodedata.category(character) in ("Cc", "Cf") and character not in "\n" + also
            self.assertFalse(bad, f"{character!r} in {text[max(0, text.index(character) - 60):][:120]!r}")

    def test_text(self):
        text = self.output()
        self.assertIn("python", text)
        self.assertIn("4001", text)
        self.assertNotIn("00000000:01:00.0", text, "the GPU's name did not come")
        self.assert_harmless(text)

    def test_check_is_one_line(self):
        text = self.output("--check")
        self.assertEqual(text.count("\n"), 1)
        self.assert_harmless(text)

    def test_json_is_ascii_and_holds_the_bytes_that_can_be_shown(self):
        text = self.output("--json")
        self.assertTrue(text.isascii())
        self.assert_harmless(text)
        report = json.loads(text)
        process = report["gpus"][0]["processes"][0]
        self.assertIn("<script>alert(1)</script>", process["command"])
        self.assertIn("\x1b[2J", process["command"])
        self.assertEqual([gpu["vendor"] for gpu in report["gpus"]], ["nvidia", "amd"])

    def test_prometheus(self):
        text = self.output("--prometheus")
        self.assert_harmless(text)
        line = re.compile(r'^[a-z_]+(\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\})? \S+$')
        for one in text.splitlines():
            self.assertTrue(one.startswith("# ") or line.match(one), one)

    def test_page(self):
        path = pathlib.Path(self.folder.name) / "page.html"
        self.output("--html", str(path))
        page = path.read_text(encoding="utf-8")
        self.assert_harmless(page, also="\t\r")
        for tag in ("<script>alert", "<img src=x"):
            self.assertNotIn(tag, page)


if __name__ == "__main__":
    driver.main()
