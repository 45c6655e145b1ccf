# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs in system shared memory of the client: a real Triton Inference Server, on the CPU and on an emulated
GPU, reads and writes them there, also for requests of one batch. (CUDA shared memory: tests/gpu/triton_gpu.py.)"""
import concurrent.futures
import json
import os
import pathlib

import numpy as np
import pytest

import triton_server
from serving_models import rows, scaled
from triton_server import Refused

CLIENTS, ROWS, SIZE = 4, 2, 4
BYTES = ROWS * SIZE * 4  # of one client's input, and of its output


@pytest.fixture(scope="module", params=["KIND_CPU", "KIND_GPU"])
def server(request, tmp_path_factory):
    triton_server.needed()
    folder = tmp_path_factory.mktemp("memory")
    with triton_server.server_on(request.param, folder) as running:
        running.add("double", scaled(folder / "double.onnx", 2, SIZE),
                    f"instance_group [{{ kind: {request.param} }}]\nmax_batch_size: {CLIENTS * ROWS}\n"
                    "dynamic_batching { max_queue_delay_microseconds: 300000 "
                    f"preferred_batch_size: [{CLIENTS * ROWS}] }}\n", file_name="model.onnx")
        running.load("double")
        yield running


@pytest.fixture
def regions(server):
    """{name: array} of two regions that the server knows: the inputs of all clients, and their outputs."""
    files = {name: pathlib.Path(f"/dev/shm/ingot_test_{os.getpid()}_{name}") for name in ("in", "out")}
    made = {}
    for name, path in files.items():
        path.write_bytes(bytes(CLIENTS * BYTES))
        made[name] = np.memmap(path, np.float32, "r+", shape=(CLIENTS, ROWS, SIZE))
        server.call(f"/v2/systemsharedmemory/region/{name}/register", json.dumps(
            {"key": f"/{path.name}", "offset": 0, "byte_size": CLIENTS * BYTES}).encode())
    yield made
    server.call("/v2/systemsharedmemory/unregister", b"{}")
    for path in files.values():
        path.unlink()


def infer(server, client, size=BYTES):
    """A request whose input and output are the client's part of each region."""
    def place(region):
        return {"shared_memory_region": region, "shared_memory_byte_size": size, "shared_memory_offset": client * BYTES}
    answer = server.call("/v2/models/double/infer", json.dumps({
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [ROWS, SIZE], "parameters": place("in")}],
        "outputs": [{"name": "y", "parameters": place("out")}]}).encode())[0]
    return json.loads(answer)["outputs"]


def test_requests_of_one_batch_read_and_write_their_parts(server, regions):
    values = rows(CLIENTS * ROWS).reshape(CLIENTS, ROWS, SIZE)
    regions["in"][:] = values
    regions["out"][:] = -1
    for _ in range(3):
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            answers = list(pool.map(lambda client: infer(server, client), range(CLIENTS)))
        np.testing.assert_array_equal(regions["out"], 2 * values)
        for (output,) in answers:
            assert "data" not in output and output["shape"] == [ROWS, SIZE]
        regions["out"][:] = -1
    infer(server, 1)
    np.testing.assert_array_equal(regions["out"][1], 2 * values[1])
    assert (regions["out"][[0, 2, 3]] == -1).all()  # nobody else's part is written


def test_a_part_that_is_too_small_is_refused_and_not_written(server, regions):
    regions["out"][:] = -1
    with pytest.raises(Refused) as refused:
        infer(server, 0, BYTES - 4)
    assert refused.value.status == 400 and "x" in refused.value.text, refused.value.text
    assert (regions["out"] == -1).all()
    infer(server, 0)
