#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for perf_analyzer in rehearsals of benchmarks, on machines whose C library is too old for it: the same
command line, as far as bench/triton_speed.py uses it, and the same table. Its own cost is far above the program's."""
import argparse
import csv
import os
import pathlib
import random
import statistics
import sys
import threading
import time

CLIENT = pathlib.Path(__file__).resolve().parents[3] / ".deps" / "triton" / "client" / "bin" / "python"
CLIENT = pathlib.Path(os.environ.get("INGOT_TRITON_CLIENT") or CLIENT)
try:
    import numpy as np
    from tritonclient import grpc
    from tritonclient.utils import triton_to_np_dtype
except ImportError:
    os.execv(CLIENT, [str(CLIENT), *sys.argv])


def inputs_of(client, model, rows):
    """Zeros, with as many rows as the model takes batches."""
    config = client.get_model_config(model).config
    made = []
    for tensor in config.input:
        shape = [rows] * bool(config.max_batch_size) + [max(1, size) for size in tensor.dims]
        name = str(type(tensor).DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number[tensor.data_type].name)
        made.append(grpc.InferInput(tensor.name, shape, name.removeprefix("TYPE_")))
        made[-1].set_data_from_numpy(np.zeros(shape, triton_to_np_dtype(name.removeprefix("TYPE_"))))
    return made


def requests_of(a, times, lock, end):
    """One client's requests: one after the other, or at random moments that add up to the rate asked for."""
    client = grpc.InferenceServerClient(a.url)
    inputs = inputs_of(client, a.model, a.rows)
    chance = random.Random(id(client))
    due = time.monotonic()
    while time.monotonic() < end:
        if a.request_rate_range:
            due += chance.expovariate(a.request_rate_range / a.threads)
            time.sleep(max(0, due - time.monotonic()))
        start = time.monotonic()
        client.infer(a.model, inputs)
        with lock:
            times.append(time.monotonic() - start)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("-m", dest="model")
    p.add_argument("-u", dest="url")
    p.add_argument("-b", dest="rows", type=int)
    p.add_argument("-f", dest="out")
    p.add_argument("--concurrency-range", type=int, default=1)
    p.add_argument("--request-rate-range", type=float, default=0)
    p.add_argument("--max-threads", type=int, default=16)
    p.add_argument("--measurement-interval", type=int)
    a, _ = p.parse_known_args()
    a.threads = a.max_threads if a.request_rate_range else a.concurrency_range
    times, lock = [], threading.Lock()
    seconds = 3 * a.measurement_interval / 1000
    threads = [threading.Thread(target=requests_of, args=(a, times, lock, time.monotonic() + seconds))
               for _ in range(a.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times.sort()
    with open(a.out, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["Concurrency", "Inferences/Second", "p50 latency", "p99 latency"])
        table.writerow([a.threads, len(times) * a.rows / seconds, 1e6 * statistics.median(times),
                        1e6 * times[int(0.99 * (len(times) - 1))]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
