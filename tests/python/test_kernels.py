# SPDX-License-Identifier: Apache-2.0
"""The kernels that a plan for compute capability 9.0 launches, in half precision. kernels.json holds,
per model and kernel entry, the number of different kernels and of launches; INGOT_WRITE_GOLDENS=1
rewrites it. The text of kernels is golden in tests/kernels/texts."""
import collections
import json
import os
import pathlib
import tempfile

import pytest

import ingot_command as ingot
from models import MODELS, cache_folder, model_file, shared_models

GOLDEN = pathlib.Path(__file__).with_name("kernels.json")
# Few kernels compile fast. Model: (shape of the case, most kernels).
CASES = {
    "resnet50": ("input:1x3x224x224", 16),
    "bert_base_dynamo": ("input_ids:1x128,attention_mask:1x128", 12),
    "sd15_unet": ("sample:2x4x64x64,timestep:2,context:2x77x768", 42),
}

pytestmark = pytest.mark.skipif(
    shared_models() is None,
    reason="no shared/models beside the clone (set INGOT_SHARED): kernels were NOT counted")


def kernels_of(name, shapes):
    """{entry: {"kernels": different ones, "launches": of all of them}} of a plan."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        engine = pathlib.Path(folder) / "half.engine"
        ingot.build(model_file(MODELS[name].name), engine,
                    ["--fp16", "--inputIOFormats=fp16:chw", "--outputIOFormats=fp16:chw",
                     f"--optShapes={shapes}"])
        listed = json.loads(ingot.call("inspect", engine, "--kernels", "--for=90", "--noCompile", "--json"))
    counts = collections.defaultdict(lambda: {"kernels": 0, "launches": 0})
    for kernel in listed["kernels"]:
        counts[kernel["entry"]]["kernels"] += 1
        counts[kernel["entry"]]["launches"] += kernel["launches"]
    return dict(counts)


@pytest.mark.parametrize("name", CASES)
def test_few_kernels_and_the_known_counts(name):
    shapes, most = CASES[name]
    got = kernels_of(name, shapes)
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("INGOT_WRITE_GOLDENS"):
        golden[name] = got
        GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n")
    total = sum(count["kernels"] for count in got.values())
    listing = "\n".join(f"{entry}: {count}" for entry, count in sorted(got.items()))
    print(f"{name}: {total} kernels\n{listing}")
    assert total <= most, f"{name}: {total} kernels, at most {most}:\n{listing}"
    known = golden.get(name, {})
    moved = [f"{entry}: {known.get(entry)} before, {got.get(entry)} now"
             for entry in sorted(known.keys() | got.keys()) if known.get(entry) != got.get(entry)]
    assert not moved, (f"{name}: kernels moved; if that was meant, run this test with INGOT_WRITE_GOLDENS=1\n"
                       + "\n".join(moved))
