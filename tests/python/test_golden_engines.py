# SPDX-License-Identifier: Apache-2.0
"""Engines of every released format load and give what they gave (tests/data/make_engines.py)."""
import sys

import numpy as np
import pytest

import ingot_command as ingot
from ingot_command import fails

sys.path.insert(0, str(ingot.REPOSITORY / "tests" / "data"))
import make_engines  # noqa: E402

ENGINES = sorted(make_engines.FOLDER.glob("*.engine"))
PUBLIC_KEY = """-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAV3EQPukLzi0d40OiluYd4MjqjCXHoG3Cepn1AFdbRtw=
-----END PUBLIC KEY-----
"""


def result(engine, folder, *options):
    x = np.arange(16, dtype=np.float32).reshape(2, 8) / 8 - 1
    w, b = make_engines.weights()
    np.save(folder / "x.npy", x.astype(np.float16 if "formats" in engine.stem else np.float32))  # exact in both
    ingot.call("run", engine, "--device=cpu", f"--input=x={folder}/x.npy", "--save-outputs", folder, *options)
    return np.load(folder / "y.npy").astype(np.float32), np.maximum(x @ w + b, 0)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda path: path.stem)
def test_results_stay(engine, tmp_path):
    found, expected = result(engine, tmp_path)
    half = any(kind in engine.stem for kind in ("half", "formats"))
    np.testing.assert_allclose(found, expected, rtol=1e-3 if half else 1e-6, atol=1e-3 if half else 1e-6)


def test_every_kind_of_this_format_is_there():
    assert {path.stem for path in ENGINES} >= {f"format{make_engines.FORMAT}_{kind}" for kind in make_engines.KINDS}


def test_the_signature_stays_valid(tmp_path):
    (tmp_path / "key").write_text(PUBLIC_KEY)
    trusted = ["--trustedOnly", f"--trustedKeys={tmp_path}/key"]
    result(make_engines.FOLDER / "format1_signed.engine", tmp_path, *trusted)
    code, text = fails("run", make_engines.FOLDER / "format1_plain.engine", *trusted)
    assert code == 1 and "it is not signed" in text


def test_a_newer_format_is_refused(tmp_path):
    data = bytearray(ENGINES[0].read_bytes())
    data[8] = 99
    (tmp_path / "new").write_bytes(data)
    code, text = fails("run", tmp_path / "new")
    assert code == 1 and "engine format 99" in text and "use a newer Ingot or rebuild the engine" in text
