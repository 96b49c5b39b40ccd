#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules about files and includes that a compiler does not know.

usage: layers.py ROOT         checks the tree
       layers.py --self-test  checks this script: each rule against a small bad input
"""
import pathlib
import re
import sys

# Which area may include which. An area may always include itself. Nothing else is allowed: not up, not sideways.
ARROWS = {
    "base": [],
    "os": ["base"],
    "wire": ["base"],
    "shm": ["os", "base"],
    "store": ["shm", "os", "base"],
    "health": ["os", "base"],
    "array": ["wire", "shm", "os", "base"],
    "sync": ["wire", "shm", "os", "base"],
    "worker": ["wire", "shm", "os", "base"],
    "pool": ["array", "worker", "wire", "shm", "os", "base"],
    "runtime": ["pool", "array", "sync", "worker", "store", "wire", "shm", "os", "base"],
    "train": ["pool", "array", "sync", "worker", "shm", "os", "base"],
    "cli": ["base", "os", "shm", "array", "sync", "store", "wire", "worker", "pool", "runtime", "health", ""],
    "": ["base", "os", "shm", "array", "sync", "wire", "worker", "pool", "store", "runtime"],  # drover/drover.h itself
}
SYSTEM_AREAS = ["os"]  # the only areas that may include headers of the system

# Third-party headers (by prefix) of each area. In .cc files only, unless the area is in THIRD_PARTY_HEADERS.
THIRD_PARTY = {
    "cli": ["CLI/", "fmt/", "nlohmann/"],
    "health": ["nlohmann/"],
    "runtime": ["nlohmann/", "httplib.h", "mpi.h", "zmq.h"],
    "train": ["torch/", "ATen/", "c10/", "c10d/"],
}
THIRD_PARTY_HEADERS = ["cli", "train"]  # cli is not installed, train is built on libtorch's types

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits clocale
cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib
cstring ctime cuchar cwchar cwctype cxxabi.h deque exception execution filesystem forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex new
numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream system_error thread tuple
type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version
""".split())

MAX_LINES = {".h": 200, ".cc": 400, ".c": 400}
SPDX = "SPDX-License-Identifier: Apache-2.0"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def area_of(path):
    """The area of drover/AREA/...; "" for a file directly in drover/."""
    parts = pathlib.PurePosixPath(path).parts
    return parts[1] if len(parts) > 2 else ""


def check_include(path, quote, name):
    """The problem with one include of a file in drover/, or None."""
    area, is_header = area_of(path), path.endswith(".h")
    if name.startswith("drover/"):
        if quote == "<":
            return f"<{name}> is ours: include it with quotes"
        target = area_of(name)
        if target != area and target not in ARROWS[area]:
            return f'"{name}": no arrow from {area or "drover.h"} to {target or "drover.h"}'
        return None
    if quote == '"':
        return f'"{name}": write the path from the root of the repository, or <> for what is not ours'
    if name in STANDARD:
        return None
    for owner, prefixes in THIRD_PARTY.items():
        if any(name.startswith(prefix) for prefix in prefixes):
            allowed = any(name.startswith(prefix) for prefix in THIRD_PARTY.get(area, []))
            if not allowed:
                return f"<{name}>: third-party, not allowed in {area or 'drover.h'}"
            if is_header and area not in THIRD_PARTY_HEADERS:
                return f"<{name}>: third-party, only in .cc files"
            return None
    if area in SYSTEM_AREAS:
        return None
    return f"<{name}> is not a standard header: only {', '.join(SYSTEM_AREAS)} may include it"


def check_common(path, lines):
    """What holds for each C++ file of the repository."""
    if not lines or lines[0] != "// " + SPDX:
        yield f"{path}:1: the first line must be // {SPDX}"
    if path.endswith(".h") and "#pragma once" not in lines:
        yield f"{path}:1: no #pragma once"


def check_library(path, lines, files):
    """What holds for a file in drover/."""
    if area_of(path) not in ARROWS:
        yield f"{path}:1: {area_of(path)} is not an area: the arrows are a table in layers.py"
        return
    limit = MAX_LINES[pathlib.PurePosixPath(path).suffix]
    if len(lines) > limit:
        yield f"{path}:{limit + 1}: {len(lines)} lines, at most {limit}"
    own = path.rsplit(".", 1)[0] + ".h"
    first = True
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        if first and own != path and own in files and match[2] != own:
            yield f'{path}:{number}: the own header "{own}" comes first'
        first = False
        problem = check_include(path, match[1], match[2])
        if problem:
            yield f"{path}:{number}: {problem}"


