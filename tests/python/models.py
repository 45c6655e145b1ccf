# SPDX-License-Identifier: Apache-2.0
"""The architectures of shared/models as tests and benchmarks use them: where the files are, their
weights filled once into a cache, inputs in the ranges that each model expects, shapes to try."""
import dataclasses
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def shared_models():
    """shared/models: in $INGOT_SHARED, else beside the clone; None where there is none."""
    root = pathlib.Path(os.environ.get("INGOT_SHARED") or REPOSITORY.parent / "shared")
    return root / "models" if (root / "models" / "fill_weights.py").is_file() else None


def cache_folder():
    return pathlib.Path(os.environ.get("INGOT_CACHE") or "~/.cache/ingot").expanduser() / "models"


def model_file(name):
    """Path of the architecture with its weights, which are filled in if they are not there yet."""
    source = shared_models()
    if source is None:
        raise FileNotFoundError("no shared/models: set INGOT_SHARED to the shared folder")
    parts = [source / "fill_weights.py", *(source / "architectures" / f"{name}{suffix}"
                                           for suffix in (".onnx", ".weights.json"))]
    stamp = hashlib.sha256(b"".join(p.read_bytes() for p in parts)).hexdigest()
    folder = cache_folder()
    target, stamp_file = folder / f"{name}.onnx", folder / f"{name}.stamp"
    if target.exists() and stamp_file.exists() and stamp_file.read_text() == stamp:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    stamp_file.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        subprocess.run([sys.executable, parts[0], fresh, name], check=True,
                       stdout=subprocess.DEVNULL)
        for suffix in (".data", ".onnx"):
            os.replace(pathlib.Path(fresh) / f"{name}{suffix}", folder / f"{name}{suffix}")
    stamp_file.write_text(stamp)
    return target


def make_pictures(rng, shape):
    """Patches of colour with noise on top: global averages differ from one picture to the next."""
    batch, channels, height, width = shape
    patches = rng.standard_normal((batch, channels, 5, 5), dtype=np.float32)
    rows, columns = np.arange(height) * 5 // height, np.arange(width) * 5 // width
    noise = rng.standard_normal(shape, dtype=np.float32)
    return patches[:, :, rows][:, :, :, columns] + np.float32(0.3) * noise


