#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: readme_example.py ROOT: the example in README.md is examples/ten_lines.cc without its first two lines."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
shown = re.search(r"^```cpp\n(.*?)^```$", (root / "README.md").read_text(), re.DOTALL | re.MULTILINE)
built = (root / "examples/ten_lines.cc").read_text().split("\n", 2)[2]
if shown is None or shown[1] != built:
    sys.exit("README.md shows another program than examples/ten_lines.cc, which CI builds: make them equal")
