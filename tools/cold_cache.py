#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints CMake's options for a demo's build from nothing; none where ccache may know this repository.
The tests' build (run_tests.py) compiles each source alone: there a forgotten include has to show.

  cold_cache.py
"""
import re
import shutil
import subprocess

PRECOMPILED = ("-DINGOT_PCH=TESTS",)
WARM_KIB = 100 * 1024  # a compiler cache of this size may know this repository


def is_cold():
    if shutil.which("ccache") is None:
        return True
    said = subprocess.run(["ccache", "--print-stats"], capture_output=True, text=True, check=False)
    found = re.search(r"^cache_size_kibibyte\s+(\d+)", said.stdout, re.MULTILINE)
    return found is not None and int(found.group(1)) < WARM_KIB


def options():
    """Precompiled headers pay where nothing is in the cache; they reduce its hits."""
    return PRECOMPILED if is_cold() else ()


if __name__ == "__main__":
    print(*options(), *(["-DINGOT_UNITS=ON"] if is_cold() else []))
