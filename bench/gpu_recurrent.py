#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers on one GPU: every tactic of ours beside PyTorch's layer, which is cuDNN's, under CUDA graphs.

  gpu_recurrent.py --work DIR --out FILE.json [--build build] [--layers NAME,...]

A layer is CELL_hHIDDEN_bBATCH_sSTEPS_dDIRECTIONS in 16-bit floats, with random weights and as many inputs as hidden
elements. Figures are medians of the GPU's milliseconds for the whole model, the product of the inputs among them;
`error` is the largest difference from PyTorch in float32, relative to the range of the output. Tactics that a layer
does not have take the best one's place, and are left out. Needs torch, onnx, and libingot_bench.so and ingot in BUILD.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gpu_cases import Peer, Session, library, median  # noqa: E402

LAYERS = ("LSTM_h48_b32_s32_d2,LSTM_h96_b16_s16_d2,LSTM_h128_b1_s300_d2,LSTM_h128_b1_s31_d1,LSTM_h256_b1_s80_d2,LSTM_h256_b32_s80_d2,"
          "LSTM_h512_b1_s75_d1,GRU_h256_b1_s64_d2,GRU_h64_b256_s20_d1,GRU_h384_b4_s50_d1,RNN_h512_b1_s100_d2").split(",")
TACTICS = [f"cluster{b}_w{w}_n{n}" for b in (1, 2, 4, 8) for w in (4, 8, 16) for n in (1, 2)]


def measure(name, a):
    import torch
    cell, hidden, batch, steps, directions = re.fullmatch(r"(\w+)_h(\d+)_b(\d+)_s(\d+)_d(\d)", name).groups()
    hidden, batch, steps = int(hidden), int(batch), int(steps)
    torch.manual_seed(0)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = getattr(torch.nn, cell)(hidden, hidden, bidirectional=directions == "2")

        def forward(self, x):
            return self.layer(x)[0]

    model, x = Layer().cuda().eval(), torch.randn(steps, batch, hidden, device="cuda")
    with torch.no_grad():
        want = model(x)
        half, x16 = model.half(), x.half()
        like = half(x16).float()
        path = pathlib.Path(a.work) / f"{name}.onnx"
        torch.onnx.export(half, (x16,), str(path), dynamo=False, opset_version=17, input_names=["x"])
    done = subprocess.run([pathlib.Path(a.build) / "ingot", "build", path, "-o", path.with_suffix(".engine")], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])
    span = float(want.max() - want.min())
    result = {"layer": name, "device": torch.cuda.get_device_name(0), "torch_error": round(float((like - want).abs().max()) / span, 6),
              "tactics": {}}
    seen = set()
    for tactic in ["", *TACTICS]:
        ours = Session(library(a.build), path.with_suffix(".engine"), f"tactic={tactic}" if tactic else "")
        ours.set("x", x16.cpu().numpy())
        ours.run()
        got = torch.from_numpy(ours.output()).cuda().reshape(want.shape)
        error = float((got - want).abs().max()) / span
        used = [field for line in ours.profile(3) for field in line if "cluster" in field]
        ran = re.search(r"cluster\w+", used[0]).group(0) if used else "none"
        if not tactic:
            result["chosen"] = ran
        if ran not in seen:
            ours.run()
            times = [t for _ in range(3) for t in ours.time(12)[0][2:]]
            result["tactics"][ran] = round(median(times), 4)
            result["error"] = max(result.get("error", 0), round(error, 6))
            seen.add(ran)
        ours.close()
    for key, make in {"eager": lambda: half, "compile": lambda: torch.compile(half)}.items():
        try:
            peer = Peer(make(), (x16,))
            result[key] = round(median([t for _ in range(3) for t in peer.time(12)[2:]]), 4)
        except Exception as e:
            result[key + "_failed"] = f"{type(e).__name__}: {e}"[-200:]
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--work", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--build", default="build")
    p.add_argument("--layers", default=",".join(LAYERS))
    a = p.parse_args()
    pathlib.Path(a.work).mkdir(parents=True, exist_ok=True)
    results = []
    for name in a.layers.split(","):
        try:
            results.append(measure(name, a))
            r = results[-1]
            best = min(r["tactics"], key=r["tactics"].get)
            print(f"{name}: chosen {r['chosen']} {r['tactics'].get(r['chosen'])}, best {best} {r['tactics'][best]}, eager {r.get('eager')}, "
                  f"compile {r.get('compile')}, error {r['error']} ({r['torch_error']})", flush=True)
        except Exception as e:
            print(f"{name}: failed: {type(e).__name__}: {e}"[:400], flush=True)
        pathlib.Path(a.out).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
