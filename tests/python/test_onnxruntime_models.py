# SPDX-License-Identifier: Apache-2.0
"""Real architectures in ONNX Runtime on the provider: whole, cut at each Softmax, as compiled
models without weights, and compiled on a machine that has no GPU. Every run compares a few small ones; INGOT_ALL_MODELS=1 all of shared/models,
which takes 20 GB of memory."""
import os

import numpy as np
import onnx
import pytest

from models import MODELS, model_file, shared_models
from onnxruntime_plugin import NAME, assigned, device, library, onnxruntime, session, session_options

SHARED = shared_models()
if SHARED is None:
    pytest.skip("no shared/models beside the clone (set INGOT_SHARED): the provider was NOT tested on "
                "real models", allow_module_level=True)

SMALL = ["mobilenet_v3_large", "speech_lstm_gru", "efficientnet_b0"]
NAMES = sorted(MODELS) if os.environ.get("INGOT_ALL_MODELS") == "1" else SMALL
RECORD = {"session.record_ep_graph_assignment_info": "1"}


def expected(path, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_prepacking", "1")
    return onnxruntime.InferenceSession(str(path), options,
                                        providers=["CPUExecutionProvider"]).run(None, feeds)


def compare(got, want):
    """To 2e-3 of each output's range."""
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if a.size:
            a, b = a.astype(np.float64), b.astype(np.float64)
            assert np.isfinite(a).all() and np.abs(a - b).max() <= 2e-3 * max(np.ptp(b), 1e-6)


def cases(model):
    return [model.make_inputs(dims) for dims in model.checks]


@pytest.mark.parametrize("name", NAMES)
def test_model_runs_whole_and_agrees(name):
    model, path = MODELS[name], model_file(name)
    made = session(path, entries=RECORD)
    assert list(assigned(made)) == [NAME]
    for feeds in cases(model):
        compare(made.run(None, feeds), expected(path, feeds))


@pytest.mark.parametrize("name", ["swin_t"] if NAMES is SMALL else NAMES)
def test_model_without_softmax_is_cut_and_agrees(name):
    model, path = MODELS[name], model_file(name)
    types = {n.op_type for n in onnx.load(path, load_external_data=False).graph.node}
    made = session(path, {"nv_op_types_to_exclude": "Softmax"}, RECORD, whole=False)
    record = assigned(made)
    if "Softmax" in types:
        assert "Softmax" in record.get("CPUExecutionProvider", []), record.keys()
        assert len(made.get_provider_graph_assignment_info()) > 1
    assert NAME in record and "Softmax" not in record[NAME]
    feeds = cases(model)[0]
    compare(made.run(None, feeds), expected(path, feeds))


@pytest.mark.parametrize("name", NAMES)
def test_compiled_model_without_weights_is_small_and_agrees(name, tmp_path):
    model, path = MODELS[name], model_file(name)
    target = tmp_path / "m_ctx.onnx"
    onnxruntime.ModelCompiler(session_options(entries={"ep.enable_weightless": "1"}), str(path),
                              embed_compiled_data_into_model=False).compile_to_file(str(target))
    written = sum(p.stat().st_size for p in tmp_path.iterdir())
    weights = path.with_suffix(".data").stat().st_size
    assert written < max(weights // 8, 2 << 20), (written, weights)
    made = session(target, entries={"ep.context_source_model_path": str(path)})
    feeds = cases(model)[0]
    compare(made.run(None, feeds), expected(path, feeds))


@pytest.mark.parametrize("name", NAMES)
def test_context_made_without_a_gpu_runs_here(name, tmp_path):
    """Compiled for a GPU that is none, by the same library under another name."""
    device()
    onnxruntime.register_execution_provider_library("made.virtual", str(library()))
    try:
        virtual, = [d for d in onnxruntime.get_ep_devices()
                    if d.ep_name == NAME and d.device.metadata.get("is_virtual") == "1"]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.add_provider_for_devices([virtual], {})
        model, path, target = MODELS[name], model_file(name), tmp_path / "m_ctx.onnx"
        onnxruntime.ModelCompiler(options, str(path)).compile_to_file(str(target))
    finally:
        onnxruntime.unregister_execution_provider_library("made.virtual")
    assert [n.op_type for n in onnx.load(target, load_external_data=False).graph.node] == ["EPContext"]
    made = session(target)
    for feeds in cases(model):
        compare(made.run(None, feeds), expected(path, feeds))