def check(files):
    """All problems of {path: text}, paths from the root."""
    problems = []
    for path, text in sorted(files.items()):
        lines = text.splitlines()
        problems += check_common(path, lines)
        if path.startswith("drover/"):
            problems += check_library(path, lines, files)
    return problems


def read_tree(root):
    files = {}
    for folder in ["drover", "tests", "benchmarks", "examples"]:
        for path in (root / folder).rglob("*"):
            if path.suffix in MAX_LINES and path.is_file():
                files[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
    return files


def self_test():
    top = "// " + SPDX + "\n"
    header = top + "#pragma once\n"
    bad = [  # the text that must be in the only problem, path, contents
        ("no arrow from base to os", "drover/base/a.h", header + '#include "drover/os/fd.h"\n'),
        ("no arrow from wire to os", "drover/wire/a.cc", top + '#include "drover/os/fd.h"\n'),
        ("no arrow from store to wire", "drover/store/a.cc", top + '#include "drover/wire/codec.h"\n'),
        ("no arrow from cli to train", "drover/cli/a.cc", top + '#include "drover/train/train.h"\n'),
        ("no arrow from pool to drover.h", "drover/pool/a.cc", top + '#include "drover/drover.h"\n'),
        ("no arrow from drover.h to health", "drover/drover.h", header + '#include "drover/health/health.h"\n'),
        ("is ours", "drover/pool/a.cc", top + "#include <drover/pool/pool.h>\n"),
        ("from the root", "drover/pool/a.cc", top + '#include "pool.h"\n'),
        ("not a standard header", "drover/pool/a.cc", top + "#include <unistd.h>\n"),
        ("not a standard header", "drover/worker/a.cc", top + "#  include <sys/mman.h>\n"),
        ("not a standard header", "drover/wire/a.cc", top + "#include <signal.h>\n"),
        ("third-party, not allowed in pool", "drover/pool/a.cc", top + "#include <fmt/format.h>\n"),
        ("third-party, not allowed in os", "drover/os/a.cc", top + "#include <CLI/CLI.hpp>\n"),
        ("only in .cc files", "drover/health/a.h", header + "#include <nlohmann/json.hpp>\n"),
        ("no #pragma once", "drover/base/a.h", top),
        ("no #pragma once", "tests/harness/a.h", top),
        ("first line", "drover/base/a.cc", "#include <map>\n"),
        ("first line", "tests/os/a_test.cc", ""),
        ("at most 200", "drover/base/a.h", header + "\n" * 199),
        ("at most 400", "drover/base/a.cc", top + "\n" * 400),
        ("not an area", "drover/misc/a.cc", top),
    ]
    good = {
        "drover/drover.h": header + '#include "drover/base/errors.h"\n#include "drover/runtime/runtime.h"\n',
        "drover/os/fd.h": header + "#include <unistd.h>\n#include <span>\n" + '#include "drover/base/errors.h"\n',
        "drover/os/fd.cc": top + '#include "drover/os/fd.h"\n\n#include <fcntl.h>\n',
        "drover/cli/main.cc": top + "#include <fmt/format.h>\n" + '#include "drover/drover.h"\n',
        "drover/runtime/ray.cc": top + "#include <nlohmann/json.hpp>\n",
        "drover/base/long.h": header + "\n" * 198,
        "tests/os/fd_test.cc": top + "#include <unistd.h>\n" + "\n" * 500,
    }
    failures = [f"good input refused: {problem}" for problem in check(good)]
    for text, path, contents in bad:
        problems = check({path: contents})
        if len(problems) != 1 or text not in problems[0]:
            failures.append(f"{path}: expected one problem with {text!r}, got {problems}")
    order = check({"drover/os/fd.h": header, "drover/os/fd.cc": top + '#include <map>\n#include "drover/os/fd.h"\n'})
    if len(order) != 1 or "comes first" not in order[0]:
        failures.append(f"own header first: got {order}")
    return failures


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    if sys.argv[1] == "--self-test":
        problems = self_test()
    else:
        files = read_tree(pathlib.Path(sys.argv[1]))
        problems = check(files)
        if not files:
            problems = [f"no files under {sys.argv[1]}"]
    print("\n".join(problems) or "ok")
    sys.exit(1 if problems else 0)


main()
