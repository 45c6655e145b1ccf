# SPDX-License-Identifier: Apache-2.0
"""More than 2 GB of weights: compiled beside the model without asking, refused inside it, and given from
memory. The data file is sparse. INGOT_LARGE_TESTS=1 runs them: they take 12 GB of memory and 5 GB of
disk."""
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import onnxruntime, session, session_options

if os.environ.get("INGOT_LARGE_TESTS") != "1":
    pytest.skip("INGOT_LARGE_TESTS is not 1: models over 2 GB were NOT tested", allow_module_level=True)

ROWS, COLUMNS = 1 << 17, 2056  # two tables of f32, 2.16 GB together: ONNX Runtime takes 2 GB of each
BYTES = 2 * ROWS * COLUMNS * 4


@pytest.fixture(name="source", scope="module")
def made_source(tmp_path_factory):
    """y = a[i] + b[i]: tables of zeros, but for the last row of b, which is 3."""
    folder = tmp_path_factory.mktemp("large")
    with open(folder / "m.data", "wb") as file:
        file.truncate(BYTES)
        file.seek(BYTES - COLUMNS * 4)
        file.write(np.full(COLUMNS, 3, np.float32).tobytes())
    tables = []
    for i, name in enumerate("ab"):
        tables.append(TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[ROWS, COLUMNS],
                                  data_location=TensorProto.EXTERNAL))
        for key, value in (("location", "m.data"), ("offset", str(i * BYTES // 2)),
                           ("length", str(BYTES // 2))):
            tables[-1].external_data.add(key=key, value=value)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["a", "i"], ["p"]), helper.make_node("Gather", ["b", "i"], ["q"]),
         helper.make_node("Add", ["p", "q"], ["y"])], "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", COLUMNS])], tables)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def check(made):
    got, = made.run(None, {"i": np.array([0, ROWS - 1], np.int64)})
    np.testing.assert_array_equal(got, np.repeat([[0], [3]], COLUMNS, axis=1).astype(np.float32))


def test_context_over_2_gb_is_beside_the_model(source, tmp_path):
    target = tmp_path / "m_ctx.onnx"
    onnxruntime.ModelCompiler(session_options(), str(source)).compile_to_file(str(target))
    assert target.stat().st_size < 1 << 20
    assert (tmp_path / "m_ctx_0.engine").stat().st_size > BYTES
    check(session(target))


def test_context_over_2_gb_is_not_put_into_the_model(source, tmp_path):
    with pytest.raises(Exception, match=r"the engine has 2\d{9} bytes, and a model file holds at most "
                                        r"2147483647: keep it beside the model "
                                        r"\(ep\.context_embed_mode 0\)"):
        onnxruntime.ModelCompiler(session_options(), str(source), embed_compiled_data_into_model=True
                                  ).compile_to_file(str(tmp_path / "m_ctx.onnx"))
    assert not list(tmp_path.iterdir())


def test_weights_over_2_gb_from_memory(source):
    """The model comes from memory, and its data from a mapping of the file."""
    data = np.memmap(source.with_name("m.data"), np.uint8, "r")
    options = session_options()
    options.add_external_initializers_from_files_in_memory(["m.data"], [data], [data.size])
    made = onnxruntime.InferenceSession(source.read_bytes(), options, enable_fallback=False)
    check(made)
