# SPDX-License-Identifier: Apache-2.0
"""The decoder with which tests/gpu/genai_gpu.py lets onnxruntime-genai generate: whole on the provider, step by
step as genai feeds it, its keys and values in arrays of the present length and in arrays of the most."""
import sys

import numpy as np
import pytest

from onnxruntime_plugin import REPOSITORY, onnxruntime, session

sys.path.insert(0, str(REPOSITORY / "tests" / "gpu"))
import genai_gpu as genai  # noqa: E402

STEPS = 5


@pytest.mark.parametrize("rows", [0, 64], ids=["grows", "shared buffer"])
def test_decoder_gives_the_cpu_providers_logits_and_keys(rows, tmp_path):
    genai.write_model(tmp_path)
    path = str(tmp_path / "model.onnx")
    ours, theirs = session(path), onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    past = {f"past_key_values.{i}.{kind}": np.zeros((1, genai.SMALL.kv_heads, rows, genai.SMALL.head), np.float32)
            for i in range(genai.SMALL.layers) for kind in ("key", "value")}
    tokens, total = np.array([genai.PROMPT]), len(genai.PROMPT)
    for _ in range(STEPS):
        feeds = {"input_ids": tokens, "attention_mask": np.ones((1, total), np.int64), **past}
        got, want = ours.run(None, feeds), theirs.run(None, feeds)
        np.testing.assert_allclose(got[0], want[0], rtol=0, atol=1e-4)
        for g, w in zip(got[1:], want[1:]):
            assert g.shape == w.shape
            np.testing.assert_allclose(g[:, :, :total], w[:, :, :total], rtol=0, atol=1e-4)
        past = dict(zip(past, got[1:]))
        tokens, total = want[0][:, -1:].argmax(-1), total + 1
