#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints CMake's options for a build from nothing; none where ccache may know this repository.

  cold_cache.py
"""
import re
import shutil
import subprocess

OPTIONS = ("-DINGOT_UNITS=ON", "-DINGOT_PCH=TESTS")
WARM_KIB = 100 * 1024  # a compiler cache of this size may know this repository


def options():
    """Units and precompiled headers pay where nothing is in the cache; they reduce its hits."""
    if shutil.which("ccache") is None:
        return OPTIONS
    said = subprocess.run(["ccache", "--print-stats"], capture_output=True, text=True, check=False)
    found = re.search(r"^cache_size_kibibyte\s+(\d+)", said.stdout, re.MULTILINE)
    return OPTIONS if found is not None and int(found.group(1)) < WARM_KIB else ()


if __name__ == "__main__":
    print(*options())
