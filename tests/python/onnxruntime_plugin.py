# SPDX-License-Identifier: Apache-2.0
"""Sessions of ONNX Runtime on Ingot's execution provider, for tests: the plugin is registered once in
a process, with the CPU allowed. Another release of onnxruntime is tested by putting it into
PYTHONPATH."""
import functools
import os
import pathlib

import numpy as np
import onnx
import pytest
from onnx import helper

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="onnxruntime is not installed: its execution provider was NOT tested")

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
NAME = "NvTensorRTRTXExecutionProvider"
SIMULATED = os.environ.get("INGOT_SIMULATED_GPU") == "1"
RELEASE = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])


def library():
    """The plugin under test: $INGOT_ONNXRUNTIME, else that of build/ of this clone."""
    path = pathlib.Path(os.environ.get("INGOT_ONNXRUNTIME")
                        or REPOSITORY / "build" / "libingot_onnxruntime.so")
    if not path.is_file():
        pytest.skip(f"no plugin at {path}: run './dev build', or set INGOT_ONNXRUNTIME")
    return path


@functools.lru_cache
def device():
    """The provider's device, after its library was registered under its own name: the CPU, or with
    INGOT_SIMULATED_GPU=1 a GPU simulated in host memory that only the plugin can access."""
    os.environ["INGOT_ALLOW_CPU"] = "0" if SIMULATED else "1"
    onnxruntime.register_execution_provider_library(NAME, str(library()))
    found = [d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME]
    assert len(found) == 1, found
    return found[0]


def session_options(options=None, entries=None, whole=True):
    """Options of a session on the provider; `whole` forbids nodes on others."""
    made = onnxruntime.SessionOptions()
    made.log_severity_level = 3
    if whole:
        made.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    for key, value in (entries or {}).items():
        made.add_session_config_entry(key, value)
    made.add_provider_for_devices([device()], options or {})
    return made


def session(model, options=None, entries=None, whole=True):
    """A session of a ModelProto, or of a file by its path, that does not fall back by itself."""
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    return onnxruntime.InferenceSession(source, session_options(options, entries, whole),
                                        enable_fallback=False)


def on_cpu(model, feeds):
    """The results of ONNX Runtime's own CPU provider."""
    made = onnxruntime.InferenceSession(model.SerializeToString(),
                                        providers=["CPUExecutionProvider"])
    return made.run(None, feeds)


def assigned(made):
    """{provider: sorted operators} of a session made with session.record_ep_graph_assignment_info."""
    found = {}
    for part in made.get_provider_graph_assignment_info():
        found.setdefault(part.ep_name, []).extend(n.op_type for n in part.get_nodes())
    return {name: sorted(types) for name, types in found.items()}


def model_of(nodes, inputs, outputs, initializers=(), opset=17):
    """A model; inputs and outputs are {name: (element type, shape)}."""
    def infos(values):
        return [helper.make_tensor_value_info(name, *value) for name, value in values.items()]
    arrays = [onnx.numpy_helper.from_array(np.asarray(value), name)
              for name, value in dict(initializers).items()]
    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs), arrays)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(made)
    return made
