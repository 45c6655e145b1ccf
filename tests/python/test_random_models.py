# SPDX-License-Identifier: Apache-2.0
"""Random models on the provider, the whole graph on it and optimised by it alone, against ONNX Runtime's CPU provider:
on the CPU, with another batch than the one they were made for, and on an emulated GPU."""
import pytest

from onnxruntime_emulated import run
from onnxruntime_plugin import onnxruntime, session_options
from random_models import compare_all, seed_ranges

TOLERANCE = 1e-4


def on_provider(model, feeds):
    options = session_options()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, enable_fallback=False)
    return made.run(None, feeds)


@pytest.mark.parametrize("seeds", seed_ranges(300, 4), ids=lambda seeds: f"{seeds.start}:{seeds.stop}")
def test_random_models_have_right_results(seeds):
    total, compared = compare_all(seeds, on_provider, TOLERANCE)
    assert total >= 0.9 * len(seeds) and compared >= 0.9 * total, (total, compared)


def test_random_models_take_another_batch():
    """About half of the models leave it open. ONNX Runtime refuses those that depend on it all the same."""
    total, compared = compare_all(range(40), on_provider, TOLERANCE, more_rows=2)
    assert compared >= 10, (total, compared)


def test_random_models_have_right_results_on_a_gpu(tmp_path):
    """Products are in TF32 there."""
    run(tmp_path, """
        from random_models import compare_all
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        options.add_provider_for_devices([devices[0]], {})
        def on_gpu(model, feeds):
            made = onnxruntime.InferenceSession(model.SerializeToString(), options, enable_fallback=False)
            return made.run(None, feeds)
        total, compared = compare_all(range(12), on_gpu, 5e-3)
        assert total == 12 and compared >= 11, (total, compared)
        assert cuda.ingot_emulated_launches(0) > 0
    """)
