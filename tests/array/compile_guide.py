#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the C++ examples of a page: compile_guide.py PAGE COMPILER [FLAG...]."""
import pathlib
import re
import subprocess
import sys

HEADERS = ["<iostream>", "<span>", "<string>", "<vector>", '"drover/array/shared_array.h"', '"drover/pool/pool.h"',
           '"drover/worker/process.h"']

page, *compiler = sys.argv[1:]
examples = re.findall(r"^```cpp\n(.*?)^```", pathlib.Path(page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
if not examples:
    sys.exit(f"{page}: no examples")
program = "".join(f"#include {header}\n" for header in HEADERS) + "\n".join(examples)
sys.exit(subprocess.run([*compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++", "-"],
                        input=program, text=True, check=False).returncode)
