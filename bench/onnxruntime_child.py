#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One measurement of ONNX Runtime in a fresh process, for onnxruntime_speed.py: prints JSON as its last line.

  onnxruntime_child.py MEASUREMENT JSON   the arguments of the function of that name

The library is $INGOT_ONNXRUNTIME; the device is the one that the provider offers: the CPU with
INGOT_ALLOW_CPU=1.
"""
import json
import os
import pathlib
import sys
import threading
import time

import numpy as np
import onnxruntime

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))
from models import MODELS  # noqa: E402

NAME = "NvTensorRTRTXExecutionProvider"


def device():
    onnxruntime.register_execution_provider_library(NAME, os.environ["INGOT_ONNXRUNTIME"])
    found = [d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME]
    if not found:
        sys.exit("onnxruntime_child.py: the provider offers no device")
    return found[0]


def options_for(chosen, options=None, level=3):
    made = onnxruntime.SessionOptions()
    made.log_severity_level = level
    made.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if chosen is not None:
        made.add_provider_for_devices([chosen], options or {})
    return made


def session(path, chosen, options=None):
    return onnxruntime.InferenceSession(str(path), options_for(chosen, options), enable_fallback=False)


def feeds_of(name, made, dims=None):
    """Inputs of the architecture `name`, of its benchmark's sizes."""
    arrays = MODELS[name].make_inputs(dims or MODELS[name].bench)
    return {i.name: arrays[i.name] for i in made.get_inputs()}


def compiled(model, out, options=None):
    """Seconds that CompileModel takes; the engine is a file beside `out`."""
    chosen = device()
    start, cpu = time.perf_counter(), time.process_time()
    onnxruntime.ModelCompiler(options_for(chosen, options), str(model), embed_compiled_data_into_model=False
                              ).compile_to_file(str(out))
    return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}


def first_output(name, model, options=None):
    """Seconds from registering the library, and from making the session, to the first output."""
    registered, cpu = time.perf_counter(), time.process_time()
    chosen = device()
    start = time.perf_counter()
    made = session(model, chosen, options)
    created, cpu_created = time.perf_counter(), time.process_time()
    feeds = feeds_of(name, made)
    before, cpu_before = time.perf_counter(), time.process_time()
    made.run(None, feeds)
    inputs, cpu_inputs = before - created, cpu_before - cpu_created  # making inputs is the script's work
    done, cpu = time.perf_counter() - inputs, time.process_time() - cpu_inputs - cpu
    return {"from_registration_s": done - registered, "cpu_s": cpu, "session_s": created - start, "output_s": done - start}


def read_rate(files):
    """Bytes a second of reading the files, warm."""
    count, start = 0, time.perf_counter()
    for file in files:
        with open(file, "rb", buffering=0) as f:
            while block := f.read(1 << 22):
                count += len(block)
    return {"bytes": count, "seconds": time.perf_counter() - start}


def memory_kb(field):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


def host_memory(model, options=None):
    """MB of the process before, at most while, and after the session is made."""
    chosen = device()
    before = memory_kb("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    made = session(model, chosen, options)
    return {"before_mb": before / 1024, "peak_mb": memory_kb("VmHWM") / 1024,
            "after_mb": memory_kb("VmRSS") / 1024, "after_anonymous_mb": memory_kb("RssAnon") / 1024,
            "inputs": len(made.get_inputs())}


def idle_sessions(name, model, count):
    """MB of device memory that are taken after each of some sessions, each of which ran once."""
    import torch
    chosen = device()
    torch.cuda.mem_get_info()
    free, kept, taken = torch.cuda.mem_get_info()[0], [], []
    for _ in range(count):
        kept.append(session(model, chosen))
        kept[-1].run(None, feeds_of(name, kept[-1]))
        taken.append((free - torch.cuda.mem_get_info()[0]) / 2**20)
    return {"taken_mb": taken}


def runs_of_threads(name, model, threads, seconds, rounds):
    """Runs a second of `threads` threads on one session: ours, and the CPU provider's with its default
    settings, in turns."""
    sides = {"ours": session(model, device()),
             "theirs": onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])}
    feeds = feeds_of(name, sides["ours"])

    def rate(made):
        counts, end = [0] * threads, time.perf_counter() + seconds
        start = time.perf_counter()

        def work(i):
            while time.perf_counter() < end:
                made.run(None, feeds)
                counts[i] += 1
        workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        return sum(counts) / (time.perf_counter() - start)

    rates = {side: [] for side in sides}
    for made in sides.values():
        for _ in range(2):
            made.run(None, feeds)
    for _ in range(rounds):
        for side, made in sides.items():
            rates[side].append(rate(made))
    return rates


def capability(counts):
    """The provider's own lines on the CPU time of choosing nodes, which go to stderr."""
    from onnx import TensorProto, helper, numpy_helper
    chosen, kinds = device(), ["MatMul", "Add", "Relu", "Mul", "Softmax"]
    second = {"MatMul": ["w"], "Add": ["b"], "Mul": ["b"]}
    for count in counts:
        nodes = [helper.make_node(k, [f"v{i}", *second.get(k, [])], [f"v{i + 1}"])
                 for i in range(count) for k in [kinds[i % len(kinds)]]]
        sides = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 8]) for n in ("v0", f"v{count}")]
        weights = [numpy_helper.from_array(np.eye(8, dtype=np.float32), "w"),
                   numpy_helper.from_array(np.ones(8, np.float32), "b")]
        graph = helper.make_graph(nodes, "g", sides[:1], sides[1:], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        made = options_for(chosen, {"nv_detailed_build_log": "1", "nv_op_types_to_exclude": ",".join(kinds)}, 1)
        made.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            onnxruntime.InferenceSession(model.SerializeToString(), made, enable_fallback=False)
        except Exception:  # pylint: disable=broad-except
            pass  # every node is left to others, and fallback is forbidden: no session is made
    return {}


def main():
    print(json.dumps(globals()[sys.argv[1]](**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
