# SPDX-License-Identifier: Apache-2.0
"""The count of composites in every model is golden: a pass that stops recognising a pattern, or starts
to recognise too much, shows here. INGOT_WRITE_GOLDENS=1 writes the counts as they are now; review the diff."""
import json
import os
import pathlib

import onnx
import pytest

import ingot_command as ingot
from models import shared_models

GOLDEN = pathlib.Path(__file__).with_name("composites.json")
COMPOSITES = {"attention", "conv", "conv_transpose", "dequantize", "gelu", "grid_sample", "group_norm", "layer_norm", "pool",
              "quantize", "recurrence", "resize", "roll", "rope", "softmax", "squeeze_excite", "topk"}
SHARED = shared_models()

pytestmark = pytest.mark.skipif(
    SHARED is None, reason="no shared/models beside the clone (set INGOT_SHARED): composites were NOT counted")


def graphs():
    return [] if SHARED is None else sorted(SHARED.glob("architectures/*.onnx")) + sorted(SHARED.glob("pretrained/*.onnx"))


def with_empty_weights(path, folder):
    """The graph beside a sparse data file of zeros: the counts do not depend on values."""
    model = onnx.load(str(path), load_external_data=False)
    end = 0
    for tensor in model.graph.initializer:
        if not tensor.external_data:
            continue
        size = {1: 4, 7: 8, 10: 2}[tensor.data_type]
        for extent in tensor.dims:
            size *= extent
        del tensor.external_data[:]
        for key, value in (("location", "weights.data"), ("offset", str(end)), ("length", str(size))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        end += -(-size // 4096) * 4096
    with open(folder / "weights.data", "wb") as data:
        data.truncate(end)
    onnx.save(model, str(folder / "model.onnx"))
    return folder / "model.onnx"


@pytest.mark.parametrize("path", graphs(), ids=lambda p: p.stem)
def test_composites_are_as_listed(path, tmp_path):
    described = json.loads(ingot.call("inspect", with_empty_weights(path, tmp_path), "--json"))
    counts = {name: n for name, n in described["operators"].items() if name in COMPOSITES}
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.is_file() else {}
    if os.environ.get("INGOT_WRITE_GOLDENS"):
        golden[path.stem] = counts
        GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n")
    assert golden.get(path.stem) == counts
