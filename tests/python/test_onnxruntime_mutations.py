# SPDX-License-Identifier: Apache-2.0
"""Compiled models with damage: each is refused with a text or gives the right result, and none ends
the process. INGOT_MUTATIONS sets the number of mutations."""
import os
import pathlib
import re
import subprocess
import sys

from onnxruntime_plugin import library

COUNT = int(os.environ.get("INGOT_MUTATIONS", "1000"))


def test_damaged_contexts_are_refused(tmp_path):
    library()
    place = tmp_path / "number"
    done = subprocess.run(
        [sys.executable, "onnxruntime_mutations.py", "0", str(COUNT), str(place)],
        cwd=pathlib.Path(__file__).parent, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, (f"mutation {place.read_text().strip() if place.exists() else '-'} "
                                  f"ended with {done.returncode}: {done.stdout[-3000:]}")
    refused = int(re.search(r"mutations: (\d+) refused", done.stdout)[1])
    assert refused >= COUNT * 3 // 4, done.stdout
