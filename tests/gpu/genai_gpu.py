#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnxruntime-genai, unmodified, on Ingot's execution provider: a small Llama generates tokens, which are
compared with those of genai's CPU provider for the same weights. Prints JSON; exit code 1 where they differ.

  genai_gpu.py LIBRARY [--tokens 64] [--provider NvTensorRtRtx] [--no-shared-buffer]
  genai_gpu.py --cpu-only      only the CPU provider's tokens: needs neither a GPU nor LIBRARY

LIBRARY is libingot_onnxruntime.so. Needs onnxruntime >= 1.31, and from onnxruntime-genai-cuda the package
onnxruntime_genai (17 MB); that one needs CUDA 13's cudart, cublas, cublasLt, curand and cufft, which PyTorch's
packages have too: they are opened before it. The wheel asks pip for onnxruntime-gpu, but runs with onnxruntime.
"""
import argparse
import ctypes
import glob
import json
import pathlib
import sys
import sysconfig
import tempfile
import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

LAYERS, HEADS, KV_HEADS, HEAD, WORDS, CONTEXT, INNER = 2, 4, 2, 64, 512, 512, 384
HIDDEN = HEADS * HEAD
CONTRIB = "com.microsoft"
SEED = 71  # in each of 64 steps the first choice leads by 2.6 % of the spread: rounding to TF32 changes none
PROMPT = [5, 17, 301, 44, 90, 12, 250, 7]
CUDA_LIBRARIES = ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcurand.so.10", "libcufft.so.12")


class Llama:
    """The graph of a decoder as genai's own builder writes it: GroupQueryAttention with rotary embedding,
    lengths from the attention mask."""

    def __init__(self):
        self.rng = np.random.default_rng(SEED)
        self.nodes, self.weights = [], []

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def random(self, name, *shape, scale=None):
        array = self.rng.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0]))
        return self.weight(name, array.astype(np.float32))

    def node(self, kind, inputs, outputs, domain="", **attributes):
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def product(self, x, name, rows, columns):
        return self.node("MatMul", [x, self.random(f"{name}.weight", rows, columns)], [name])

    def lengths(self):
        """seqlens_k (the last index that each row attends to) and total_sequence_length, as int32."""
        mask_sum = self.node("ReduceSum", ["attention_mask", self.weight("one_axis", np.array([1]))], ["mask_sum"],
                             keepdims=0)
        last = self.node("Sub", [mask_sum, self.weight("one", np.array([1]))], ["mask_last"])
        self.node("Cast", [last], ["seqlens_k"], to=TensorProto.INT32)
        self.node("Shape", ["attention_mask"], ["mask_shape"])
        self.node("Gather", ["mask_shape", self.weight("index_one", np.array(1))], ["mask_columns"])
        self.node("Cast", ["mask_columns"], ["total_length"], to=TensorProto.INT32)

    def rotary(self):
        angles = np.outer(np.arange(CONTEXT), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD))
        self.weight("cos_cache", np.cos(angles).astype(np.float32))
        self.weight("sin_cache", np.sin(angles).astype(np.float32))

    def norm(self, x, name):
        scale = self.weight(f"{name}.scale", (1 + 0.1 * self.rng.standard_normal(HIDDEN)).astype(np.float32))
        return self.node("SimplifiedLayerNormalization", [x, scale], [name], axis=-1, epsilon=1e-5, stash_type=1)

    def layer(self, x, i):
        def name(s):
            return f"layers.{i}.{s}"
        h = self.norm(x, name("input_norm"))
        q = self.product(h, name("q"), HIDDEN, HIDDEN)
        k = self.product(h, name("k"), HIDDEN, KV_HEADS * HEAD)
        v = self.product(h, name("v"), HIDDEN, KV_HEADS * HEAD)
        attended = self.node(
            "GroupQueryAttention",
            [q, k, v, f"past_key_values.{i}.key", f"past_key_values.{i}.value", "seqlens_k", "total_length",
             "cos_cache", "sin_cache"],
            [name("attention"), f"present.{i}.key", f"present.{i}.value"], CONTRIB,
            num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1, rotary_interleaved=0, scale=HEAD ** -0.5)
        x = self.node("Add", [x, self.product(attended, name("o"), HIDDEN, HIDDEN)], [name("sum")])
        h = self.norm(x, name("post_norm"))
        gate = self.product(h, name("gate"), HIDDEN, INNER)
        sigmoid = self.node("Sigmoid", [gate], [name("sigmoid")])
        silu = self.node("Mul", [gate, sigmoid], [name("silu")])
        inner = self.node("Mul", [silu, self.product(h, name("up"), HIDDEN, INNER)], [name("inner")])
        return self.node("Add", [x, self.product(inner, name("down"), INNER, HIDDEN)], [name("out")])

    def model(self):
        self.lengths()
        self.rotary()
        x = self.node("Gather", [self.random("embedding", WORDS, HIDDEN, scale=1), "input_ids"], ["embedded"])
        for i in range(LAYERS):
            x = self.layer(x, i)
        x = self.norm(x, "final_norm")
        self.node("MatMul", [x, self.random("head.weight", HIDDEN, WORDS)], ["logits"])
        int64, float32 = TensorProto.INT64, TensorProto.FLOAT

        def sides(prefix, length):
            return [helper.make_tensor_value_info(f"{prefix}.{i}.{kind}", float32, ["batch", KV_HEADS, length, HEAD])
                    for i in range(LAYERS) for kind in ("key", "value")]
        inputs = [helper.make_tensor_value_info("input_ids", int64, ["batch", "length"]),
                  helper.make_tensor_value_info("attention_mask", int64, ["batch", "total"]),
                  *sides("past_key_values", "past")]
        outputs = [helper.make_tensor_value_info("logits", float32, ["batch", "length", WORDS]),
                   *sides("present", "total")]
        graph = helper.make_graph(self.nodes, "llama", inputs, outputs, self.weights)
        return helper.make_model(graph, ir_version=9, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)])


def write_model(folder):
    save(Llama().model(), str(folder / "model.onnx"))
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []}, "filename": "model.onnx",
        "head_size": HEAD, "hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS,
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask",
                   "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"},
        "outputs": {"logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}}
    config = {"model": {"type": "llama", "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "vocab_size": WORDS,
                        "context_length": CONTEXT, "decoder": decoder},
              "search": {"max_length": CONTEXT, "do_sample": False, "past_present_share_buffer": True, "top_k": 1}}
    (folder / "genai_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


def open_cuda_libraries():
    """genai's library finds them by name once they are open."""
    site = pathlib.Path(sysconfig.get_paths()["purelib"])
    opened = {}
    for name in CUDA_LIBRARIES:
        for candidate in (*sorted(glob.glob(str(site / "nvidia" / "**" / name), recursive=True)), name):
            try:
                ctypes.CDLL(candidate, mode=ctypes.RTLD_GLOBAL)
                opened[name] = candidate
                break
            except OSError:
                continue
    return {name: opened.get(name) for name in CUDA_LIBRARIES}


