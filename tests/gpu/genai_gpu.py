#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnxruntime-genai, unmodified, on Ingot's execution provider: a small Llama generates tokens, which are
compared with those of genai's CPU provider for the same weights. Prints JSON; exit code 1 where they differ.

  genai_gpu.py LIBRARY [--tokens 64] [--provider NvTensorRtRtx] [--no-shared-buffer]
  genai_gpu.py LIBRARY --speed 1b   a Llama of 1.2 billion random weights in f16: times alone, no comparison
  genai_gpu.py --cpu-only      only the CPU provider's tokens: needs neither a GPU nor LIBRARY

`per_second` counts all tokens after the first; `token_ms` is the median of their times, `first_ms` the first's.

LIBRARY is libingot_onnxruntime.so. Needs onnxruntime >= 1.31, and from onnxruntime-genai-cuda the package
onnxruntime_genai (17 MB); that one needs CUDA 13's cudart, cublas, cublasLt, curand and cufft, which PyTorch's
packages have too: they are opened before it. The wheel asks pip for onnxruntime-gpu, but runs with onnxruntime.
"""
import argparse
import ctypes
import dataclasses
import glob
import json
import pathlib
import statistics
import sys
import sysconfig
import tempfile
import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


@dataclasses.dataclass(frozen=True)
class Sizes:
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head: int = 64
    words: int = 512
    context: int = 512
    inner: int = 384
    dtype: type = np.float32

    @property
    def hidden(self):
        return self.heads * self.head

    @property
    def onnx_type(self):
        return helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))


SMALL = Sizes()
SPEED = {"small": SMALL,
         "1b": Sizes(16, 32, 8, 64, 128256, 2048, 8192, np.float16)}  # as Llama 3.2 1B
CONTRIB = "com.microsoft"
SEED = 71  # in each of 64 steps the first choice leads by 2.6 % of the spread: rounding to TF32 changes none
PROMPT = [5, 17, 301, 44, 90, 12, 250, 7]
CUDA_LIBRARIES = ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcurand.so.10", "libcufft.so.12")


class Llama:
    """The graph of a decoder as genai's own builder writes it: GroupQueryAttention with rotary embedding,
    lengths from the attention mask."""

    def __init__(self, sizes=SMALL):
        self.sizes = sizes
        self.rng = np.random.default_rng(SEED)
        self.nodes, self.weights = [], []

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def random(self, name, *shape, scale=None):
        array = self.rng.standard_normal(shape, np.float32 if self.sizes != SMALL else np.float64)
        return self.weight(name, (array * (scale or 1 / np.sqrt(shape[0]))).astype(self.sizes.dtype))

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
        head = self.sizes.head
        angles = np.outer(np.arange(self.sizes.context), 10000.0 ** (-np.arange(0, head, 2) / head))
        self.weight("cos_cache", np.cos(angles).astype(self.sizes.dtype))
        self.weight("sin_cache", np.sin(angles).astype(self.sizes.dtype))

    def norm(self, x, name):
        scale = self.weight(f"{name}.scale", (1 + 0.1 * self.rng.standard_normal(self.sizes.hidden)).astype(self.sizes.dtype))
        return self.node("SimplifiedLayerNormalization", [x, scale], [name], axis=-1, epsilon=1e-5, stash_type=1)

    def layer(self, x, i):
        def name(s):
            return f"layers.{i}.{s}"
        z = self.sizes
        h = self.norm(x, name("input_norm"))
        q = self.product(h, name("q"), z.hidden, z.hidden)
        k = self.product(h, name("k"), z.hidden, z.kv_heads * z.head)
        v = self.product(h, name("v"), z.hidden, z.kv_heads * z.head)
        attended = self.node(
            "GroupQueryAttention",
            [q, k, v, f"past_key_values.{i}.key", f"past_key_values.{i}.value", "seqlens_k", "total_length",
             "cos_cache", "sin_cache"],
            [name("attention"), f"present.{i}.key", f"present.{i}.value"], CONTRIB,
            num_heads=z.heads, kv_num_heads=z.kv_heads, do_rotary=1, rotary_interleaved=0, scale=z.head ** -0.5)
        x = self.node("Add", [x, self.product(attended, name("o"), z.hidden, z.hidden)], [name("sum")])
        h = self.norm(x, name("post_norm"))
        gate = self.product(h, name("gate"), z.hidden, z.inner)
        sigmoid = self.node("Sigmoid", [gate], [name("sigmoid")])
        silu = self.node("Mul", [gate, sigmoid], [name("silu")])
        inner = self.node("Mul", [silu, self.product(h, name("up"), z.hidden, z.inner)], [name("inner")])
        return self.node("Add", [x, self.product(inner, name("down"), z.inner, z.hidden)], [name("out")])

    def model(self):
        z = self.sizes
        self.lengths()
        self.rotary()
        x = self.node("Gather", [self.random("embedding", z.words, z.hidden, scale=1), "input_ids"], ["embedded"])
        for i in range(z.layers):
            x = self.layer(x, i)
        x = self.norm(x, "final_norm")
        self.node("MatMul", [x, self.random("head.weight", z.hidden, z.words)], ["logits"])
        int64, floats = TensorProto.INT64, z.onnx_type

        def sides(prefix, length):
            return [helper.make_tensor_value_info(f"{prefix}.{i}.{kind}", floats, ["batch", z.kv_heads, length, z.head])
                    for i in range(z.layers) for kind in ("key", "value")]
        inputs = [helper.make_tensor_value_info("input_ids", int64, ["batch", "length"]),
                  helper.make_tensor_value_info("attention_mask", int64, ["batch", "total"]),
                  *sides("past_key_values", "past")]
        outputs = [helper.make_tensor_value_info("logits", floats, ["batch", "length", z.words]),
                   *sides("present", "total")]
        graph = helper.make_graph(self.nodes, "llama", inputs, outputs, self.weights)
        return helper.make_model(graph, ir_version=9, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)])


def write_model(folder, sizes=SMALL):
    save(Llama(sizes).model(), str(folder / "model.onnx"), save_as_external_data=sizes != SMALL)
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []}, "filename": "model.onnx",
        "head_size": sizes.head, "hidden_size": sizes.hidden, "num_attention_heads": sizes.heads, "num_hidden_layers": sizes.layers,
        "num_key_value_heads": sizes.kv_heads,
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask",
                   "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"},
        "outputs": {"logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}}
    config = {"model": {"type": "llama", "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "vocab_size": sizes.words,
                        "context_length": sizes.context, "decoder": decoder},
              "search": {"max_length": sizes.context, "do_sample": False, "past_present_share_buffer": True, "top_k": 1}}
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
    """The tokens behind the prompt, and their times."""
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
    times = []
    start = time.perf_counter()
    generator.append_tokens(np.array([PROMPT], np.int32))
    while not generator.is_done():
        generator.generate_next_token()
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
    return [int(t) for t in generator.get_sequence(0)][len(PROMPT):], {
        "per_second": round((len(times) - 1) / sum(times[1:]), 1), "first_ms": round(times[0] * 1e3, 2),
        "second_ms": round(times[1] * 1e3, 2), "token_ms": round(statistics.median(times[2:]) * 1e3, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--provider", default="NvTensorRtRtx")
    parser.add_argument("--no-shared-buffer", action="store_true")
    parser.add_argument("--cpu-only", action="store_true")
    parser.add_argument("--speed", choices=sorted(SPEED))
    options = parser.parse_args()
    report = {"cuda": open_cuda_libraries()}
    import onnxruntime
    import onnxruntime_genai as genai
    report |= {"onnxruntime": onnxruntime.__version__, "genai": genai.__version__, "package": genai.__id__}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_model(folder, SPEED[options.speed or "small"])
        want, done = None, True
        if not options.speed:
            want, times = generate(genai, folder, "", options.tokens, False)
            report["cpu"] = {"tokens": want, **times}
            done = len(want) == options.tokens and len(set(want)) > 4
        if not options.cpu_only:
            if options.library is None:
                parser.error("LIBRARY is missing")
            try:
                genai.register_execution_provider_library("NvTensorRTRTXExecutionProvider",
                                                          str(pathlib.Path(options.library).resolve()))
                got, times = generate(genai, folder, options.provider, options.tokens, not options.no_shared_buffer)
                report["ingot"] = {"tokens": got, **times, "equal": got == want if want else None}
                done = done and (want is None or got == want)
            except Exception as e:  # pylint: disable=broad-except
                report["ingot"] = {"failed": f"{type(e).__name__}: {e}"}
                done = False
    print("{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in report.items()) + "\n}")
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
