# SPDX-License-Identifier: Apache-2.0
"""Samples for tests of calibration, its caches as they are read back, and products of a quantised plan."""
import re

import numpy as np
import pytest

import ingot_command as ingot


def read_cache(path):
    """Algorithm, and scales by tensor as f32."""
    head, *lines = path.read_text().splitlines()
    assert re.fullmatch(r"TRT-\d+-\w+", head)
    scales = {}
    for line in lines:
        name, bits = line.rsplit(": ", 1)
        scales[name] = np.array(int(bits, 16), np.uint32).view(np.float32)[()]
    return head.split("-", 2)[2], scales


# --- thresholds

@pytest.fixture(name="digits", scope="module")
def fixture_digits(tmp_path_factory):
    """A folder of 64 samples of examples/digits."""
    folder = tmp_path_factory.mktemp("digits")
    for i, image in enumerate(np.load(ingot.DIGITS / "held_out_images.npy")[:64]):
        np.save(folder / f"{i:03}.npy", image)
    return folder


def integer_products(engine):
    """Products of integers, products of floats, and dequantised values in a plan for a GPU of
    compute capability 9.0, before its parts are fused. Convolutions of few channels multiply
    integers as 16-bit floats, with sums in f32: they count as products of integers."""
    text = ingot.call("inspect", engine, "--for=90", "--dump-after", "quantized_products")
    found = re.findall(r"= (?:conv|dot)\((%\w+), .* : (\w+)\[", text)
    types = dict(re.findall(r"(%\w+) = [^\n]* : (\w+)\[", text))
    integer = sum(result == "i32" or (result, types.get(x)) == ("f32", "f16") for x, result in found)
    return integer, len(found) - integer, len(re.findall(r"= dequantize\b", text))
