# SPDX-License-Identifier: Apache-2.0
"""Load by tritonclient, in whose environment it runs.

  serving_load.py http|grpc HOST:PORT MODEL INPUTS.npz EXPECTED.npz THREADS UNTIL_REFUSED

Each thread sends one row after the other and compares the answer, until a line comes on standard
input; with UNTIL_REFUSED=1 a thread also ends when nobody listens any more, which is no failure.
Prints "running" after the first answers, and JSON at the end.
"""
import importlib
import json
import sys
import threading
import time

import numpy as np
from tritonclient.utils import np_to_triton_dtype


def is_refused(error):
    """Whether no connection came about, so that no request was sent."""
    text = f"{type(error).__name__} {error}"
    return "Connection refused" in text or "failed to connect to all addresses" in text


class Sender(threading.Thread):
    def __init__(self, number, module, address, model, inputs, expected, until_refused, stop, seen):
        super().__init__()
        self.at = number
        self.module, self.address, self.model = module, address, model
        self.inputs, self.expected = inputs, expected
        self.until_refused, self.stop, self.seen = until_refused, stop, seen
        self.answered = self.refused = 0
        self.failures = []
        self.slowest = 0.0

    def send(self, client, row):
        tensors = []
        for name, array in self.inputs.items():
            part = array[row:row + 1]
            tensor = self.module.InferInput(name, list(part.shape), np_to_triton_dtype(part.dtype))
            tensor.set_data_from_numpy(part)
            tensors.append(tensor)
        result = client.infer(self.model, tensors)
        for name, array in self.expected.items():
            if not np.allclose(result.as_numpy(name), array[row:row + 1], rtol=1e-4, atol=1e-4):
                raise ValueError(f"row {row}: a wrong answer")

    def run(self):
        # The HTTP client is bound to the thread that makes it.
        options = {"network_timeout": 120.0, "connection_timeout": 120.0} if "http" in self.module.__name__ else {}
        client = self.module.InferenceServerClient(self.address, **options)
        rows = len(next(iter(self.inputs.values())))
        while not self.stop.is_set():
            self.at += 1
            start = time.monotonic()
            try:
                self.send(client, self.at % rows)
                self.answered += 1
                self.slowest = max(self.slowest, time.monotonic() - start)
            except Exception as error:  # whatever it is, the request is lost
                if self.until_refused and is_refused(error):
                    self.refused += 1
                    break
                self.failures.append(f"{type(error).__name__}: {error}")
            self.seen.set()
        client.close()


def main(protocol, address, model, inputs, expected, threads, until_refused):
    module = importlib.import_module(f"tritonclient.{protocol}")
    stop, seen = threading.Event(), threading.Event()
    senders = [Sender(17 * i, module, address, model, dict(np.load(inputs)), dict(np.load(expected)),
                      until_refused == "1", stop, seen) for i in range(int(threads))]
    for sender in senders:
        sender.start()
    seen.wait()
    print("running", flush=True)
    sys.stdin.readline()
    stop.set()
    for sender in senders:
        sender.join()
    print(json.dumps({"answered": sum(s.answered for s in senders),
                      "refused": sum(s.refused for s in senders),
                      "failures": [f for s in senders for f in s.failures],
                      "slowest": max(s.slowest for s in senders)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