def generate(genai, folder, provider, tokens, shared_buffer):
    """The tokens behind the prompt, and how many came a second after the first."""
    config = genai.Config(str(folder))
    config.clear_providers()
    if provider:
        config.append_provider(provider)
    model = genai.Model(config)
    length = len(PROMPT) + tokens
    params = genai.GeneratorParams(model)
    params.set_search_options(max_length=length, min_length=length, do_sample=False,
                              past_present_share_buffer=shared_buffer)
    generator = genai.Generator(model, params)
    generator.append_tokens(np.array([PROMPT], np.int32))
    generator.generate_next_token()
    start, count = time.perf_counter(), 0
    while not generator.is_done():
        generator.generate_next_token()
        count += 1
    rate = count / max(time.perf_counter() - start, 1e-9)
    return [int(t) for t in generator.get_sequence(0)][len(PROMPT):], rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--provider", default="NvTensorRtRtx")
    parser.add_argument("--no-shared-buffer", action="store_true")
    parser.add_argument("--cpu-only", action="store_true")
    options = parser.parse_args()
    report = {"cuda": open_cuda_libraries()}
    import onnxruntime
    import onnxruntime_genai as genai
    report |= {"onnxruntime": onnxruntime.__version__, "genai": genai.__version__, "package": genai.__id__}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_model(folder)
        want, rate = generate(genai, folder, "", options.tokens, False)
        report["cpu"] = {"tokens": want, "per_second": round(rate, 1)}
        done = len(want) == options.tokens and len(set(want)) > 4
        if not options.cpu_only:
            if options.library is None:
                parser.error("LIBRARY is missing")
            try:
                genai.register_execution_provider_library("NvTensorRTRTXExecutionProvider",
                                                          str(pathlib.Path(options.library).resolve()))
                got, rate = generate(genai, folder, options.provider, options.tokens, not options.no_shared_buffer)
                report["ingot"] = {"tokens": got, "per_second": round(rate, 1), "equal": got == want}
                done = done and got == want
            except Exception as e:  # pylint: disable=broad-except
                report["ingot"] = {"failed": f"{type(e).__name__}: {e}"}
                done = False
    print("{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in report.items()) + "\n}")
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