@dataclasses.dataclass(frozen=True)
class Input:
    """How to make one input: `shape` mixes numbers with names of dims, `fill` selects the
    values."""
    shape: tuple
    fill: str = "normal"
    high: int = 0  # ids and steps are below this
    amplitude: float = 1.0

    def resolve(self, dims):
        return tuple(dims.get(d, d) for d in self.shape)

    def make(self, rng, dims):
        shape = self.resolve(dims)
        if self.fill == "normal":
            return rng.standard_normal(shape, dtype=np.float32)
        if self.fill == "picture":
            return make_pictures(rng, shape) * np.float32(self.amplitude)
        if self.fill == "ids":
            return rng.integers(0, self.high, shape, dtype=np.int64)
        if self.fill == "mask":  # the second sequence of a batch is padded at its end
            mask = np.ones(shape, np.int64)
            mask[1:, max(1, shape[1] * 3 // 4):] = 0
            return mask
        if self.fill == "position":  # of the one new token, after the cached ones
            return np.full(shape, dims["past"], np.int64)
        raise ValueError(f"unknown fill '{self.fill}'")


@dataclasses.dataclass(frozen=True)
class Model:
    """An architecture. The profile spans `low` to `high`; `checks` lie inside, `bench` is timed."""
    name: str
    inputs: dict
    low: dict
    bench: dict
    high: dict
    checks: tuple
    top1: str = ""  # the output whose largest entry along the last axis is an answer

    def make_inputs(self, dims, largest=None):
        """Arrays by name; floats are scaled down where one is above `largest`."""
        made = {name: spec.make(np.random.default_rng(zlib.crc32(f"{self.name}/{name}".encode())),
                                dims)
                for name, spec in self.inputs.items()}
        for array in made.values():
            if largest is not None and array.dtype == np.float32:
                array *= np.float32(min(1, largest / np.abs(array).max(initial=1e-30)))
        return made

    def shapes(self, dims):
        """`dims` as the command line spells shapes: name:1x3x224x224,other:1x77"""
        return ",".join(f"{name}:{'x'.join(map(str, spec.resolve(dims)))}"
                        for name, spec in self.inputs.items())

    def profile_options(self):
        return [f"--minShapes={self.shapes(self.low)}", f"--optShapes={self.shapes(self.bench)}",
                f"--maxShapes={self.shapes(self.high)}"]


def image_classifier(name, side=224, amplitude=1.0):
    return Model(name, {"input": Input(("batch", 3, side, side), "picture", amplitude=amplitude)},
                 top1="output",
                 low={"batch": 1}, bench={"batch": 1}, high={"batch": 4},
                 checks=({"batch": 1}, {"batch": 2}))


def text_model(name, vocabulary, top1="", mask=False):
    inputs = {"input_ids": Input(("batch", "seq"), "ids", vocabulary)}
    if mask:
        inputs["attention_mask"] = Input(("batch", "seq"), "mask")
    return Model(name, inputs, top1=top1,
                 low={"batch": 1, "seq": 1}, bench={"batch": 1, "seq": 128},
                 high={"batch": 4, "seq": 512},
                 checks=({"batch": 1, "seq": 128}, {"batch": 2, "seq": 19}))


def decoder_step(name, vocabulary, layers, heads, checks):
    cache = Input((layers, "batch", heads, "past", 64))
    return Model(name, {"input_ids": Input(("batch", 1), "ids", vocabulary),
                        "position_ids": Input(("batch", 1), "position"),
                        "past_k": cache, "past_v": cache}, top1="logits",
                 low={"batch": 1, "past": 0}, bench={"batch": 1, "past": 512},
                 high={"batch": 4, "past": 2048}, checks=checks)


# The random weights of two models attenuate the input until the biases alone decide the output.
# Their inputs are large, so that the output depends on the picture.
LOUD = 1e7

MODELS = {model.name: model for model in (
    image_classifier("resnet50"),
    image_classifier("resnet50_dynamo"),
    image_classifier("mobilenet_v3_large"),
    image_classifier("efficientnet_b0"),
    image_classifier("densenet121"),
    image_classifier("inception_v3", side=299, amplitude=LOUD),
    image_classifier("swin_t"),
    image_classifier("vit_b_16_dynamo"),
    Model("deeplabv3_mobilenet", {"input": Input(("batch", 3, "h", "w"), "picture",
                                               amplitude=LOUD)},
          low={"batch": 1, "h": 64, "w": 64}, bench={"batch": 1, "h": 224, "w": 224},
          high={"batch": 4, "h": 512, "w": 512},
          checks=({"batch": 1, "h": 224, "w": 224}, {"batch": 2, "h": 97, "w": 161})),
    text_model("bert_base", 30522, mask=True),
    text_model("bert_base_dynamo", 30522, mask=True),
    text_model("gpt2_small", 50257, top1="logits"),
    text_model("llama_tiny_prefill", 32000, top1="logits"),
    decoder_step("llama_tiny_decode", 32000, layers=8, heads=4,
                 checks=({"batch": 1, "past": 130}, {"batch": 2, "past": 7},
                         {"batch": 1, "past": 0})),
    decoder_step("llama32_1b_decode", 128256, layers=16, heads=8,
                 checks=({"batch": 2, "past": 33},)),
    Model("speech_lstm_gru", {"x": Input(("batch", "time", 80))},
          low={"batch": 1, "time": 1}, bench={"batch": 1, "time": 100},
          high={"batch": 4, "time": 1000},
          checks=({"batch": 1, "time": 100}, {"batch": 3, "time": 17})),
    Model("sd15_unet", {"sample": Input(("batch", 4, "h", "w")),
                        "timestep": Input(("batch",), "ids", 1000),
                        "context": Input(("batch", 77, 768))},
          low={"batch": 1, "h": 8, "w": 8}, bench={"batch": 1, "h": 32, "w": 32},
          high={"batch": 2, "h": 96, "w": 96}, checks=({"batch": 1, "h": 16, "w": 24},)),
)}


def ort_session(path, threads=0, prepack=True):
    """An ONNX Runtime session on the CPU in f32; without `prepack` it holds the weights once."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if not prepack:
        options.add_session_config_entry("session.disable_prepacking", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
