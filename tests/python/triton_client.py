# SPDX-License-Identifier: Apache-2.0
"""Sends arrays to a server with tritonclient, in whose environment it runs.

  triton_client.py http|grpc HOST:PORT MODEL INPUTS.npz OUTPUTS.npz CALLS THREADS

Inputs are cut into CALLS parts along their first axis, sent by THREADS threads; results are put
together again.
"""
import concurrent.futures
import importlib
import sys
import threading

import numpy as np
from tritonclient.utils import np_to_triton_dtype


def main(protocol, address, model, source, target, calls, threads):
    module = importlib.import_module(f"tritonclient.{protocol}")
    inputs = dict(np.load(source))
    parts = [dict(zip(inputs, arrays))
             for arrays in zip(*(np.array_split(a, int(calls)) for a in inputs.values()))]
    own = threading.local()  # the HTTP client is bound to the thread that made it

    def call(part):
        if not hasattr(own, "client"):
            own.client = module.InferenceServerClient(address)
        tensors = []
        for name, array in part.items():
            tensor = module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
            tensor.set_data_from_numpy(array)
            tensors.append(tensor)
        return own.client.infer(model, tensors)

    with module.InferenceServerClient(address) as client:
        metadata = client.get_model_metadata(model)
        if protocol == "grpc":
            names = [output.name for output in metadata.outputs]
        else:
            names = [output["name"] for output in metadata["outputs"]]
    with concurrent.futures.ThreadPoolExecutor(int(threads)) as pool:
        results = list(pool.map(call, parts))
    np.savez(target, **{name: np.concatenate([r.as_numpy(name) for r in results]) for name in names})


if __name__ == "__main__":
    main(*sys.argv[1:])
