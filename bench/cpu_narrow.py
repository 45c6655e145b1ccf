#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CPU backend in f16 and int8 beside itself in f32 and beside ONNX Runtime, one thread each.

  cpu_narrow.py [--models resnet50,bert_base] [--forms f16,qdq,static,dynamic] [--rounds 3] [--out FILE]

Forms: f32; f16 (`ingot build --fp16`); qdq (`ingot calibrate`: Q/DQ nodes, int8 without zero points); static (ONNX Runtime's quantize_static: Q/DQ
nodes, activations of u8 with zero points); dynamic (its quantize_dynamic: DynamicQuantizeLinear and MatMulInteger, weights of int8). Weights and samples are random: times are those of real ones, accuracy is not. All forms of
a model take turns, each in a fresh process; figures are the least of the rounds, and ratios of those. A form's `f32` is its time by f32's, its
`onnxruntime` its time by ONNX Runtime's for the same file.
"""
import argparse
import json
import math
import os
import pathlib
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))
import ingot_command as ingot  # noqa: E402
from cpu_models import cpu_name  # noqa: E402
from cpu_wide import fastest_of_ingot, fastest_of_ort  # noqa: E402
from models import MODELS, model_file, ort_session  # noqa: E402


def quantized_statically(path, arrays, folder):
    """Samples are the inputs of the run."""
    data = folder / "samples"
    for name, array in arrays.items():
        own = data / name if len(arrays) > 1 else data
        own.mkdir(parents=True, exist_ok=True)
        np.save(own / "0.npy", array)
    out = folder / "qdq.onnx"
    ingot.call("calibrate", path, "--data", data, "--algorithm=minmax", "-o", out, timeout=600)
    return out


def quantized_by_onnxruntime(path, arrays, folder):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class OneSample(CalibrationDataReader):
        samples = [arrays]

        def get_next(self):
            return self.samples.pop() if self.samples else None

    out = folder / "static.onnx"
    quantize_static(path, out, OneSample(), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, per_channel=True, use_external_data_format=True)
    return out


def quantized_dynamically(path, folder):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    out = folder / "dynamic.onnx"
    quantize_dynamic(path, out, weight_type=QuantType.QInt8, use_external_data_format=True,
                     extra_options={"DefaultTensorType": 1})
    return out


def file_of(form, path, arrays, folder):
    if form == "qdq":
        return quantized_statically(path, arrays, folder)
    if form == "static":
        return quantized_by_onnxruntime(path, arrays, folder)
    if form == "dynamic":
        return quantized_dynamically(path, folder)
    return path


def measure(model, folder, args):
    path = model_file(model.name)
    arrays = model.make_inputs(model.bench)
    files = []
    for at, (name, array) in enumerate(arrays.items()):
        np.save(folder / f"{at}.npy", array)
        files.append(f"{name}:{folder / f'{at}.npy'}")
    engines, sessions = {}, {}
    for form in ["f32", *args.forms.split(",")]:
        source = file_of(form, path, arrays, folder)
        engines[form] = folder / f"{form}.engine"
        ingot.build(source, engines[form], [*model.profile_options(), *(["--fp16"] if form == "f16" else [])])
        if form != "f16":
            sessions[form] = ort_session(source, 1)
    ours = {form: math.inf for form in engines}
    theirs = {form: math.inf for form in sessions}
    for _ in range(args.rounds):
        for form, engine in engines.items():
            ours[form] = min(ours[form], fastest_of_ingot(engine, ",".join(files), args.seconds))
        for form, session in sessions.items():
            theirs[form] = min(theirs[form], fastest_of_ort(session, arrays, args.seconds))
    return {form: {"ms": round(ours[form], 3), "f32": round(ours[form] / ours["f32"], 3)} |
            ({"onnxruntime": round(ours[form] / theirs[form], 3)} if form in theirs else {}) for form in ours}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="resnet50,mobilenet_v3_large,efficientnet_b0,vit_b_16_dynamo,bert_base,gpt2_small")
    parser.add_argument("--forms", default="f16,qdq,static,dynamic")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of each turn")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    rows = {}
    for name in args.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = measure(MODELS[name], pathlib.Path(folder), args)
        print(name, *(f"{form} {' '.join(f'{k} {v}' for k, v in row.items())};" for form, row in rows[name].items()), flush=True)
        if args.out:
            args.out.write_text(json.dumps({
                "device": f"{cpu_name()}, 1 thread of {os.cpu_count()}", "load_average": [round(x, 1) for x in os.getloadavg()],
                "isa_limit": os.environ.get("ONEDNN_MAX_CPU_ISA", "none"), "rounds": args.rounds, "models": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
